//! Go heap profiles as text, `/debug/pprof/heap?debug=1`.
//!
//! ```text
//! heap profile: 18: 17866880 [34: 49586432] @ heap/1048576          twice the period; everything below is unscaled
//! 1: 1048576 [2: 2097152] @ 0x4a1b2c 0x4a2000 0x43c1d0              return addresses, leaf first
//! #       0x4a1b2b        example.test/ingest.load+0x4b   /src/ingest/load.go:31
//!
//! # runtime.MemStats
//! # HeapAlloc = 1056768
//! # Stack = 294912 / 294912                                         in use / from the system
//! ```
//!
//! A `#` line names the call one byte before a return address; several lines of one address are inlined calls,
//! innermost first. Go leaves out the lines of its allocator at the leaf and of `goexit` at the root, and its protobuf
//! leaves those frames out altogether; so does this reader.

use super::heap_v2::{HeapSink, LegacyHeader, addresses, heap_sink, stack_line};
use super::text::{Cursor, Lines, SECOND_PROFILE, TextLine, begins_profile, excerpt, lossy};
use super::{GoMemStats, Origin, Parsed};
use crate::address::RuntimeAddress;
use crate::error::DamageLog;
use crate::profile::{Line, LocationId};

const FORMAT: &str = "Go heap profile (text)";
const MEM_STATS: &[u8] = b"# runtime.MemStats";

/// Read the lines after the header. `first_line` is the number of the header line.
pub(crate) fn read(text: &[u8], first_line: u64, header: LegacyHeader) -> Parsed {
    let mut log = DamageLog::default();
    let mut reader = Reader { sink: heap_sink(header.period, None), log: &mut log, header, stack: None, bytes: 0 };
    let mut mem_stats = None;
    for line in Lines::new(text) {
        let line = TextLine { number: first_line + line.number, ..line };
        if begins_profile(line.text) {
            reader.log.at_line(line.number, SECOND_PROFILE);
            break;
        }
        let text = line.text.trim_ascii_start();
        if text.starts_with(MEM_STATS) {
            mem_stats = Some(GoMemStats::default());
        } else if let Some(stats) = &mut mem_stats {
            if line.ended || text.is_empty() || is_last_statistic(text) {
                mem_stat(text, stats);
            } else {
                reader.log.at_line(line.number, "the statistics are cut here; the last number is left out");
            }
        } else {
            reader.line(line);
        }
    }
    reader.end_stack();
    reader.check_sum(mem_stats.is_some());
    reader.sink.report_impossible(reader.log);
    let mut profile = reader.sink.builder.finish();
    profile.refresh_mapping_flags();
    let notes = match profile.samples.is_empty() && log.is_empty() {
        true => vec!["the profile is valid and holds no samples".to_owned()],
        false => Vec::new(),
    };
    Parsed {
        profile,
        format: FORMAT,
        damage: log.into_entries(),
        notes,
        origin: Origin::Go,
        go_memstats: mem_stats,
        ..Parsed::default()
    }
}

struct Reader<'a> {
    sink: HeapSink,
    log: &'a mut DamageLog,
    header: LegacyHeader,
    stack: Option<Stack>,
    /// Sum of the live bytes, to compare with the header's.
    bytes: i128,
}

/// A stack whose `#` lines are being read.
struct Stack {
    counts: super::heap_v2::Counts,
    /// Addresses of the calls.
    calls: Vec<RuntimeAddress>,
    named: Vec<(RuntimeAddress, Line)>,
}

impl Reader<'_> {
    fn line(&mut self, line: TextLine<'_>) {
        let text = line.text.trim_ascii();
        let whole = match text.first() {
            None => return,
            Some(b'#') => self.name(text, line.ended),
            Some(_) => self.begin_stack(line),
        };
        if whole.is_none() {
            let what = if line.ended { "not part of a profile, left out" } else { "the profile is cut here" };
            self.log.at_line(line.number, format!("{what}: `{}`", excerpt(text)));
        }
    }

    fn begin_stack(&mut self, line: TextLine<'_>) -> Option<()> {
        self.end_stack();
        let (counts, cursor) = stack_line(line.text)?;
        let mut calls = Vec::new();
        addresses(cursor, |address| calls.push(address.of_call()))?;
        if !line.ended {
            return None;
        }
        self.sink.check(line.number, counts);
        self.stack = Some(Stack { counts, calls, named: Vec::new() });
        Some(())
    }

    /// A `#` line. One that is cut leaves its frame nameless.
    fn name(&mut self, text: &[u8], ended: bool) -> Option<()> {
        let stack = self.stack.as_mut()?;
        let mut cursor = Cursor(text);
        cursor.skip(b"#")?;
        cursor.blanks();
        cursor.skip(b"0x")?;
        let call = RuntimeAddress(cursor.hex()?);
        cursor.blanks();
        if cursor.0.is_empty() || !ended {
            return ended.then_some(());
        }
        let (symbol, place) = cursor.0.split_at(memchr::memchr(b'\t', cursor.0)?);
        let (symbol, place) = (lossy(symbol), lossy(place.trim_ascii()));
        let name = symbol.rsplit_once("+0x").map_or(&*symbol, |(name, _)| name);
        let (file, number) = place.rsplit_once(':')?;
        let function = self.sink.builder.function(name, name, file, 0);
        stack.named.push((call, Line { function, line: number.parse().ok()?, column: 0 }));
        Some(())
    }

    fn end_stack(&mut self) {
        let Some(stack) = self.stack.take() else { return };
        self.bytes += i128::from(stack.counts.live_bytes);
        let named_by = |call: RuntimeAddress| stack.named.iter().filter(move |(named, _)| *named == call);
        let is_named = |call: &&RuntimeAddress| named_by(**call).next().is_some();
        let first = stack.calls.iter().position(|call| is_named(&call));
        let last = stack.calls.iter().rposition(|call| is_named(&call));
        let shown = match (first, last) {
            (Some(first), Some(last)) => &stack.calls[first..=last],
            _ => &stack.calls[..],
        };
        let mut locations: Vec<LocationId> = Vec::with_capacity(shown.len());
        for &call in shown {
            let id = self.sink.builder.location_at(call);
            let location = self.sink.builder.location_mut(id);
            if location.lines.is_empty() {
                location.lines = named_by(call).map(|(_, line)| *line).collect();
            }
            locations.push(id);
        }
        self.sink.sample(locations, stack.counts.correct(self.header.period), Some(stack.counts.picked()), None);
    }

    /// A profile that ends without its statistics was cut, perhaps between two stacks.
    fn check_sum(&mut self, complete: bool) {
        let expected = self.header.totals.live_bytes;
        if !complete && self.bytes < i128::from(expected) {
            self.log.whole(format!(
                "the stacks hold {} of the {expected} bytes that the header states: the profile is cut",
                self.bytes
            ));
        }
    }
}

/// A line that is whole without its end: the last one of Go up to 1.14.
fn is_last_statistic(text: &[u8]) -> bool {
    matches!(text.trim_ascii(), b"# DebugGC = false" | b"# DebugGC = true")
}

/// One line of the statistics, `# HeapAlloc = 1056768`. Unknown ones are left to a later version.
fn mem_stat(text: &[u8], stats: &mut GoMemStats) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some((name, value)) = text.trim_start_matches(['#', ' ']).split_once(" = ") else { return };
    let mut numbers = value.split(" / ").map(|number| number.trim().parse::<u64>().ok());
    let (first, second) = (numbers.next().flatten(), numbers.next().flatten());
    let single = match name {
        "Stack" => {
            (stats.stack_inuse, stats.stack_sys) = (first, second);
            return;
        }
        "MSpan" => {
            (stats.mspan_inuse, stats.mspan_sys) = (first, second);
            return;
        }
        "MCache" => {
            (stats.mcache_inuse, stats.mcache_sys) = (first, second);
            return;
        }
        "Alloc" => &mut stats.alloc,
        "TotalAlloc" => &mut stats.total_alloc,
        "Sys" => &mut stats.sys,
        "Mallocs" => &mut stats.mallocs,
        "Frees" => &mut stats.frees,
        "HeapAlloc" => &mut stats.heap_alloc,
        "HeapSys" => &mut stats.heap_sys,
        "HeapIdle" => &mut stats.heap_idle,
        "HeapInuse" => &mut stats.heap_inuse,
        "HeapReleased" => &mut stats.heap_released,
        "HeapObjects" => &mut stats.heap_objects,
        "BuckHashSys" => &mut stats.buck_hash_sys,
        "GCSys" => &mut stats.gc_sys,
        "OtherSys" => &mut stats.other_sys,
        "NextGC" => &mut stats.next_gc,
        "LastGC" => &mut stats.last_gc,
        "NumGC" => &mut stats.num_gc,
        "MaxRSS" => &mut stats.max_rss,
        _ => return,
    };
    *single = first;
}
