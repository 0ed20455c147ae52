//! Which format an input is, by its content.
//!
//! In this order:
//! 1. gzip magic: decompress, then the same questions about what is inside;
//! 2. magic numbers of other files (ELF, zstd, …): named and refused;
//! 3. text with a header line `heap_v2/…` or `heap profile: …` in its first megabyte, whatever stands before it, or after
//!    a table of names of any size; or with such a line behind blanks or marks of quotation, which go;
//! 4. a JSON object: the sample table, else named and refused;
//! 5. a protobuf message whose first field is that of a pprof profile;
//! 6. text whose lines end in numbers: folded stacks; by content alone only where stacks are more than one frame deep;
//! 7. anything else: named and refused.
//!
//! Text comes before protobuf because a protobuf's first byte is a line feed, and a dump after an empty log line would
//! do as the beginning of a message.

use super::parsed::NO_MAPS;
use super::strangers::{describe, magic};
use super::text::{Cursor, Lines, TextLine, excerpt};
use super::unpack::{Unpacked, unpack};
use super::{ParseOptions, Parsed, folded, go_text, heap_v2, maps, pprof, quoting, samples};
use crate::error::{Damage, DamageLog, ReadError};
use crate::sampling::SamplingPeriod;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
    let limit = options.max_inflated_bytes.unwrap_or_else(|| ParseOptions::default_limit(bytes.len() as u64));
    let Unpacked { content, cut } = unpack(bytes, limit)?;
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
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if let Some(header) = find_header(bytes) {
        return read_text(bytes, &header, options);
    }
    if let Some((plain, prefix)) = quoting::unquote(bytes)
        && let Some(header) = find_header(&plain)
    {
        let mut parsed = read_text(&plain, &header, options)?;
        parsed.notes.push(format!("every line begins with `{}`, which is left out", String::from_utf8_lossy(prefix)));
        return Ok(parsed);
    }
    if samples::looks_like(bytes) {
        return samples::read(bytes, options);
    }
    if pprof::looks_like(bytes) {
        return pprof::decode(bytes);
    }
    if folded::looks_like(bytes) || (options.folded_by_name && folded::may_be(bytes)) {
        return folded::read(bytes);
    }
    Err(cut_before_its_stacks(bytes).unwrap_or_else(|| ReadError::NotAProfile {
        looks_like: quoting::behind_other_text(bytes).unwrap_or_else(|| describe(bytes)),
    }))
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

/// Look for a header line: in the first megabyte, or as far as a table of names reaches.
fn find_header(bytes: &[u8]) -> Option<Header> {
    const SEARCHED: usize = 1 << 20;
    let mut in_symbol_table = false;
    for TextLine { number, text, .. } in Lines::new(bytes) {
        let start = text.as_ptr() as usize - bytes.as_ptr() as usize;
        if start > SEARCHED && !in_symbol_table {
            return None;
        }
        // A byte order mark may stand after log lines, where the output of two programs was put together.
        let line = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let kind = match line {
            line if line.starts_with(b"heap_v2/") => {
                Some(HeaderKind::HeapV2(Cursor(&line[8..]).rate().map(SamplingPeriod)))
            }
            line if line.starts_with(b"heap profile:") => heap_v2::legacy_header(line).map(HeaderKind::Legacy),
            line if memchr::memchr(0, line).is_some() => return None,
            line => {
                in_symbol_table |= heap_v2::is_symbol_heading(line);
                None
            }
        };
        if let Some(kind) = kind {
            let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n + 1);
            return Some(Header { kind, start, end, line: number });
        }
    }
    None
}

/// What is wrong with the beginning of a profile that was cut before its first stack.
fn cut_before_its_stacks(bytes: &[u8]) -> Option<ReadError> {
    let first = Lines::new(bytes).next()?.text;
    let what = if first.starts_with(b"heap profile:") {
        format!(
            "line 1 is no whole header: `{}`; expected as in `heap profile: 1: 16 [1: 16] @ heap_v2/524288`",
            excerpt(first)
        )
    } else if heap_v2::find_symbol_table(bytes).is_some() && memchr::memmem::find(bytes, b"\n--- heap").is_some() {
        "no heap follows the table of names (`jeprof --raw` writes one only of what it fetched itself); give the dump itself"
            .to_owned()
    } else if heap_v2::find_symbol_table(bytes).is_some() {
        "it is cut inside the table of names that stands before the stacks; copy it again".to_owned()
    } else {
        return None;
    };
    Some(ReadError::Damaged { format: "heap profile", what })
}

const JEMALLOC: &str = "jemalloc heap dump";

fn read_text(bytes: &[u8], header: &Header, options: &ParseOptions) -> Result<Parsed, ReadError> {
    match header.kind {
        HeaderKind::HeapV2(None) => Err(ReadError::Damaged {
            format: JEMALLOC,
            what: format!(
                "line {} has no sampling period after `heap_v2/`: `{}`; expected a number of bytes, as in `heap_v2/524288`",
                header.line,
                excerpt(Lines::new(&bytes[header.start..]).next().map_or(b"", |line| line.text))
            ),
        }),
        HeaderKind::HeapV2(Some(period)) => Ok(read_jemalloc(bytes, header, period, options)),
        HeaderKind::Legacy(legacy) if legacy.is_go && !has_map_section(&bytes[header.end..]) => {
            let mut parsed = go_text::read(&bytes[header.end..], header.line, legacy);
            parsed.notes.extend(skipped(header));
            Ok(parsed)
        }
        HeaderKind::Legacy(legacy) => Ok(read_jemalloc(bytes, header, legacy.period, options)),
    }
}

/// gperftools wrote `heap/N` too, with N twice the period as Go has it; Go writes no map section.
fn has_map_section(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"\nMAPPED_LIBRARIES:").is_some()
}

fn skipped(header: &Header) -> Option<String> {
    match header.line - 1 {
        0 => None,
        1 => Some("skipped 1 line before the header".into()),
        lines => Some(format!("skipped {lines} lines before the header")),
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
    if symbol_table.is_none() {
        notes.extend(skipped(header));
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
    sink.report_impossible(&mut log);
    let profile = sink.builder.finish();
    if profile.samples.is_empty() && log.is_empty() {
        notes.push(format!(
            "no allocation stands in this dump: profiling was off (prof:false), inactive (prof_active:false, or not \
             started), or nothing was sampled yet (one sample every {} bytes on average)",
            period.0.max(1)
        ));
    } else if profile.mappings.is_empty() {
        notes.push(NO_MAPS.into());
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
