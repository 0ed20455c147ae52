//! `/proc/PID/maps`, as dumps carry it.
//!
//! ```text
//! 55d0a0020000-55d0a00c0000 r-xp 00020000 fd:01 4242                       /srv/demo/bin/ledgerd
//! 7f2000000000-7f2000001000 r-xs 00000000 00:01 2049                       /memfd:jit-cache (deleted)
//! 7fa9c03f3000-7fa9c0400000 rw-p 00000000 00:00 0
//! 0000000104220000-00000001042a4000: /Users/dev/demo/ledgerd
//! ```
//!
//! Everything but the inode is hexadecimal, the device too. The path is the rest of the line and may hold anything; the
//! kernel writes a line feed in it as `\012` and escapes nothing else. The last form is what jemalloc writes on macOS.

use super::text::{Cursor, Lines, SECOND_PROFILE, begins_profile, excerpt, lossy};
use crate::address::{FileOffset, RuntimeAddress};
use crate::error::DamageLog;
use crate::profile::Mapping;

/// Read a map section: the executable segments, the main executable's first, then by address as they stand.
///
/// `first_line` is the number of the line before the section, for messages.
pub(crate) fn parse(section: &[u8], first_line: u64, damage: &mut DamageLog) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut before: Option<MapLine> = None;
    for line in Lines::new(section) {
        let number = first_line + line.number;
        if line.text.trim_ascii().is_empty() || is_detail(line.text) {
            continue;
        }
        if begins_profile(line.text) {
            damage.at_line(number, SECOND_PROFILE);
            break;
        }
        // The end of what was pasted as a code block.
        if line.text.trim_ascii() == b"```" {
            break;
        }
        let entry = map_line(line.text);
        // A path that ends where the file ends may have been longer.
        let whole = line.ended || line.text.ends_with(b"]");
        match (entry, whole) {
            (Some(entry), false) if before.as_ref().is_some_and(|other| entry.is_of_file(other)) => {
                damage.at_line(
                    number,
                    "the map section is cut behind this mapping, whose path is that of the line before",
                );
                push(&mut mappings, &entry);
            }
            (Some(entry), true) => {
                push(&mut mappings, &entry);
                before = Some(entry);
            }
            (_, false) => damage.at_line(number, "the map section is cut here; the last mapping is left out"),
            (None, true) => {
                damage.at_line(number, format!("not a mapping, left out: `{}`", excerpt(line.text)));
            }
        }
    }
    main_first(&mut mappings, None);
    mappings
}

/// One line of the section.
struct MapLine {
    mapping: Mapping,
    executable: bool,
}

impl MapLine {
    fn is_of_file(&self, other: &Self) -> bool {
        let file = |line: &Self| (line.mapping.path.clone(), line.mapping.device, line.mapping.inode);
        self.mapping.is_file() && file(self) == file(other)
    }
}

/// A line of `smaps` below that of its mapping: `Rss:                 132 kB`, `VmFlags: rd ex mr`.
fn is_detail(text: &[u8]) -> bool {
    let word = &text[..text.iter().position(|&b| b == b':').unwrap_or(0)];
    word.first().is_some_and(u8::is_ascii_uppercase) && word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn map_line(text: &[u8]) -> Option<MapLine> {
    let mut cursor = Cursor(text);
    cursor.blanks();
    let start = RuntimeAddress(cursor.hex()?);
    cursor.skip(b"-")?;
    let end = RuntimeAddress(cursor.hex()?);
    if end <= start {
        return None;
    }
    let mapping = Mapping { start, end, ..Mapping::default() };
    if cursor.skip(b":").is_some() {
        cursor.blanks();
        let mapping = Mapping { path: lossy(cursor.0).into(), ..mapping };
        return Some(MapLine { mapping, executable: true });
    }
    cursor.blanks();
    let permissions = cursor.word();
    if permissions.len() < 4 || !permissions.iter().all(|b| b"rwxsp-".contains(b)) {
        return None;
    }
    cursor.blanks();
    let offset = FileOffset(cursor.hex()?);
    cursor.blanks();
    let major = cursor.hex()?;
    cursor.skip(b":")?;
    let minor = cursor.hex()?;
    cursor.blanks();
    let inode = cursor.decimal()?;
    if cursor.blanks() == 0 && !cursor.0.is_empty() {
        return None;
    }
    let (path, deleted) = path(cursor.0);
    let device = Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?));
    let mapping = Mapping { offset, device, inode: Some(inode), path: path.into(), deleted, ..mapping };
    Some(MapLine { mapping, executable: permissions.contains(&b'x') })
}

/// The path without its mark, and whether it had one.
fn path(text: &[u8]) -> (String, bool) {
    let text = lossy(text).replace("\\012", "\n");
    match text.strip_suffix(" (deleted)") {
        Some(path) => (path.to_owned(), true),
        None => (text, false),
    }
}

/// Keep an executable mapping. Segments that were torn apart (by `mprotect`, by huge pages) are put together again.
fn push(mappings: &mut Vec<Mapping>, line: &MapLine) {
    if !line.executable {
        return;
    }
    let next = line.mapping.clone();
    if let Some(last) = mappings.last_mut()
        && last.end == next.start
        && last.is_file()
        && last.offset.0.checked_add(last.end.0 - last.start.0) == Some(next.offset.0)
        && (&last.path, last.device, last.inode, last.deleted) == (&next.path, next.device, next.inode, next.deleted)
    {
        last.end = next.end;
        return;
    }
    mappings.push(next);
}

/// Move the main executable's mapping to the front, where stock tools look for it.
///
/// Without its path it is the first file that is not named like a library: the kernel maps a position-independent
/// executable, and any fixed one, below the libraries.
pub(crate) fn main_first(mappings: &mut [Mapping], exe: Option<&str>) {
    let is_main = |m: &Mapping| match exe {
        Some(exe) => *m.path == *exe,
        None => m.is_file() && !is_library(m.base_name()),
    };
    if let Some(main) = mappings.iter().position(is_main) {
        mappings[..=main].rotate_right(1);
    }
}

/// `libx.so`, `libx.so.1.2`, `libx-2.36.so`, `libx.dylib`.
fn is_library(base_name: &str) -> bool {
    base_name.ends_with(".so") || base_name.contains(".so.") || base_name.ends_with(".dylib")
}

#[cfg(test)]
mod tests {
    use super::{map_line, parse};
    use crate::error::DamageLog;

    fn read(section: &str) -> (Vec<String>, usize) {
        let mut damage = DamageLog::default();
        let mappings = parse(section.as_bytes(), 10, &mut damage);
        let shown = mappings
            .iter()
            .map(|m| {
                let mark = if m.deleted { " deleted" } else { "" };
                format!("{}-{}+{} {:?}{mark}", m.start, m.end, m.offset, m.path)
            })
            .collect();
        (shown, damage.into_entries().len())
    }

    #[test]
    fn every_part_of_a_line_is_kept() {
        let line = map_line(b"7f10c0010000-7f10c0090000 r-xp 00010000 103:0a 18446744073709551615 /usr/lib/my lib.so")
            .expect("a mapping");
        assert!(line.executable);
        assert_eq!(&*line.mapping.path, "/usr/lib/my lib.so");
        assert_eq!(line.mapping.device, Some((0x103, 0x0a)));
        assert_eq!(line.mapping.inode, Some(u64::MAX));
        assert_eq!(line.mapping.offset.0, 0x10000);
    }

    #[test]
    fn executable_segments_are_kept_and_torn_ones_mended() {
        let (mappings, damage) = read(
            "55000000-55001000 r--p 00000000 fd:01 42 /srv/app\n\
             55001000-55003000 r-xp 00001000 fd:01 42 /srv/app\n\
             55003000-55004000 r-xp 00003000 fd:01 42 /srv/app\n\
             55004000-55005000 r-xp 00009000 fd:01 42 /srv/app\n\
             ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
        );
        assert_eq!(
            mappings,
            [
                "0x55001000-0x55004000+0x1000 \"/srv/app\"",
                "0x55004000-0x55005000+0x9000 \"/srv/app\"",
                "0xffffffffff600000-0xffffffffff601000+0x0 \"[vsyscall]\"",
            ]
        );
        assert_eq!(damage, 0);
    }

    #[test]
    fn odd_paths_are_read_as_the_kernel_wrote_them() {
        let (mappings, damage) = read(
            "1000-2000 r-xp 00000000 fd:01 42 /srv/a\\012b\\040c (deleted)\n\
             2000-3000 r-xp 00000000 fd:01 43 /srv/(deleted)\n\
             3000-4000 r-xp 00000000 00:00 0\n\
             4000-5000 r-xp 00000000 00:00 0 \n",
        );
        assert_eq!(
            mappings,
            [
                "0x1000-0x2000+0x0 \"/srv/a\\nb\\\\040c\" deleted",
                "0x2000-0x3000+0x0 \"/srv/(deleted)\"",
                "0x3000-0x4000+0x0 \"\"",
                "0x4000-0x5000+0x0 \"\"",
            ]
        );
        assert_eq!(damage, 0);
    }

    #[test]
    fn the_main_executable_comes_first() {
        let (mappings, _) = read(
            "1000-2000 r-xp 00000000 fd:01 1 /lib/libc.so.6\n\
             2000-3000 r-xp 00000000 00:00 0 [vdso]\n\
             3000-4000 r-xp 00000000 00:01 9 /memfd:jit (deleted)\n\
             4000-5000 r-xp 00000000 fd:01 2 /srv/app.sock\n",
        );
        assert!(mappings[0].contains("/srv/app.sock"), "{mappings:?}");
        assert!(mappings[1].contains("libc"), "{mappings:?}");
    }

    #[test]
    fn a_last_line_without_end_is_kept_when_its_path_cannot_be_longer() {
        let lines = |path| format!("1000-2000 r--p 00000000 fd:01 1 /srv/app\n2000-3000 r-xp 00001000 fd:01 1 {path}");
        assert_eq!(read(&lines("/srv/app")), (vec!["0x2000-0x3000+0x1000 \"/srv/app\"".to_owned()], 1));
        assert_eq!(read(&lines("/srv/ap")), (vec![], 1));
    }

    #[test]
    fn details_of_smaps_are_passed_over_and_a_second_dump_ends_the_section() {
        let (mappings, damage) = read(
            "1000-2000 r-xp 00000000 fd:01 1 /srv/app\nSize:                  4 kB\nAnonHugePages:  0 kB\nVmFlags: rd ex\n",
        );
        assert_eq!((mappings.len(), damage), (1, 0));
        let (mappings, damage) =
            read("1000-2000 r-xp 00000000 fd:01 1 /srv/app\nheap_v2/1\n@ 0x1\n2000-3000 r-xp 0 0:0 0 /b\n");
        assert_eq!((mappings.len(), damage), (1, 1));
    }

    #[test]
    fn wrong_and_cut_lines_are_reported() {
        let (mappings, damage) = read(
            "2000-1000 r-xp 00000000 fd:01 1 /backwards\n\
             1000-2000 r-xp 00000000 fd:01 x /no/inode\n\
             11000000000000000-2 r-xp 0 0:0 0 /too/large\n\
             1000-2000 r-xp 00000000 fd:01 1 /srv/ap",
        );
        assert_eq!((mappings.len(), damage), (0, 4));
    }
}
