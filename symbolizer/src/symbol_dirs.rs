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
    index: OnceLock<Index>,
}

/// What the directories hold.
#[derive(Debug, Default)]
struct Index {
    by_build_id: HashMap<String, Vec<PathBuf>>,
    files: Vec<KeptFile>,
}

/// An image or debug file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Where it is.
    pub path: PathBuf,
    /// It is a program and no library.
    pub is_program: bool,
    /// Size of its code.
    pub code_bytes: u64,
}

/// Files looked into at most. A home directory given by mistake must not take minutes.
const FILES_MAX: usize = 20_000;
/// Directories below a named one.
const DEPTH_MAX: usize = 6;

impl SymbolDirs {
    /// These directories; single files are allowed too.
    #[must_use]
    pub fn new(dirs: &[PathBuf]) -> Self {
        Self { dirs: dirs.to_vec(), index: OnceLock::new() }
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
        self.index().by_build_id.get(build_id).map_or(&[], Vec::as_slice)
    }

    /// All images and debug files in them.
    #[must_use]
    pub fn files(&self) -> &[KeptFile] {
        &self.index().files
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| self.look_into_all())
    }

    fn look_into_all(&self) -> Index {
        let mut index = Index::default();
        let mut files = Vec::new();
        for dir in &self.dirs {
            collect_files(dir, DEPTH_MAX, &mut files);
        }
        // The order of a directory is that of its file system; the report should not depend on it.
        files.sort();
        for path in files {
            let Ok(file) = ImageFile::open(&path) else { continue };
            let Ok(elf) = Elf::parse(file.bytes()) else { continue };
            index.files.push(KeptFile {
                path: path.clone(),
                is_program: elf.is_program(),
                code_bytes: code_bytes(&elf),
            });
            if let Some(build_id) = elf.build_id() {
                index.by_build_id.entry(build_id).or_default().push(path);
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

fn code_bytes(elf: &Elf<'_>) -> u64 {
    let code = elf.segments().iter().filter(|segment| segment.executable);
    code.fold(0, |sum, segment| sum.saturating_add(segment.memory_size))
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
        let bytes = fs::read(&exe).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        let build_id = elf.build_id().unwrap();
        assert_eq!(dirs.by_build_id(&build_id), std::slice::from_ref(&kept));
        assert_eq!(dirs.files(), [KeptFile { path: kept, is_program: true, code_bytes: code_bytes(&elf) }]);
        assert!(dirs.by_build_id("abcd").is_empty());
        assert!(dirs.by_build_id("").is_empty());
    }
}
