//! Paths as a process sees them that has another root directory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links followed at most, as in the kernel.
const LINKS_MAX: usize = 40;

/// Where an absolute path leads below `root`, links resolved by what `root` holds: in the copy of a container's files
/// `/opt/svc -> /releases/42` means the copy's `releases`, not this machine's, and `..` ends at the root.
///
/// A path that leads nowhere, or in circles, is what the caller finds out when it opens it.
pub(crate) fn resolve(root: &Path, path: &Path) -> PathBuf {
    let mut below: Vec<OsString> = Vec::new();
    let mut rest: VecDeque<OsString> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            below.pop();
            continue;
        }
        below.push(part);
        let Ok(target) = join(root, &below).read_link() else { continue };
        links += 1;
        if links > LINKS_MAX {
            break;
        }
        below.pop();
        if target.is_absolute() {
            below.clear();
        }
        parts(&target).rev().for_each(|part| rest.push_front(part));
    }
    below.extend(rest);
    join(root, &below)
}

fn join(root: &Path, below: &[OsString]) -> PathBuf {
    below.iter().fold(root.to_owned(), |path, part| path.join(part))
}

/// Names and `..`, without roots and `.`.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::resolve;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn links_stay_below_the_root() {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path();
        fs::create_dir_all(root.join("releases/42/bin")).expect("a directory");
        fs::create_dir_all(root.join("opt")).expect("a directory");
        for (target, link) in [
            ("/releases/42", "opt/absolute"),
            ("../releases/42", "opt/relative"),
            ("../../../../releases/42", "opt/above"),
            ("/opt/absolute/bin", "opt/twice"),
            ("circle", "opt/circle"),
            ("/nowhere", "opt/broken"),
        ] {
            symlink(target, root.join(link)).expect("a link");
        }
        for (label, path, expected) in [
            ("no link", "/releases/42/bin/svc", "releases/42/bin/svc"),
            ("absolute", "/opt/absolute/bin/svc", "releases/42/bin/svc"),
            ("relative", "/opt/relative/bin/svc", "releases/42/bin/svc"),
            ("above the root", "/opt/above/bin/svc", "releases/42/bin/svc"),
            ("through another", "/opt/twice/svc", "releases/42/bin/svc"),
            ("in circles", "/opt/circle/svc", "opt/circle/svc"),
            ("to nothing", "/opt/broken/svc", "nowhere/svc"),
            ("out of the root", "/../../etc/../releases/./42", "releases/42"),
        ] {
            assert_eq!(resolve(root, Path::new(path)), root.join(expected), "{label}");
        }
    }
}
