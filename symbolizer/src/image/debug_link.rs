//! What an image says about the files that its debug information was moved to.

use super::bytes::{c_str_at, tail_at, u32_at};
use super::elf::{Elf, hex};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// `.gnu_debuglink`: the file name of the separate debug file and the CRC of its content.
///
/// ```text
/// name NUL · zeros up to a multiple of 4 · crc32 u32
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// File name, without a directory.
    pub name: PathBuf,
    /// CRC-32 of the whole file.
    pub crc: u32,
}

/// `.gnu_debugaltlink`: the file that `dwz` moved common parts to, by its build id.
///
/// ```text
/// path NUL · build id
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AltLink {
    /// Path, absolute or from the directory of the file that says it.
    pub path: PathBuf,
    /// Its build id, lower-case hex.
    pub build_id: String,
}

impl DebugLink {
    /// The link of an image, if it has one.
    #[must_use]
    pub fn of(elf: &Elf<'_>) -> Option<Self> {
        Self::parse(&elf.content(".gnu_debuglink")?)
    }

    fn parse(section: &[u8]) -> Option<Self> {
        let name = c_str_at(section, 0)?;
        let crc = u32_at(section, (name.len() as u64 + 1).next_multiple_of(4))?;
        // A name with a directory in it could lead anywhere.
        let name = (!name.is_empty() && !name.contains(&b'/')).then(|| OsStr::from_bytes(name))?;
        Some(Self { name: name.into(), crc })
    }

    /// Whether a file has the content that the link means.
    #[must_use]
    pub fn matches(&self, content: &[u8]) -> bool {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        crc.sum() == self.crc
    }
}

impl AltLink {
    /// The link of an image or debug file, if it has one.
    #[must_use]
    pub fn of(elf: &Elf<'_>) -> Option<Self> {
        Self::parse(&elf.content(".gnu_debugaltlink")?)
    }

    fn parse(section: &[u8]) -> Option<Self> {
        let path = c_str_at(section, 0).filter(|path| !path.is_empty())?;
        let build_id = tail_at(section, path.len() as u64 + 1).filter(|id| (4..=64).contains(&id.len()))?;
        Some(Self { path: OsStr::from_bytes(path).into(), build_id: hex(build_id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_links() {
        let link = |name: &str, crc| Some(DebugLink { name: name.into(), crc });
        assert_eq!(DebugLink::parse(b"libx.debug\0\0\x01\x02\x03\x04"), link("libx.debug", 0x0403_0201));
        assert_eq!(DebugLink::parse(b"abc\0\x01\0\0\0"), link("abc", 1));
        for damaged in [&b"abc\0\x01\0\0"[..], b"abc", b"", b"\0\0\0\0\x01\0\0\0", b"../../../etc/x\0\0\x01\0\0\0"] {
            assert_eq!(DebugLink::parse(damaged), None, "{damaged:?}");
        }
        assert!(DebugLink { name: "x".into(), crc: 0xcbf4_3926 }.matches(b"123456789"));
    }

    #[test]
    fn alt_links() {
        let expected = AltLink { path: "../common.dwz".into(), build_id: "0123abcd".into() };
        assert_eq!(AltLink::parse(b"../common.dwz\0\x01\x23\xab\xcd"), Some(expected));
        assert_eq!(AltLink::parse(b"../common.dwz\0"), None);
        assert_eq!(AltLink::parse(b"../common.dwz"), None);
    }
}
