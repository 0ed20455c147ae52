use super::hierarchy::{folder, mounts};
use std::fs;
use std::path::{Path, PathBuf};

/// What the control groups of a process say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cgroup {
    /// `None` when no memory controller could be read.
    pub(crate) memory: Option<Memory>,
    /// `None` when no CPU controller could be read.
    pub(crate) cpu: Option<Cpu>,
    /// CPUs of the cpuset, when one is set.
    pub(crate) cpuset: Option<u64>,
}

/// Memory of the group that limits the process: its own, or the ancestor with the smallest limit. Bytes; `None` is
/// unlimited for limits, unknown for the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    pub(crate) version: u8,
    pub(crate) folder: PathBuf,
    /// `memory.max`, `memory.limit_in_bytes`.
    pub(crate) max: Option<u64>,
    /// `memory.high`, `memory.soft_limit_in_bytes`.
    pub(crate) high: Option<u64>,
    pub(crate) current: Option<u64>,
    pub(crate) peak: Option<u64>,
    /// Swap alone in version 2, memory and swap together in version 1.
    pub(crate) swap_max: Option<u64>,
    /// Swap alone, in both versions.
    pub(crate) swap_current: Option<u64>,
    /// File pages that can go without harm: current − this is the working set that Kubernetes judges by.
    pub(crate) inactive_file: Option<u64>,
    /// Processes of the group that were killed for want of memory.
    pub(crate) oom_kills: Option<u64>,
}

impl Memory {
    /// current − inactive file pages.
    pub(crate) fn working_set(&self) -> Option<u64> {
        Some(self.current?.saturating_sub(self.inactive_file.unwrap_or(0)))
    }
}

/// CPU time of the group that limits the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) version: u8,
    pub(crate) folder: PathBuf,
    /// quota/period, the smallest on the way to the root; `None` is unlimited.
    pub(crate) quota: Option<f64>,
    /// Periods in which the group was runnable.
    pub(crate) periods: Option<u64>,
    /// Those in which it was throttled.
    pub(crate) throttled: Option<u64>,
}

impl Cpu {
    /// Share of the periods in which it was throttled.
    pub(crate) fn throttled_share(&self) -> Option<f64> {
        let periods = self.periods.filter(|periods| *periods > 0)?;
        Some(self.throttled? as f64 / periods as f64)
    }
}

/// Control groups of a process.
pub(crate) fn of(pid: u32) -> Cgroup {
    read(Path::new("/"), pid)
}

/// `system` is the folder that holds `proc` and `sys`.
fn read(system: &Path, pid: u32) -> Cgroup {
    let text = |path: String| fs::read_to_string(system.join(path)).unwrap_or_default();
    let mounts = mounts(&text("proc/self/mountinfo".into()));
    let cgroup = text(format!("proc/{pid}/cgroup"));
    let find = |controller: &str| {
        let (folder, top, version) = folder(&cgroup, &mounts, controller)?;
        let here = |path: PathBuf| system.join(path.strip_prefix("/").unwrap_or(&path));
        let (folder, top) = (here(folder), here(top));
        folder.is_dir().then_some((folder, top, version))
    };
    Cgroup {
        memory: find("memory").map(|(folder, top, version)| memory(&folder, &top, version)),
        cpu: find("cpu").map(|(folder, top, version)| cpu(&folder, &top, version)),
        cpuset: find("cpuset").and_then(|(folder, _, _)| {
            let list = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
            list.iter().find_map(|name| cpus(&fs::read_to_string(folder.join(name)).ok()?))
        }),
    }
}

/// The group's folder and those above it, up to the mount point.
fn upwards<'a>(folder: &'a Path, top: &'a Path) -> impl Iterator<Item = &'a Path> {
    folder.ancestors().take_while(move |path| path.starts_with(top))
}

fn memory(folder: &Path, top: &Path, version: u8) -> Memory {
    let v2 = version == 2;
    let limit_file = if v2 { "memory.max" } else { "memory.limit_in_bytes" };
    let limiting = upwards(folder, top)
        .filter_map(|path| number(path, limit_file).map(|limit| (limit, path)))
        // Of equal ones the innermost, whose usage is closest to the process.
        .min_by_key(|(limit, _)| *limit);
    let at = limiting.map_or(folder, |(_, path)| path);
    let file = |two: &str, one: &str| number(at, if v2 { two } else { one });
    let stat = fs::read_to_string(at.join("memory.stat")).unwrap_or_default();
    let current = file("memory.current", "memory.usage_in_bytes");
    let swap_current = if v2 {
        number(at, "memory.swap.current")
    } else {
        number(at, "memory.memsw.usage_in_bytes").zip(current).map(|(both, memory)| both.saturating_sub(memory))
    };
    let events = fs::read_to_string(at.join(if v2 { "memory.events" } else { "memory.oom_control" }));
    Memory {
        version,
        folder: at.to_owned(),
        max: limiting.map(|(limit, _)| limit),
        high: file("memory.high", "memory.soft_limit_in_bytes"),
        current,
        peak: file("memory.peak", "memory.max_usage_in_bytes"),
        swap_max: file("memory.swap.max", "memory.memsw.limit_in_bytes"),
        swap_current,
        inactive_file: field(&stat, if v2 { "inactive_file" } else { "total_inactive_file" }),
        oom_kills: events.ok().and_then(|text| field(&text, "oom_kill")),
    }
}

fn cpu(folder: &Path, top: &Path, version: u8) -> Cpu {
    let v2 = version == 2;
    let quota_of = |path: &Path| {
        let (quota, period) = if v2 {
            // `max 100000` or `150000 100000`
            let text = fs::read_to_string(path.join("cpu.max")).ok()?;
            let mut words = text.split_whitespace();
            (words.next()?.parse::<f64>().ok()?, words.next()?.parse::<f64>().ok()?)
        } else {
            // −1 is unlimited
            let quota = fs::read_to_string(path.join("cpu.cfs_quota_us")).ok()?.trim().parse::<f64>().ok()?;
            (quota, number(path, "cpu.cfs_period_us")? as f64)
        };
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    let limiting = upwards(folder, top)
        .filter_map(|path| quota_of(path).map(|quota| (quota, path)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let at = limiting.map_or(folder, |(_, path)| path);
    let stat = fs::read_to_string(at.join("cpu.stat")).unwrap_or_default();
    Cpu {
        version,
        folder: at.to_owned(),
        quota: limiting.map(|(quota, _)| quota),
        periods: field(&stat, "nr_periods"),
        throttled: field(&stat, "nr_throttled"),
    }
}

/// A file with one number. `max` and version 1's largest page-aligned number are no limit.
fn number(folder: &Path, name: &str) -> Option<u64> {
    let number = fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()?;
    (number < 1 << 60).then_some(number)
}

/// A line `name value`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Number of CPUs in a list like `0-3,7`.
fn cpus(list: &str) -> Option<u64> {
    let mut count = 0;
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        count += last.checked_sub(first)? + 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::{cpus, read};
    use std::fs;
    use std::path::Path;

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
    fn version_2_with_the_limit_on_an_ancestor() {
        let root = tree(&[
            ("proc/self/mountinfo", "24 22 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/7/cgroup", "0::/pod/app\n"),
            ("sys/fs/cgroup/pod/app/memory.max", "max\n"),
            ("sys/fs/cgroup/pod/app/memory.current", "1000\n"),
            ("sys/fs/cgroup/pod/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/pod/memory.high", "max\n"),
            ("sys/fs/cgroup/pod/memory.current", "900000000\n"),
            ("sys/fs/cgroup/pod/memory.peak", "1900000000\n"),
            ("sys/fs/cgroup/pod/memory.swap.current", "4096\n"),
            ("sys/fs/cgroup/pod/memory.stat", "anon 5\ninactive_file 100000000\n"),
            ("sys/fs/cgroup/pod/memory.events", "low 0\nmax 3\noom 1\noom_kill 2\n"),
            ("sys/fs/cgroup/pod/app/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/pod/app/cpu.stat", "usage_usec 5\nnr_periods 200\nnr_throttled 50\n"),
            ("sys/fs/cgroup/pod/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/pod/app/cpuset.cpus.effective", "0-3,7\n"),
        ]);
        let found = read(root.path(), 7);
        let memory = found.memory.unwrap();
        assert_eq!((memory.max, memory.high, memory.peak), (Some(2 << 30), None, Some(1_900_000_000)));
        assert_eq!((memory.working_set(), memory.swap_current), (Some(800_000_000), Some(4096)));
        assert_eq!((memory.oom_kills, memory.version), (Some(2), 2));
        assert!(memory.folder.ends_with("sys/fs/cgroup/pod"));
        let cpu = found.cpu.unwrap();
        assert_eq!((cpu.quota, cpu.throttled_share()), (Some(1.5), Some(0.25)));
        assert_eq!(found.cpuset, Some(5));
    }

    #[test]
    fn version_1_with_its_own_spelling_of_no_limit() {
        let root = tree(&[
            (
                "proc/self/mountinfo",
                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            ),
            ("proc/7/cgroup", "4:memory:/a\n1:cpu:/a\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "500\n"),
            ("sys/fs/cgroup/memory/a/memory.memsw.usage_in_bytes", "800\n"),
            ("sys/fs/cgroup/memory/a/memory.max_usage_in_bytes", "900\n"),
            ("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n"),
            ("sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
        ]);
        let found = read(root.path(), 7);
        let memory = found.memory.unwrap();
        assert_eq!((memory.max, memory.peak, memory.swap_current), (Some(1 << 30), Some(900), Some(300)));
        assert_eq!((memory.working_set(), memory.oom_kills, memory.version), (Some(400), Some(1), 1));
        let cpu = found.cpu.unwrap();
        assert_eq!((cpu.quota, cpu.throttled_share()), (None, None));
        assert_eq!(found.cpuset, None);
    }

    #[test]
    fn without_groups_nothing_is_known() {
        assert_eq!(read(Path::new("/no/such/root"), 1), super::Cgroup::default());
    }

    #[test]
    fn lists_of_cpus() {
        for (list, expected) in
            [("0", Some(1)), ("0-3", Some(4)), ("0-1,4,6-7\n", Some(5)), ("", None), ("3-1", None), ("x", None)]
        {
            assert_eq!(cpus(list), expected, "{list}");
        }
    }
}
