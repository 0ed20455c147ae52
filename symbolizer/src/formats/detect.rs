//! Which format an input is, by its content.
//!
//! In this order:
//! 1. gzip magic: decompress, then the same questions about what is inside;
//! 2. magic numbers of other files (ELF, zstd, …): named and refused;
//! 3. text with a header line `heap_v2/…` or `heap profile: …` in its first megabyte, whatever stands before it;
//! 4. a JSON object: the sample table, else named and refused;
//! 5. a protobuf message whose first field is that of a pprof profile;
//! 6. text whose lines end in numbers: folded stacks;
//! 7. anything else: named and refused.
//!
//! Text comes before protobuf because a protobuf's first byte is a line feed, and a dump after an empty log line would
//! do as the beginning of a message.

use super::text::{Lines, excerpt};
use super::{ParseOptions, Parsed, folded, go_text, gzip, heap_v2, maps, pprof, samples};
use crate::error::{Damage, DamageLog, ReadError};
use crate::sampling::SamplingPeriod;
use std::borrow::Cow;

/// Read a profile of any input format.
///
/// # Errors
/// When no format recognises the input or nothing can be salvaged.
pub fn parse(bytes: &[u8]) -> Result<Parsed, ReadError> {
    parse_with(bytes, &ParseOptions::default())
}

/// Read a profile of any input format.
///
/// # Errors
/// When no format recognises the input or nothing can be salvaged.
pub fn parse_with(bytes: &[u8], options: &ParseOptions) -> Result<Parsed, ReadError> {
    // A file compressed twice happens, by a web server's content encoding for example; more than that is a trick.
    const LAYERS: usize = 2;
    let limit = options.max_inflated_bytes.unwrap_or_else(|| ParseOptions::default_limit(bytes.len() as u64));
    let mut content = Cow::Borrowed(bytes);
    let mut cut = None;
    for _ in 0..LAYERS {
        if cut.is_none() && gzip::is_gzip(&content) {
            let inflated = gzip::inflate(&content, limit)?;
            cut = inflated.cut;
            content = Cow::Owned(inflated.bytes);
        }
    }
    let result = parse_content(&content, options);
    let Some(cut) = cut else { return result };
    match result {
        Ok(mut parsed) => {
            parsed.damage.insert(0, Damage { line: None, offset: None, what: cut });
            Ok(parsed)
        }
        Err(ReadError::Damaged { format, what }) => Err(ReadError::Damaged { format, what: format!("{cut}; {what}") }),
        Err(ReadError::NotAProfile { .. }) => {
            Err(ReadError::Damaged { format: "gzip file", what: format!("{cut}, and what is there is no profile") })
        }
        Err(other) => Err(other),
    }
}

fn parse_content(bytes: &[u8], options: &ParseOptions) -> Result<Parsed, ReadError> {
    if let Some(looks_like) = magic(bytes) {
        return Err(ReadError::NotAProfile { looks_like: looks_like.into() });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Some(header) = find_header(bytes) {
        return read_text(bytes, &header, options);
    }
    if samples::looks_like(bytes) {
        return samples::read(bytes, options);
    }
    if pprof::looks_like(bytes) {
        return pprof::decode(bytes);
    }
    if folded::looks_like(bytes) {
        return Ok(folded::read(bytes));
    }
    Err(ReadError::NotAProfile { looks_like: describe(bytes) })
}

/// What the first bytes say that this is, when it is certainly no profile.
fn magic(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 12] = [
        (b"\x7fELF", "an ELF file (a program or library); give its heap profile instead"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"),
        (b"\xfd7zXZ\0", "compressed with xz; decompress it first"),
        (b"BZh", "compressed with bzip2; decompress it first"),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"\xff\xfe", "UTF-16 text; convert it to UTF-8"),
        (b"\xfe\xff", "UTF-16 text; convert it to UTF-8"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O file"),
        (b"MZ", "a Windows program"),
        (b"PERFILE2", "a perf.data file"),
        (b"go 1.", "a Go execution trace"),
        (b"\x89PNG", "a PNG picture"),
    ];
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, name)| name)
}

/// The header line of a text format.
#[derive(Debug)]
struct Header {
    kind: HeaderKind,
    /// Bytes before its line.
    start: usize,
    /// Bytes up to the line after it.
    end: usize,
    line: u64,
}

#[derive(Debug)]
enum HeaderKind {
    HeapV2(Option<SamplingPeriod>),
    Legacy(heap_v2::LegacyHeader),
}

/// Look for a header line in the first megabyte of text.
fn find_header(bytes: &[u8]) -> Option<Header> {
    const SEARCHED: usize = 1 << 20;
    let mut start = 0;
    for line in Lines::new(&bytes[..bytes.len().min(SEARCHED)]) {
        let end = (start + line.text.len() + 2).min(bytes.len());
        let end = memchr::memchr(b'\n', &bytes[start..end]).map_or(bytes.len(), |n| start + n + 1);
        let kind = match line.text {
            text if text.starts_with(b"heap_v2/") => Some(HeaderKind::HeapV2(period(&text[8..]))),
            text if text.starts_with(b"heap profile:") => heap_v2::legacy_header(text).map(HeaderKind::Legacy),
            text if memchr::memchr(0, text).is_some() => return None,
            _ => None,
        };
        if let Some(kind) = kind {
            return Some(Header { kind, start, end, line: line.number });
        }
        start = end;
    }
    None
}

fn period(text: &[u8]) -> Option<SamplingPeriod> {
    super::text::Cursor(text.trim_ascii()).decimal().map(SamplingPeriod)
}

const JEMALLOC: &str = "jemalloc heap dump";

fn read_text(bytes: &[u8], header: &Header, options: &ParseOptions) -> Result<Parsed, ReadError> {
    match header.kind {
        HeaderKind::HeapV2(None) => Err(ReadError::Damaged {
            format: JEMALLOC,
            what: format!("line {} has no sampling period after `heap_v2/`", header.line),
        }),
        HeaderKind::HeapV2(Some(period)) => Ok(read_jemalloc(bytes, header, period, options)),
        HeaderKind::Legacy(legacy) if !legacy.is_go => Ok(read_jemalloc(bytes, header, legacy.period, options)),
        HeaderKind::Legacy(legacy) => Ok(go_text::read(&bytes[header.end..], header.line, legacy)),
    }
}

fn read_jemalloc(bytes: &[u8], header: &Header, period: SamplingPeriod, options: &ParseOptions) -> Parsed {
    let mut log = DamageLog::default();
    let mut notes = Vec::new();
    let before = &bytes[..header.start];
    let symbol_table = heap_v2::find_symbol_table(before);
    let input_names = symbol_table.map_or_else(Default::default, |at| {
        let heading_line = memchr::memchr_iter(b'\n', &before[..at]).count() as u64;
        heap_v2::read_symbol_table(&before[at..], heading_line, &mut log)
    });
    if symbol_table.is_none() && header.line > 1 {
        notes.push(format!("skipped {} lines before the header", header.line - 1));
    }

    let mut sink = heap_v2::heap_sink(period, Some("native"));
    let text = &bytes[header.end..];
    let ending = match header.kind {
        HeaderKind::Legacy(legacy) => heap_v2::read_legacy(text, header.line, legacy, &mut sink, &mut log),
        HeaderKind::HeapV2(_) => heap_v2::read(text, header.line, period, options, &mut sink, &mut log),
    };
    if let Some((at, line)) = ending.maps {
        sink.builder.header().mappings = maps::parse(&text[at..], line, &mut log);
        sink.builder.assign_mappings();
    }
    if let Some((line, n)) = sink.without_objects {
        notes.push(format!(
            "{n} lines hold bytes but no objects (first: line {line}); these bytes cannot be corrected for sampling \
             and are counted as printed"
        ));
    }
    let profile = sink.builder.finish();
    if profile.samples.is_empty() && log.is_empty() {
        notes.push(format!(
            "no allocation stands in this dump: profiling was off (prof:false), inactive (prof_active:false, or not \
             started), or nothing was sampled yet (one sample every {} bytes on average)",
            period.0.max(1)
        ));
    } else if profile.mappings.is_empty() {
        notes.push(
            "the dump has no map section: addresses cannot be named unless you give --maps FILE (a copy of \
             /proc/PID/maps) or --binary FILE"
                .into(),
        );
    }
    Parsed {
        profile,
        format: JEMALLOC,
        damage: log.into_entries(),
        notes,
        origin: super::Origin::Native,
        input_names,
        ..Parsed::default()
    }
}

/// Words for an input that nothing recognised.
fn describe(bytes: &[u8]) -> String {
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
    let head = &text[..text.len().min(4096)];
    let is_text = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true)
        && !head.iter().any(|&b| b.is_ascii_control() && !b"\n\r\t\x1b".contains(&b));
    if is_text {
        format!("text that begins with `{}`", excerpt(Lines::new(text).next().map_or(text, |line| line.text)))
    } else {
        format!("{} bytes of binary data", bytes.len())
    }
}
