//! Working set and limit of the process's control group, of both versions.

use std::fs;
use std::path::{Path, PathBuf};

/// A value at or above this is no limit (v1 writes the largest multiple of a page).
const NO_LIMIT: u64 = 1 << 62;

/// Working set as a share of the limit; `None` without a limit.
pub(super) fn share() -> Option<f64> {
    share_in(Path::new("/"))
}

/// The tightest of the limits from the process's own group up to the root.
///
/// `/proc/self/cgroup`:
///
/// ```text
/// 0::/kubepods/pod1/abc              version 2
/// 9:memory:/kubepods/pod1/abc        version 1
/// ```
///
/// In a container the path is often the host's, and the group's files are at the root of the mount: it is the last one
/// tried.
fn share_in(root: &Path) -> Option<f64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    groups.lines().filter_map(|line| share_of(root, line)).reduce(f64::max)
}

fn share_of(root: &Path, line: &str) -> Option<f64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (mount, names) = if controllers.is_empty() {
        (root.join("sys/fs/cgroup"), ["memory.max", "memory.current", "inactive_file"])
    } else if controllers.split(',').any(|controller| controller == "memory") {
        (root.join("sys/fs/cgroup/memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"])
    } else {
        return None;
    };
    let mut group = PathBuf::from(path.trim_start_matches('/'));
    let mut tightest = None;
    loop {
        if let Some(share) = share_at(&mount.join(&group), names) {
            tightest = Some(share).into_iter().chain(tightest).reduce(f64::max);
        }
        if !group.pop() {
            return tightest;
        }
    }
}

/// Page cache that the kernel drops first is not counted, as kubelet does.
fn share_at(group: &Path, [limit, usage, inactive]: [&str; 3]) -> Option<f64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(limit).filter(|&limit| limit > 0 && limit < NO_LIMIT)?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let inactive = stat.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(number(usage)?.saturating_sub(inactive) as f64 / limit as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn version_2_takes_the_tightest_limit_on_the_way_up() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/pod/app\n"),
            ("sys/fs/cgroup/pod/memory.max", "1000\n"),
            ("sys/fs/cgroup/pod/memory.current", "950\n"),
            ("sys/fs/cgroup/pod/memory.stat", "anon 1\ninactive_file 50\n"),
            ("sys/fs/cgroup/pod/app/memory.max", "max\n"),
            ("sys/fs/cgroup/pod/app/memory.current", "900\n"),
        ]);
        assert_eq!(share_in(root.path()), Some(0.9));
    }

    #[test]
    fn version_1_with_the_hosts_path_in_a_container() {
        let root = tree(&[
            ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1700\n"),
            ("sys/fs/cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 100\n"),
        ]);
        assert_eq!(share_in(root.path()), Some(0.8));
    }

    #[test]
    fn no_limit_is_no_share() {
        let root = tree(&[
            ("proc/self/cgroup", "4:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1700\n"),
        ]);
        assert_eq!(share_in(root.path()), None);
        assert_eq!(share_in(Path::new("/no/such/root")), None);
    }
}
