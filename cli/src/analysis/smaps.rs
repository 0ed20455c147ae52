//! `/proc/PID/smaps`: what each mapping keeps resident.
//!
//! ```text
//! 228e14000000-228e14400000 rw-p 00000000 00:00 0                          [anon: Go: heap]
//! Size:               4096 kB
//! Rss:                 824 kB
//! LazyFree:              0 kB
//! AnonHugePages:         0 kB
//! VmFlags: rd wr mr mw me ac
//! ```
//!
//! The kernel adds and drops keys between releases: unknown ones are passed over, missing ones read as 0, and the flags
//! are `None` where the kernel prints none.

/// One mapping; sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First address.
    pub(crate) start: u64,
    /// First address after it.
    pub(crate) end: u64,
    /// May be read.
    pub(crate) readable: bool,
    /// May be written.
    pub(crate) writable: bool,
    /// Writes are seen by other processes.
    pub(crate) shared: bool,
    /// Path, pseudo-file in brackets, or empty.
    pub(crate) name: String,
    /// Resident.
    pub(crate) rss: u64,
    /// Resident and mapped by other processes too.
    pub(crate) shared_resident: u64,
    /// Resident and not backed by a file any more, pages copied on write included.
    pub(crate) anonymous: u64,
    /// Resident in huge pages.
    pub(crate) anon_huge_pages: u64,
    /// Resident, but given up by `MADV_FREE`: the kernel takes it when it needs it.
    pub(crate) lazy_free: u64,
    /// Swapped out, not part of RSS.
    pub(crate) swap: u64,
    /// In pages of hugetlbfs, which are not part of RSS either.
    pub(crate) hugetlb: u64,
    /// `VmFlags` that tell owners apart; `None` where the kernel does not print them.
    pub(crate) flags: Option<Flags>,
}

/// The flags of a mapping that say who made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// `nr`: mapped with `MAP_NORESERVE`, as jemalloc (unless overcommitting is off) and glibc's arenas do and the Go
    /// runtime never does.
    pub(crate) no_reserve: bool,
}

/// A line that has no place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damaged {
    /// Number of the line, from 1.
    pub(crate) line: usize,
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} is neither the heading of a mapping nor one of its values", self.line)
    }
}

impl Mapping {
    /// Bytes of address space.
    pub(crate) fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Neither readable nor writable: address space that was reserved, or a guard.
    pub(crate) fn is_reserved(&self) -> bool {
        !self.readable && !self.writable
    }
}

/// Read the mappings, in the order of their addresses.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Mapping>, Damaged> {
    // Paths are bytes; everything else is ASCII.
    let text = String::from_utf8_lossy(text);
    let mut mappings: Vec<Mapping> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let damaged = || Damaged { line: index + 1 };
        if line.is_empty() {
            continue;
        }
        match (heading(line), mappings.last_mut()) {
            (Some(mapping), _) => mappings.push(mapping),
            (None, Some(mapping)) => value(mapping, line).ok_or_else(damaged)?,
            (None, None) => return Err(damaged()),
        }
    }
    Ok(mappings)
}

/// `START-END PERMISSIONS OFFSET DEVICE INODE NAME`
fn heading(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let (start, end) = field(&mut rest).split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let permissions = field(&mut rest).as_bytes();
    let &[read, write, _, share] = permissions else { return None };
    for _ in ["offset", "device", "inode"] {
        field(&mut rest);
    }
    (start <= end).then(|| Mapping {
        start,
        end,
        readable: read == b'r',
        writable: write == b'w',
        shared: share == b's',
        name: rest.trim_start().to_owned(),
        ..Mapping::default()
    })
}

/// Take the next field.
fn field<'a>(rest: &mut &'a str) -> &'a str {
    let trimmed = rest.trim_start_matches(' ');
    let (field, after) = trimmed.split_at(trimmed.find(' ').unwrap_or(trimmed.len()));
    *rest = after;
    field
}

/// `Key: N kB`, or the flags. `None` when the line is neither.
fn value(mapping: &mut Mapping, line: &str) -> Option<()> {
    let (key, value) = line.split_once(':')?;
    if key == "VmFlags" {
        let has = |flag| value.split_ascii_whitespace().any(|f| f == flag);
        mapping.flags = Some(Flags { no_reserve: has("nr") });
        return Some(());
    }
    // `THPeligible: 0` and what later kernels add need not be a size.
    let Some(kib) = value.trim().strip_suffix(" kB") else { return Some(()) };
    let bytes = kib.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    match key {
        "Rss" => mapping.rss = bytes,
        "Shared_Clean" | "Shared_Dirty" => mapping.shared_resident += bytes,
        "Anonymous" => mapping.anonymous = bytes,
        "AnonHugePages" => mapping.anon_huge_pages = bytes,
        "LazyFree" => mapping.lazy_free = bytes,
        "Swap" => mapping.swap = bytes,
        "Shared_Hugetlb" | "Private_Hugetlb" => mapping.hugetlb += bytes,
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{Damaged, Flags, Mapping, parse};

    #[test]
    fn values_belong_to_the_heading_above_them() {
        let text = b"7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n\
            Size:               2048 kB\nRss:                2044 kB\nShared_Clean:         4 kB\nShared_Dirty:         8 kB\n\
            Private_Dirty:      2032 kB\nAnonymous:          2044 kB\nLazyFree:            64 kB\nAnonHugePages:      2048 kB\n\
            Swap:                 16 kB\nTHPeligible:           1\nVmFlags: rd wr mr mw me nr hg \n\
            7f0000200000-7f0000201000 ---s 00000000 fe:00 77                         /srv/a b\\012c (deleted)\nRss: 0 kB\n";
        let mappings = parse(text).unwrap();
        assert_eq!(
            mappings,
            [
                Mapping {
                    start: 0x7f00_0000_0000,
                    end: 0x7f00_0020_0000,
                    readable: true,
                    writable: true,
                    rss: 2044 << 10,
                    shared_resident: 12 << 10,
                    anonymous: 2044 << 10,
                    anon_huge_pages: 2048 << 10,
                    lazy_free: 64 << 10,
                    swap: 16 << 10,
                    flags: Some(Flags { no_reserve: true }),
                    ..Mapping::default()
                },
                Mapping {
                    start: 0x7f00_0020_0000,
                    end: 0x7f00_0020_1000,
                    shared: true,
                    name: "/srv/a b\\012c (deleted)".into(),
                    ..Mapping::default()
                },
            ]
        );
    }

    #[test]
    fn addresses_use_all_64_bits_and_names_their_spaces() {
        let text = b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n\
            228e14000000-228e14400000 rw-p 00000000 00:00 0                          [anon: Go: heap]\n";
        let mappings = parse(text).unwrap();
        assert_eq!(mappings[0].start, 0xffff_ffff_ff60_0000);
        assert_eq!(mappings[1].name, "[anon: Go: heap]");
    }

    #[test]
    fn damage_is_told_with_its_line() {
        for (text, line) in [
            ("Rss: 4 kB\n", 1),
            ("1000-2000 rw-p 0 00:00 0\nRss: 4 kB\ngarbage\n", 3),
            ("1000-2000 rw-p 0 00:00 0\nRss: many kB\n", 2),
            ("1000-2000 rw-p 0 00:00 0\nRss: 99999999999999999999 kB\n", 2),
            ("2000-1000 rw-p 0 00:00 0\n", 1),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(Damaged { line }), "{text}");
        }
        assert_eq!(parse(b""), Ok(Vec::new()));
    }
}
