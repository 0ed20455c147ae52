//! What came out of a saved report.

use super::{json, text};
use offheap_symbolizer::formats::pprof;
use offheap_wire::{BinStats, LargeStats, Stats};
use std::collections::BTreeMap;
use thiserror::Error;

/// Numbers from here on are no sizes or counts of memory: a counter that went below zero and wrapped around.
pub(super) const UNDERFLOWED: u64 = 1 << 60;

/// Said of a report that has no numbers.
pub(super) const WITHOUT_STATISTICS: &str = "this jemalloc was built without statistics (config.stats: false): nothing can be told; or is it another allocator \
     instance than the one that the program uses?";

/// The statistics with what has to be said about them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) stats: Stats,
    /// Remarks for the user.
    pub(crate) notes: Vec<String>,
    /// Something is missing that stood in the report: it was cut, or a row could not be read.
    pub(crate) partial: bool,
}

/// The input holds no allocator statistics.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("no allocator statistics: the input is {looks_like}; expected what malloc_stats_print writes, as text or JSON")]
pub(crate) struct NotStatistics {
    pub(super) looks_like: &'static str,
}

/// Read a report of either form, by its content: a JSON document with a `jemalloc` key (or one of this tool's own),
/// then text with a summary line.
pub(crate) fn read(bytes: &[u8]) -> Result<Report, NotStatistics> {
    let content = String::from_utf8_lossy(bytes);
    let content = content.trim_start_matches('\u{feff}');
    let mut report = json::read(content)
        .or_else(|| text::read(content))
        .ok_or_else(|| NotStatistics { looks_like: looks_like(bytes) })?;
    report.stats.schema = "offheap.stats/1".into();
    explain_zeros(&mut report);
    Ok(report)
}

/// All numbers zero is what an instance of jemalloc reports through which nothing was allocated.
fn explain_zeros(report: &mut Report) {
    if report.stats.allocated == Some(0) && report.stats.active == Some(0) {
        report.notes.push(
            "all numbers are zero: the report is of another allocator instance than the one that the program uses"
                .into(),
        );
    }
}

fn looks_like(bytes: &[u8]) -> &'static str {
    let head = &bytes[..bytes.len().min(4096)];
    let contains = |needle: &[u8]| head.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle));
    if bytes.iter().all(u8::is_ascii_whitespace) {
        "empty"
    } else if head.starts_with(b"\x7fELF") {
        "an ELF file"
    } else if contains(b"heap_v2/") || head.starts_with(b"heap profile:") {
        "a heap dump (read it with `offheap top`)"
    } else if contains(b"<html") || contains(b"<!doctype") {
        "an HTML page"
    } else if pprof::looks_like(bytes) {
        "a pprof profile (read it with `offheap top`)"
    } else if head.contains(&0) {
        "a binary file"
    } else {
        "text of another kind"
    }
}

/// The classes that ever held something, by size: text leaves the others out, so JSON does too.
pub(super) fn used_bins(bins: impl IntoIterator<Item = BinStats>) -> Vec<BinStats> {
    let mut used: Vec<BinStats> =
        bins.into_iter().filter(|bin| bin.curregs > 0 || bin.curslabs > 0 || bin.nmalloc.unwrap_or(0) > 0).collect();
    used.sort_by_key(|bin| bin.size);
    used
}

/// The large classes with live extents, by size. Their cumulative counts stand in the text form alone, which would make
/// the two forms differ, and nothing is computed from them.
pub(super) fn live_large(large: impl IntoIterator<Item = (u64, u64)>) -> Vec<LargeStats> {
    let mut by_size = BTreeMap::new();
    for (size, extents) in large.into_iter().filter(|(_, extents)| *extents > 0) {
        *by_size.entry(size).or_insert(0) += extents;
    }
    by_size
        .into_iter()
        .map(|(size, curlextents)| LargeStats { size, curlextents, nmalloc: None, ndalloc: None })
        .collect()
}

/// The classes of all arenas together, for reports without the merged section.
pub(super) fn merge_bins<'a>(arenas: impl IntoIterator<Item = &'a BinStats>) -> Vec<BinStats> {
    let mut by_size: BTreeMap<u64, BinStats> = BTreeMap::new();
    for bin in arenas {
        by_size
            .entry(bin.size)
            .and_modify(|sum| {
                sum.curregs += bin.curregs;
                sum.curslabs += bin.curslabs;
                sum.nonfull_slabs = add(sum.nonfull_slabs, bin.nonfull_slabs);
                sum.nmalloc = add(sum.nmalloc, bin.nmalloc);
                sum.ndalloc = add(sum.ndalloc, bin.ndalloc);
            })
            .or_insert_with(|| bin.clone());
    }
    by_size.into_values().collect()
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

/// Slab waste of one arena; unknown when its classes are not in the report, or when they contradict each other.
pub(super) fn slab_waste(bins: &[BinStats]) -> Option<u64> {
    let waste = |bin: &BinStats| {
        i128::from(bin.curslabs) * i128::from(bin.slab_size) - i128::from(bin.curregs) * i128::from(bin.size)
    };
    u64::try_from(bins.iter().map(waste).sum::<i128>()).ok()
}
