//! The build information that Go puts into its binaries.

use std::collections::BTreeMap;

/// Longest string that is believed.
const MAX_STRING: u64 = 16 << 20;
/// Bytes around the module information, which mark it in a core dump.
const SENTINEL: usize = 16;

/// Which Go built a binary, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoBuild {
    /// For example `go1.26.6`.
    pub(crate) version: String,
    /// Build settings: `CGO_ENABLED`, `DefaultGODEBUG`, `-ldflags`, …
    pub(crate) settings: BTreeMap<String, String>,
}

impl GoBuild {
    /// From the section `.go.buildinfo` as Go 1.18 and newer write it:
    ///
    /// ```text
    ///  0  ff 20 "Go buildinf:"   magic, 14 bytes
    /// 14  08                     size of a pointer
    /// 15  02                     flags; 2: the strings follow (older versions point to them)
    /// 32  length as uvarint, version
    ///     length as uvarint, 16 bytes, module information, 16 bytes
    /// ```
    ///
    /// The module information has lines `build\tCGO_ENABLED=1`.
    pub(crate) fn parse(section: &[u8]) -> Option<Self> {
        if !section.starts_with(b"\xff Go buildinf:") || section.get(15)? & 2 == 0 {
            return None;
        }
        let (version, rest) = string(section.get(32..)?)?;
        let modules = string(rest).map(|(modules, _)| modules).unwrap_or_default();
        let inner = modules.len().checked_sub(SENTINEL).and_then(|end| modules.get(SENTINEL..end)).unwrap_or_default();
        let settings = String::from_utf8_lossy(inner)
            .lines()
            .filter_map(|line| {
                let (key, value) = line.strip_prefix("build\t")?.split_once('=')?;
                Some((unquoted(key), unquoted(value)))
            })
            .collect();
        Some(Self { version: String::from_utf8_lossy(version).into_owned(), settings })
    }

    /// The minor version: 26 of `go1.26.6`, `go1.26rc1` and `devel go1.26-abcdef`.
    pub(crate) fn minor(&self) -> Option<u32> {
        let digits = self.version.split("go1.").nth(1)?;
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }
}

fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length: u64 = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        length |= u64::from(byte & 0x7f).checked_shl(7 * index as u32)?;
        if byte & 0x80 == 0 {
            let rest = &bytes[index + 1..];
            return (length <= MAX_STRING).then(|| rest.split_at_checked(length as usize)).flatten();
        }
    }
    None
}

/// Values with special characters are written as Go string literals.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::GoBuild;

    fn section(version: &str, modules: &str) -> Vec<u8> {
        let mut bytes = b"\xff Go buildinf:\x08\x02".to_vec();
        bytes.resize(32, 0);
        bytes.push(version.len() as u8);
        bytes.extend_from_slice(version.as_bytes());
        let length = modules.len() + 32;
        bytes.extend_from_slice(&[(length & 0x7f | 0x80) as u8, (length >> 7) as u8]);
        bytes.extend_from_slice(&[b'['; 16]);
        bytes.extend_from_slice(modules.as_bytes());
        bytes.extend_from_slice(&[b']'; 16]);
        bytes
    }

    #[test]
    fn version_and_settings() {
        let modules = "path\tcommand\nmod\tx\t(devel)\t\nbuild\t-compiler=gc\nbuild\tCGO_ENABLED=1\n\
                       build\tDefaultGODEBUG=containermaxprocs=0,tlsmlkem=0\nbuild\t-ldflags=\"-X \\\"a=b\\\"\"\n";
        let build = GoBuild::parse(&section("go1.26.6", modules)).unwrap();
        assert_eq!((build.version.as_str(), build.minor()), ("go1.26.6", Some(26)));
        assert_eq!(build.settings["CGO_ENABLED"], "1");
        assert_eq!(build.settings["DefaultGODEBUG"], "containermaxprocs=0,tlsmlkem=0");
        assert_eq!(build.settings["-ldflags"], "-X \"a=b\"");
    }

    #[test]
    fn versions() {
        for (version, minor) in
            [("go1.27.3", Some(27)), ("devel go1.28-4f2c", Some(28)), ("go1.25rc1", Some(25)), ("x", None)]
        {
            let build = GoBuild { version: version.into(), ..GoBuild::default() };
            assert_eq!(build.minor(), minor, "{version}");
        }
    }

    #[test]
    fn what_is_cut_or_older_is_not_read() {
        let whole = section("go1.26.6", "build\tCGO_ENABLED=1\n");
        for length in 0..whole.len() {
            if let Some(build) = GoBuild::parse(&whole[..length]) {
                assert_eq!(build.version, "go1.26.6", "cut at {length}");
                assert!(build.settings.is_empty(), "cut at {length}");
            }
        }
        let mut pointers = whole;
        pointers[15] = 0;
        assert_eq!(GoBuild::parse(&pointers), None);
        assert_eq!(GoBuild::parse(&[0xff; 64]), None);
    }
}
