//! Names of files that are no profiles, for the message that refuses them.

use super::text::{Lines, excerpt};

/// What the first bytes say that this is, when it is certainly no profile.
pub(super) fn magic(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 14] = [
        (b"\x7fELF", "an ELF file (a program or library); give its heap profile instead"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"),
        (b"\xfd7zXZ\0", "compressed with xz; decompress it first"),
        (b"BZh", "compressed with bzip2; decompress it first"),
        (b"\x04\x22\x4d\x18", "compressed with lz4; decompress it first"),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"\xff\xfe", "UTF-16 text; convert it to UTF-8"),
        (b"\xfe\xff", "UTF-16 text; convert it to UTF-8"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O file"),
        (b"MZ", "a Windows program"),
        (b"PERFILE2", "a perf.data file"),
        (b"go 1.", "a Go execution trace"),
        (b"\x89PNG", "a PNG picture"),
        (b"JAVA PROFILE ", "a heap dump of a JVM, which holds Java objects"),
    ];
    if is_tar(bytes) {
        return Some("a tar archive; unpack it first");
    }
    if is_gperftools_cpu_profile(bytes) {
        return Some("a CPU profile of gperftools; a heap profile is expected");
    }
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, name)| name)
}

/// The archive's first header ends its fields with this word at a fixed place.
fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Words of the machine, here of 8 bytes: 0, 3, 0, period, 0.
fn is_gperftools_cpu_profile(bytes: &[u8]) -> bool {
    let word = |index: usize| bytes.get(8 * index..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
    [0, 1, 2, 4].map(word) == [0, 3, 0, 0].map(Some)
}

/// Beginnings of texts that are mistaken for heap profiles.
const TEXTS: [(&[u8], &str); 14] = [
    (b"goroutine profile:", "a goroutine profile of Go; its heap profile is at /debug/pprof/heap"),
    (b"threadcreate profile:", "a thread creation profile of Go; its heap profile is at /debug/pprof/heap"),
    (b"--- mutex:", "a mutex profile of Go; its heap profile is at /debug/pprof/heap"),
    (b"--- contention:", "a block profile of Go; its heap profile is at /debug/pprof/heap"),
    (b"goroutine ", "a listing of goroutines; Go's heap profile is at /debug/pprof/heap"),
    (b"desc: ", "an output of massif"),
    (b"<malloc version=", "what malloc_info prints: statistics of glibc's allocator, without stacks"),
    (b"MAPPED_LIBRARIES:", "the map section of a dump without the dump"),
    (b"Thread ", "a listing of threads"),
    (b"Using local file", "the messages of jeprof; give the dump itself"),
    (b"digraph ", "a graph that was drawn from a profile; give the profile itself"),
    (b"<svg", "a picture; give the profile that it was drawn from"),
    (b"<?xml", "XML, a picture perhaps; give the profile itself"),
    (b"Total: ", "a table that was printed from a profile; give the profile itself"),
];

/// Words for an input that nothing recognised.
pub(super) fn describe(bytes: &[u8]) -> String {
    let text = bytes.trim_ascii();
    let starts = |prefix: &[u8]| text.len() >= prefix.len() && text[..prefix.len()].eq_ignore_ascii_case(prefix);
    if bytes.is_empty() {
        return "empty (0 bytes)".into();
    }
    if text.is_empty() {
        return "blank".into();
    }
    if starts(b"<!doctype html") || starts(b"<html") {
        return format!("an HTML page (`{}`)", excerpt(text));
    }
    if memchr::memmem::find(text, b"Begin jemalloc statistics").is_some() {
        return "the text of malloc_stats_print; `offheap stats FILE` reads it".into();
    }
    if starts(b"{") && memchr::memmem::find(&text[..text.len().min(256)], b"\"jemalloc\"").is_some() {
        return "the JSON of malloc_stats_print; `offheap stats FILE` reads it".into();
    }
    if starts(b"{") || starts(b"[") {
        return format!("JSON that is no sample table (`{}`)", excerpt(text));
    }
    if let Some((_, name)) = TEXTS.iter().find(|(beginning, _)| text.starts_with(beginning)) {
        return (*name).into();
    }
    let first = Lines::new(text).next().map_or(text, |line| line.text);
    if is_map_line(first) {
        return "a copy of /proc/PID/maps; give it beside a dump, with --maps".into();
    }
    let head = &text[..text.len().min(4096)];
    let is_text = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true)
        && !head.iter().any(|&b| b.is_ascii_control() && !b"\n\r\t\x1b".contains(&b));
    if is_text {
        format!("text that begins with `{}`", excerpt(first))
    } else {
        format!("{} bytes of binary data", bytes.len())
    }
}

/// `55d0a0020000-55d0a00c0000 r-xp …`
fn is_map_line(line: &[u8]) -> bool {
    let mut words = line.split(|&b| b == b' ');
    let range = words.next().unwrap_or_default();
    let is_range = range.contains(&b'-') && range.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    is_range && words.next().is_some_and(|p| p.len() == 4 && p.iter().all(|b| b"rwxsp-".contains(b)))
}

#[cfg(test)]
mod tests {
    use super::{describe, magic};

    #[test]
    fn mistaken_files_are_named() {
        let cpu = [0_u64, 3, 0, 10_000, 0, 1].map(u64::to_le_bytes).concat();
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, name) in [
            (&cpu[..], "CPU profile of gperftools"),
            (&tar, "tar archive"),
            (b"JAVA PROFILE 1.0.2\0", "JVM"),
            (b"\x7fELF\x02", "ELF"),
        ] {
            assert!(magic(bytes).is_some_and(|found| found.contains(name)), "{name}: {:?}", magic(bytes));
        }
        for (text, name) in [
            ("", "empty"),
            ("\n\n", "blank"),
            ("goroutine profile: total 7\n1 @ 0x1\n", "goroutine profile"),
            ("goroutine 1 [running]:\n", "listing of goroutines"),
            ("55d0a0020000-55d0a00c0000 r-xp 00010000 fd:01 42 /srv/app\n", "--maps"),
            ("{\"jemalloc\":{}}", "offheap stats"),
            ("{\"a\":1}", "JSON"),
            ("404 page not found\n", "text that begins with `404 page"),
            ("\0\0\0", "3 bytes of binary"),
        ] {
            assert!(describe(text.as_bytes()).contains(name), "{name}: {}", describe(text.as_bytes()));
        }
    }
}
