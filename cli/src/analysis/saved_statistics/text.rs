//! The text form.
//!
//! ```text
//! ___ Begin jemalloc statistics ___
//! Version: "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
//! Arenas: 9
//! Page size: 4096
//! Allocated: 171209728, active: 171307008, metadata: 3113120 (n_thp 0), resident: 174362624, mapped: …
//! Merged arenas stats:
//! decaying:  time       npages       sweeps     madvises       purged
//!    dirty:   N/A            6            0            0            0
//! tcache_bytes:                   56704
//! bins:           size ind    allocated …
//! arenas[0]:
//! assigned threads: 1
//! --- End jemalloc statistics ---
//! ```

use super::report::{Report, UNDERFLOWED, WITHOUT_STATISTICS, live_large, merge_bins, slab_waste, used_bins};
use super::summary;
use super::table::{Heading, Kind, Line};
use offheap_wire::{ArenaStats, BinStats, Stats};

const BEGIN: &str = "___ Begin jemalloc statistics ___";
const END: &str = "--- End jemalloc statistics ---";
const NO_TABLES: &str = "size classes and arenas are not known, only the summary line";

/// Read the last report of a text; `None` when there is none.
pub(super) fn read(content: &str) -> Option<Report> {
    let blocks: Vec<&str> = blocks(content).into_iter().filter(|block| is_report(block)).collect();
    let block = blocks.last()?;
    let mut report = read_block(block);
    if blocks.len() > 1 {
        report.notes.insert(0, format!("{} reports in the input: the last one is read", blocks.len()));
    }
    note_underflows(block, &mut report);
    Some(report)
}

/// The pieces from each beginning to the next one; without any, the whole text.
fn blocks(content: &str) -> Vec<&str> {
    let starts: Vec<usize> = content
        .match_indices(BEGIN)
        .map(|(at, _)| content[..at].rfind('\n').map_or(0, |newline| newline + 1))
        .collect();
    if starts.is_empty() {
        return vec![content];
    }
    let ends = starts.iter().skip(1).copied().chain([content.len()]);
    starts.iter().zip(ends).map(|(&start, end)| upto_end(&content[start..end])).collect()
}

/// What stands behind the closing line belongs to somebody else.
fn upto_end(block: &str) -> &str {
    block.find(END).map_or(block, |at| {
        let line_end = block[at..].find('\n').map_or(block.len(), |newline| at + newline + 1);
        &block[..line_end]
    })
}

fn is_report(block: &str) -> bool {
    block.contains(BEGIN) || block.lines().any(|line| summary_at(line).is_some())
}

/// Where the summary line begins in this line: behind a prefix of a log, perhaps.
fn summary_at(line: &str) -> Option<usize> {
    let at = line.find(summary::START)?;
    line[at + summary::START.len()..].starts_with(|c: char| c.is_ascii_digit()).then_some(at)
}

/// How a paste changed the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    AsPrinted,
    /// Something stands in front of every line.
    Prefixed,
    /// Long lines were broken.
    Wrapped,
}

fn read_block(block: &str) -> Report {
    let lines: Vec<&str> = block.lines().collect();
    let Some(at) = lines.iter().position(|line| summary_at(line).is_some()) else {
        return without_summary(block, &lines);
    };
    let prefix = summary_at(lines[at]).unwrap_or(0);
    let (pairs, joined) = join_summary(&lines, at, prefix);
    let is_last = at + 1 == lines.len();
    // Within a report a last line without its line feed was cut; a line pasted alone never had one.
    let cut_there = is_last && !block.ends_with('\n') && block.contains(BEGIN);
    let pairs = match pairs {
        Some(pairs) if !cut_there => pairs,
        _ => summary::whole_pairs(&lines[at][prefix..]),
    };
    let shape = match (lines[at][..prefix].trim().is_empty(), joined) {
        (false, _) => Shape::Prefixed,
        (true, true) => Shape::Wrapped,
        (true, false) => Shape::AsPrinted,
    };
    let mut report = Report::default();
    summary::fill(&mut report.stats, &pairs);
    read_header(&lines, &mut report);
    match shape {
        Shape::AsPrinted => read_tables(&lines, &mut report),
        Shape::Prefixed => report.notes.push(format!("every line has a prefix, which moves the columns: {NO_TABLES}")),
        Shape::Wrapped => report.notes.push(format!("lines are wrapped, which breaks the columns: {NO_TABLES}")),
    }
    judge_end(block, is_last, cut_there, &mut report);
    report
}

fn without_summary(block: &str, lines: &[&str]) -> Report {
    let mut report = Report::default();
    read_header(lines, &mut report);
    if block.contains("config.stats: false") {
        report.notes.push(WITHOUT_STATISTICS.into());
    } else {
        report.notes.push("the report has no summary line (`Allocated: …`): it was cut before it".into());
        report.partial = true;
    }
    report
}

/// The pairs of the summary line, and whether it had to be joined with the lines below.
///
/// A wrapped line stops where the width is used up, in the middle of a word or number. It is joined with those below as
/// long as together they still are a summary line and it is as long as any line of the text.
fn join_summary(lines: &[&str], at: usize, prefix: usize) -> (Option<Vec<(String, u64)>>, bool) {
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let line = &lines[at][prefix..];
    let alone = summary::pairs(line);
    let soft = line.trim_end().ends_with([',', ':']);
    if lines[at].chars().count() < width && alone.is_some() && !soft {
        return (alone, false);
    }
    let mut text = line.to_owned();
    let mut best = None;
    for next in &lines[at + 1..] {
        if text.trim_end().ends_with([',', ':']) {
            text.truncate(text.trim_end().len());
            text.push(' ');
        }
        text.push_str(next);
        if let Some(pairs) = summary::pairs(&text) {
            best = Some(pairs);
        } else if best.is_some() || text.len() > 1000 {
            break;
        }
    }
    match best {
        Some(pairs) => (Some(pairs), true),
        None => (alone, false),
    }
}

/// What stands in lines of its own before the summary; found behind prefixes too.
fn read_header(lines: &[&str], report: &mut Report) {
    let value = |key: &str| {
        lines.iter().find_map(|line| {
            let at = line.find(key)?;
            Some(line[at + key.len()..].trim())
        })
    };
    report.stats.jemalloc_version = value("Version: ").map(|version| version.trim_matches('"').to_owned());
    report.stats.page_size = value("Page size: ").and_then(|size| size.parse().ok());
    report.stats.narenas = value("Arenas: ").and_then(|count| count.parse().ok());
}

/// Which part of the report a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Header,
    Merged,
    Arena(usize),
}

/// The walk over the lines behind the header.
struct Walk<'r, 'a> {
    stats: &'r mut Stats,
    page_size: u64,
    section: Section,
    heading: Option<Heading<'a>>,
    /// Column of `npages` and of `time` in the open table of decaying pages.
    decaying: Option<(usize, usize)>,
    bins: Vec<(Section, BinStats)>,
    large: Vec<(Section, (u64, u64))>,
    /// Line numbers, from 1.
    unreadable: Vec<usize>,
    rows: usize,
    /// The last line was a heading.
    fresh: bool,
    /// A table of size classes lacks a column that it needs, or all rows.
    headless: bool,
}

fn read_tables(lines: &[&str], report: &mut Report) {
    let page_size = report.stats.page_size.unwrap_or(0);
    let mut walk = Walk {
        stats: &mut report.stats,
        page_size,
        section: Section::Header,
        heading: None,
        decaying: None,
        bins: Vec::new(),
        large: Vec::new(),
        unreadable: Vec::new(),
        rows: 0,
        fresh: false,
        headless: false,
    };
    for (index, line) in lines.iter().enumerate() {
        walk.line(index + 1, line);
    }
    let Walk { bins, large, unreadable, rows, headless, .. } = walk;
    let cut_row = unreadable == [lines.len()];
    if headless || (unreadable.len() > rows && !cut_row) {
        report.notes.push(format!("the tables are wrapped or of an unknown layout: {NO_TABLES}"));
        return;
    }
    if page_size == 0 && rows > 0 {
        report.notes.push("the report names no page size: what the slabs of its size classes hold is not known".into());
    }
    if let [first, ..] = unreadable[..] {
        report
            .notes
            .push(format!("{} rows do not fit their headings, the first in line {first}: left out", unreadable.len()));
        report.partial = true;
    }
    file_tables(&mut report.stats, &bins, large);
}

/// Enter the rows where they belong: those of the merged section as the classes of all arenas, the sum over the arenas
/// where that section is missing, which it is when only one arena was ever used.
fn file_tables(stats: &mut Stats, bins: &[(Section, BinStats)], large: Vec<(Section, (u64, u64))>) {
    let of = |section| bins.iter().filter(move |(of, _)| *of == section).map(|(_, bin)| bin.clone());
    for index in 0..stats.arenas.len() {
        let own: Vec<BinStats> = of(Section::Arena(index)).collect();
        stats.arenas[index].slab_waste = slab_waste(&own);
    }
    // Excerpts have the tables directly behind the summary.
    let outside_arenas = |section: &Section| !matches!(section, Section::Arena(_));
    let merged = bins.iter().any(|(section, _)| outside_arenas(section));
    stats.bins = if merged {
        used_bins(bins.iter().filter(|(section, _)| outside_arenas(section)).map(|(_, bin)| bin.clone()))
    } else {
        used_bins(merge_bins(bins.iter().map(|(_, bin)| bin)))
    };
    let merged_large = large.iter().any(|(section, _)| outside_arenas(section));
    stats.large = live_large(
        large.into_iter().filter(|(section, _)| !merged_large || outside_arenas(section)).map(|(_, class)| class),
    );
}

impl<'a> Walk<'_, 'a> {
    fn line(&mut self, number: usize, line: &'a str) {
        if let Some(heading) = Heading::of(line) {
            self.decaying = None;
            self.fresh = true;
            self.heading = Some(heading);
            return;
        }
        let fresh = std::mem::take(&mut self.fresh);
        if let Some(heading) = self.heading.take() {
            // Every table has a row or a gap; a heading is the last line when the report was cut, else it is wrapped.
            self.headless |= fresh && !heading.is_sufficient();
            match heading.line(line) {
                Line::End => self.headless |= fresh && heading.kind != Kind::Other,
                read => {
                    self.row(number, heading.kind, read);
                    self.heading = Some(heading);
                    return;
                }
            }
        }
        self.scalar(line.trim());
    }

    fn row(&mut self, number: usize, kind: Kind, read: Line<super::table::Row<'_, '_, '_>>) {
        let row = match (read, kind) {
            (_, Kind::Other) | (Line::Gap | Line::End, _) => return,
            (Line::Unreadable, _) => return self.unreadable.push(number),
            (Line::Row(row), _) => row,
        };
        self.rows += 1;
        if kind == Kind::Bins {
            // Without a page size the slabs are not known, which is said once.
            if self.page_size > 0 {
                match row.bin(self.page_size) {
                    Some(bin) => self.bins.push((self.section, bin)),
                    None => self.unreadable.push(number),
                }
            }
        } else {
            match row.large() {
                Some(class) => self.large.push((self.section, class)),
                None => self.unreadable.push(number),
            }
        }
    }

    fn scalar(&mut self, line: &str) {
        if line == "Merged arenas stats:" {
            self.section = Section::Merged;
        } else if let Some(index) = arena_heading(line) {
            self.section = Section::Arena(self.stats.arenas.len());
            self.stats.arenas.push(ArenaStats { index, ..ArenaStats::default() });
        } else if let Some((key, value)) = line.split_once(':') {
            let words: Vec<&str> = value.split_whitespace().collect();
            match (key, self.decaying) {
                ("decaying", _) => {
                    let column = |name| words.iter().position(|word| *word == name);
                    self.decaying = column("npages").zip(column("time"));
                }
                ("dirty" | "muzzy", Some(columns)) => self.decay(key, &words, columns),
                _ => self.value(key, value.trim(), &words),
            }
        }
    }

    /// `dirty: 10000 6 0 0 0` below `decaying: time npages …`; the time of the merged section is N/A.
    fn decay(&mut self, key: &str, words: &[&str], (npages, time): (usize, usize)) {
        let bytes = words.get(npages).and_then(|word| number(word)).and_then(|pages| self.bytes(pages));
        let time = words.get(time).and_then(|word| word.parse().ok());
        match (self.section, key) {
            (Section::Arena(index), "dirty") => {
                (self.stats.arenas[index].dirty, self.stats.arenas[index].dirty_decay_ms) = (bytes, time);
            }
            (Section::Arena(index), _) => {
                (self.stats.arenas[index].muzzy, self.stats.arenas[index].muzzy_decay_ms) = (bytes, time);
            }
            (_, "dirty") => self.stats.dirty = bytes,
            (_, _) => self.stats.muzzy = bytes,
        }
    }

    fn value(&mut self, key: &str, value: &str, words: &[&str]) {
        let first = words.first().and_then(|word| number(word));
        // `dirty pages: 14418:0 active:dirty, 0 sweeps, …` (3.x, 4.0) and `purging: dirty: 0, sweeps: …` (4.1 and later).
        let dirty_pages = match key {
            "dirty pages" => words.first().and_then(|pair| number(pair.split_once(':')?.1)),
            "purging" => value.strip_prefix("dirty: ").and_then(|rest| number(rest.split(',').next()?)),
            _ => None,
        };
        let dirty = dirty_pages.and_then(|pages| self.bytes(pages));
        let Section::Arena(index) = self.section else {
            match key {
                "tcache_bytes" | "tcache" => self.stats.tcache = first,
                "dirty pages" | "purging" => self.stats.dirty = dirty,
                _ => {}
            }
            return;
        };
        let arena = &mut self.stats.arenas[index];
        match key {
            "assigned threads" => arena.nthreads = first,
            "small" => arena.small_allocated = first,
            "large" => arena.large_allocated = first,
            "huge" => arena.large_allocated = arena.large_allocated.zip(first).map(|(large, huge)| large + huge),
            "active" => arena.active = first,
            "mapped" => arena.mapped = first,
            "retained" => arena.retained = first,
            "resident" => arena.resident = first,
            "base" => arena.metadata = first,
            "internal" => arena.metadata = arena.metadata.zip(first).map(|(base, internal)| base + internal),
            "tcache_bytes" | "tcache" => arena.tcache = first,
            "dirty pages" | "purging" => arena.dirty = dirty,
            _ => {}
        }
    }

    fn bytes(&self, pages: u64) -> Option<u64> {
        pages.checked_mul(self.page_size).filter(|_| self.page_size > 0)
    }
}

/// `arenas[3]:`
fn arena_heading(line: &str) -> Option<u32> {
    line.strip_prefix("arenas[")?.strip_suffix("]:")?.parse().ok()
}

fn number(word: &str) -> Option<u64> {
    word.parse().ok().filter(|value| *value < UNDERFLOWED)
}

/// Say what is missing at the end.
fn judge_end(block: &str, summary_is_last: bool, cut_there: bool, report: &mut Report) {
    if !block.contains(BEGIN) || block.contains(END) {
        return;
    }
    if summary_is_last && !cut_there {
        report.notes.push(format!("the text stops behind the summary line: {NO_TABLES}"));
    } else {
        let line = block.lines().count();
        report.notes.push(format!("the report is cut in line {line}: what is whole was read"));
        report.partial = true;
    }
}

fn note_underflows(block: &str, report: &mut Report) {
    let underflowed = |line: &str| {
        line.split(|c: char| !c.is_ascii_digit())
            .any(|digits| digits.parse().is_ok_and(|value: u64| value >= UNDERFLOWED))
    };
    let lines: Vec<&str> =
        block.lines().map(str::trim).filter(|line| !line.contains("Version:") && underflowed(line)).collect();
    if let Some(first) = lines.first() {
        let shown: String = first.chars().take(80).collect();
        report.notes.push(format!(
            "{} lines have invalid numbers near 2^64 (counters that went below zero): not used; the first is `{shown}`",
            lines.len()
        ));
    }
}
