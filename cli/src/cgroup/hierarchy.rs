//! Where the folder of a control group is.

use std::path::{Path, PathBuf};

/// A mounted hierarchy, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Folder of the hierarchy that is mounted: `/` but for bind mounts and containers.
    pub(crate) root: String,
    pub(crate) point: PathBuf,
    /// 1 or 2.
    pub(crate) version: u8,
    /// Controllers of a version 1 hierarchy.
    pub(crate) controllers: Vec<String>,
}

/// Mounted hierarchies from `/proc/self/mountinfo`:
///
/// ```text
/// 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
/// 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
/// ```
pub(crate) fn mounts(mountinfo: &str) -> Vec<Mount> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut before = before.split(' ').skip(3);
            let (root, point) = (before.next()?, before.next()?);
            let mut after = after.split(' ');
            let (kind, options) = (after.next()?, after.nth(1)?);
            let version = match kind {
                "cgroup" => 1,
                "cgroup2" => 2,
                _ => return None,
            };
            let controllers = options.split(',').map(str::to_owned).collect();
            Some(Mount { root: unescaped(root), point: PathBuf::from(unescaped(point)), version, controllers })
        })
        .collect()
}

/// Spaces in mount paths are written as octal escapes.
fn unescaped(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// The folder that holds the files of `controller` for a process, and its mount point, from `/proc/PID/cgroup`:
///
/// ```text
/// 4:memory:/kubepods/pod1/abc
/// 1:cpu,cpuacct:/kubepods/pod1/abc
/// 0::/kubepods/pod1/abc
/// ```
///
/// A controller that has a version 1 hierarchy is not in version 2 (the kernel binds it to one).
pub(crate) fn folder(cgroup: &str, mounts: &[Mount], controller: &str) -> Option<(PathBuf, PathBuf, u8)> {
    let entries = || {
        cgroup.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            Some((controllers, path))
        })
    };
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let first = entries().find(|(controllers, _)| has(controllers)).and_then(|(_, path)| {
        mounts.iter().find(|m| m.version == 1 && m.controllers.iter().any(|c| c == controller)).map(|m| (m, path))
    });
    let (mount, path) = first.or_else(|| {
        let (_, path) = entries().find(|(controllers, _)| controllers.is_empty())?;
        mounts.iter().find(|m| m.version == 2).map(|m| (m, path))
    })?;
    // In a container the mount shows a part of the tree, and the path is written from the whole tree's root, or (with
    // a namespace of its own) from the part's root. `/../x` is a group outside of what this namespace sees.
    let relative = Path::new(path).strip_prefix(&mount.root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
    if relative.components().any(|part| part == std::path::Component::ParentDir) {
        return None;
    }
    Some((mount.point.join(relative), mount.point.clone(), mount.version))
}

#[cfg(test)]
mod tests {
    use super::{folder, mounts};
    use std::path::PathBuf;

    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const V2: &str = "24 22 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const DOCKER: &str = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

    #[test]
    fn folders() {
        for (label, mountinfo, cgroup, controller, expected) in [
            ("v1", V1, "4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/u\n", "memory", Some(("/sys/fs/cgroup/memory/a/b", 1))),
            ("v1 joint", V1, "4:memory:/a\n1:cpu,cpuacct:/c\n", "cpu", Some(("/sys/fs/cgroup/cpu,cpuacct/c", 1))),
            ("v2", V2, "0::/system.slice/x.service\n", "memory", Some(("/sys/fs/cgroup/system.slice/x.service", 2))),
            ("root", V2, "0::/\n", "cpu", Some(("/sys/fs/cgroup", 2))),
            ("container of v1", DOCKER, "4:memory:/docker/abc\n", "memory", Some(("/sys/fs/cgroup/memory", 1))),
            ("container, own namespace", DOCKER, "4:memory:/\n", "memory", Some(("/sys/fs/cgroup/memory", 1))),
            ("outside", V2, "0::/../other\n", "memory", None),
            ("not mounted", "", "0::/x\n", "memory", None),
            ("garbage", "x - y\n", "garbage", "memory", None),
        ] {
            let found = folder(cgroup, &mounts(mountinfo), controller);
            let found = found.map(|(path, _, version)| (path, version));
            assert_eq!(found, expected.map(|(path, version)| (PathBuf::from(path), version)), "{label}");
        }
    }
}
