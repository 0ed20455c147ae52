use memmap2::Mmap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use thiserror::Error;

/// A file could not be opened as an image.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is no such file.
    #[error("no such file")]
    Missing,
    /// A directory, pipe or device: opening it could block for ever.
    #[error("not a regular file")]
    NotRegular,
    /// Permission or input error.
    #[error("{0}")]
    Io(io::Error),
}

/// What the kernel calls a file: the two columns of a map line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device, `(major, minor)`.
    pub device: (u32, u32),
    /// Inode.
    pub inode: u64,
}

/// A file mapped for reading.
#[derive(Debug)]
pub struct ImageFile {
    path: PathBuf,
    map: Mmap,
    identity: FileIdentity,
    modified: Option<SystemTime>,
}

impl ImageFile {
    /// Map the file.
    ///
    /// # Errors
    /// When it is missing, not a regular file, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // Looked at before it is opened: opening a FIFO waits for its writer.
        let metadata = fs::metadata(path).map_err(OpenError::from)?;
        if !metadata.is_file() {
            return Err(OpenError::NotRegular);
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(OpenError::NotRegular);
        }
        // SAFETY: the map is private and read-only. Not guaranteed: that nobody truncates the file while it is mapped,
        // which would raise SIGBUS on a later read. Linkers and package managers replace files instead of truncating
        // them, and reading a debug file of hundreds of megabytes whole would cost more than lookups do.
        let map = unsafe { Mmap::map(&file)? };
        let identity = FileIdentity { device: device_of(metadata.dev()), inode: metadata.ino() };
        Ok(Self { path: path.to_owned(), map, identity, modified: metadata.modified().ok() })
    }

    /// Path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// When it was last written.
    #[must_use]
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Its inode.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.identity.inode
    }

    /// Whether a map line with this device and inode speaks of this file.
    ///
    /// On overlay and btrfs file systems `stat` and map lines name different devices for one file. Since the file is
    /// mapped here, the kernel can be asked what its map line reads.
    #[must_use]
    pub fn is(&self, recorded: FileIdentity) -> bool {
        self.identity == recorded || self.identity_in_maps() == Some(recorded)
    }

    fn identity_in_maps(&self) -> Option<FileIdentity> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let address = self.map.as_ptr() as u64;
        maps.lines().find_map(|line| identity_of_line(line, address))
    }
}

/// ```text
/// 7f0c8a228000-7f0c8a3bd000 r--p 00028000 fe:00 247260                     /usr/bin/grep
/// ```
fn identity_of_line(line: &str, address: u64) -> Option<FileIdentity> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    if !(hex(start)?..hex(end)?).contains(&address) {
        return None;
    }
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let device = (u32::try_from(hex(major)?).ok()?, u32::try_from(hex(minor)?).ok()?);
    Some(FileIdentity { device, inode: fields.next()?.parse().ok()? })
}

/// Linux packs a device number as `MMMM_Mmmm_mmmM_MMmm`: minor in bits 0–7 and 20–31, major in 8–19 and 32–63.
fn device_of(device: u64) -> (u32, u32) {
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & 0xffff_ff00);
    (major as u32, minor as u32)
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_map_line_names_the_same_file() {
        let file = ImageFile::open(&std::env::current_exe().unwrap()).unwrap();
        let in_maps = file.identity_in_maps().expect("mapped, so it has a line");
        assert!(file.is(in_maps));
        assert!(!file.is(FileIdentity { inode: in_maps.inode + 1, ..in_maps }));
        assert_eq!(in_maps.inode, file.identity.inode);
    }

    #[test]
    fn only_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(ImageFile::open(dir.path()), Err(OpenError::NotRegular)));
        assert!(matches!(ImageFile::open(&dir.path().join("none")), Err(OpenError::Missing)));
        assert!(matches!(ImageFile::open(Path::new("/dev/zero")), Err(OpenError::NotRegular)));
        let empty = dir.path().join("empty");
        fs::write(&empty, "").unwrap();
        assert_eq!(ImageFile::open(&empty).unwrap().bytes(), b"");
    }

    #[test]
    fn device_numbers() {
        assert_eq!(device_of(0xfe00), (0xfe, 0));
        assert_eq!(device_of(0x0010_0803), (8, 0x103));
    }
}
