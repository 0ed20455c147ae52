//! Directories that the user names as places of images and debug files.

use crate::image::{Elf, ImageFile};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The directories of `--symbols`.
///
/// Files in them are found by their place in a `.build-id` tree or by name, and, whatever they are called, by the build
/// id inside them: a debug file that was kept under a name of somebody's own is what people have.
#[derive(Debug, Default)]
pub struct SymbolDirs {
    dirs: Vec<PathBuf>,
    by_build_id: OnceLock<HashMap<String, Vec<PathBuf>>>,
}

/// Files looked into at most. A home directory given by mistake must not take minutes.
const FILES_MAX: usize = 20_000;
/// Directories below a named one.
const DEPTH_MAX: usize = 6;

impl SymbolDirs {
    /// These directories; single files are allowed too.
    #[must_use]
    pub fn new(dirs: &[PathBuf]) -> Self {
        Self { dirs: dirs.to_vec(), by_build_id: OnceLock::new() }
    }

    /// The directories in the order in which they were named.
    #[must_use]
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// Files with this build id, found by looking into all.
    #[must_use]
    pub fn by_build_id(&self, build_id: &str) -> &[PathBuf] {
        if build_id.is_empty() || self.dirs.is_empty() {
            return &[];
        }
        self.by_build_id.get_or_init(|| self.index()).get(build_id).map_or(&[], Vec::as_slice)
    }

    fn index(&self) -> HashMap<String, Vec<PathBuf>> {
        let mut index: HashMap<String, Vec<PathBuf>> = HashMap::new();
        let mut files = Vec::new();
        for dir in &self.dirs {
            collect_files(dir, DEPTH_MAX, &mut files);
        }
        // The order of a directory is that of its file system; the report should not depend on it.
        files.sort();
        for path in files {
            if let Some(build_id) = build_id_of(&path) {
                index.entry(build_id).or_default().push(path);
            }
        }
        index
    }
}

/// Where a build id stands in a `.build-id` tree: `ab/cdef…`.
pub(crate) fn build_id_path(build_id: &str) -> Option<(&str, &str)> {
    let is_hex = build_id.bytes().all(|b| b.is_ascii_hexdigit());
    (build_id.len() > 2 && is_hex).then(|| build_id.split_at(2))
}

fn collect_files(path: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    // Links to directories are not followed, so there are no loops; links to files are fine.
    let Ok(metadata) = path.symlink_metadata() else { return };
    if !metadata.is_dir() {
        if files.len() < FILES_MAX && path.is_file() {
            files.push(path.to_owned());
        }
        return;
    }
    let Ok(entries) = path.read_dir() else { return };
    // Its files are found without looking, by their names.
    let is_tree = path.file_name().is_some_and(|name| name == ".build-id");
    if depth == 0 || is_tree {
        return;
    }
    for entry in entries.filter_map(Result::ok) {
        collect_files(&entry.path(), depth - 1, files);
    }
}

fn build_id_of(path: &Path) -> Option<String> {
    let file = ImageFile::open(path).ok()?;
    Elf::parse(file.bytes()).ok()?.build_id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn build_id_paths() {
        assert_eq!(build_id_path("abcdef"), Some(("ab", "cdef")));
        assert_eq!(build_id_path("ab"), None);
        assert_eq!(build_id_path("../../etc/passwd"), None);
    }

    #[test]
    fn found_by_build_id_under_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("releases/1.2");
        fs::create_dir_all(&inner).unwrap();
        symlink(dir.path(), inner.join("loop")).unwrap();
        fs::write(inner.join("notes.txt"), "not an image").unwrap();
        let exe = std::env::current_exe().unwrap();
        let kept = inner.join("kept-by-me");
        symlink(&exe, &kept).unwrap();
        let dirs = SymbolDirs::new(&[dir.path().to_owned(), "/no/such/dir".into()]);
        assert_eq!(dirs.by_build_id(&build_id_of(&exe).unwrap()), [kept]);
        assert!(dirs.by_build_id("abcd").is_empty());
        assert!(dirs.by_build_id("").is_empty());
    }
}
