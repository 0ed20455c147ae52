//! Files that are complete or absent, and how many of them are kept.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PREFIX: &str = "offheap-";
const SUFFIX: &str = ".samples.json";
const PARTIAL: &str = ".partial";
/// A partial file this old belongs to a process that was killed while writing it.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// `offheap-HOST-PID-START-SEQUENCE-REASON.samples.json`
pub(super) fn name(host: &str, pid: u32, started_at: u64, sequence: u64, reason: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let host: String = host.chars().map(safe).take(64).collect();
    format!("{PREFIX}{host}-{pid}-{started_at}-{sequence:04}-{reason}{SUFFIX}")
}

/// Writes a file aside and then gives it its name, so that whoever sees the name sees the whole file.
pub(super) fn write(
    directory: &Path,
    name: &str,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let aside = directory.join(format!(".{name}{PARTIAL}"));
    let path = directory.join(name);
    let written = (|| {
        let mut file = BufWriter::with_capacity(64 << 10, File::create(&aside)?);
        fill(&mut file)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&aside, &path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written.map(|()| path)
}

/// Removes the oldest files until the rest is within both bounds. The newest stays in any case.
pub(super) fn retain(directory: &Path, keep_files: u64, keep_bytes: u64) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(modified) = metadata.modified() else { continue };
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) && metadata.is_file() {
            files.push((modified, metadata.len(), entry.path()));
        } else if name.starts_with(&format!(".{PREFIX}")) && name.ends_with(PARTIAL) {
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            if age > ABANDONED_AFTER {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    // By name within one moment: the sequence number is in it.
    files.sort_by(|a, b| (b.0, &b.2).cmp(&(a.0, &a.2)));
    let mut bytes = 0u64;
    for (index, (_, length, path)) in files.iter().enumerate() {
        bytes = bytes.saturating_add(*length);
        if index > 0 && (index as u64 >= keep_files || bytes > keep_bytes) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn names_are_safe_and_sort_by_sequence() {
        assert_eq!(name("a/b c", 7, 99, 3, "rss"), "offheap-a_b_c-7-99-0003-rss.samples.json");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let failed = write(directory.path(), "x", |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(failed.is_err());
        assert!(names(directory.path()).is_empty());
        let path = write(&directory.path().join("new/dir"), "x", |out| out.write_all(b"whole")).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"whole");
    }

    #[test]
    fn the_newest_are_kept_within_count_and_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let all: Vec<_> = (0..6).map(|sequence| name("h", 1, 2, sequence, "rss")).collect();
        for name in &all {
            write(directory.path(), name, |out| out.write_all(&[0; 100])).unwrap();
        }
        fs::write(directory.path().join("somebody-elses"), [0; 1000]).unwrap();
        retain(directory.path(), 4, u64::MAX);
        assert_eq!(names(directory.path())[..4], all[2..]);
        retain(directory.path(), 4, 250);
        assert_eq!(names(directory.path())[..2], all[4..]);
        retain(directory.path(), 4, 1);
        assert_eq!(names(directory.path()), [all[5].clone(), "somebody-elses".into()]);
    }
}
