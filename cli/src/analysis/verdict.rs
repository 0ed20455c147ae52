//! What the ledger means: one cause, the numbers that decided, or the honest answer that they do not suffice.
//!
//! One reading can say which part dominates. Waste (fragmentation, pages not returned, idle Go spans) needs no more:
//! nobody wants it. Live native memory may be a leak or a cache that does its work; a single reading calls it growth
//! only when it lies in size classes from which nothing is ever freed. Two readings tell growth itself.

use super::go_runtime::GoMemory;
use super::ledger::{Ledger, Owner};
use crate::words::size::human;
use offheap_wire::Stats;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// No part below this size is worth an alarm: a small service consists of its images and the runtime's tables.
const FLOOR: u64 = 32 << 20;
/// A part that holds at least this share of RSS dominates it.
const DOMINANT: f64 = 0.30;
/// Of the allocations of a size class, the share that may have been freed while its memory still counts as never freed.
const NEVER_FREED: f64 = 0.10;
/// RSS moves by itself; growth is more than this and more than [`RSS_NOISE_SHARE`] of RSS.
const RSS_NOISE: u64 = 2 << 20;
/// See [`RSS_NOISE`].
const RSS_NOISE_SHARE: f64 = 0.01;

/// Why RSS is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// C memory that is allocated and not freed.
    LiveNativeGrowth,
    /// Slabs kept by few survivors.
    Fragmentation,
    /// Unused pages that jemalloc keeps.
    PagesNotYetReturned,
    /// Live Go objects and stacks.
    GoHeap,
    /// Spans that the Go runtime keeps.
    GoIdleMemory,
    /// Memory mapped by C code itself, thread stacks, shared memory.
    OutsideBothAllocators,
    /// Nothing stands out.
    Healthy,
    /// The readings do not decide.
    NotEnoughToTell,
}

impl Cause {
    /// Its name in text and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::LiveNativeGrowth => "live native growth",
            Self::Fragmentation => "fragmentation",
            Self::PagesNotYetReturned => "pages not yet returned",
            Self::GoHeap => "Go heap",
            Self::GoIdleMemory => "Go idle memory",
            Self::OutsideBothAllocators => "outside both allocators",
            Self::Healthy => "healthy",
            Self::NotEnoughToTell => "not enough to tell",
        }
    }

    /// What to do about it.
    const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::LiveNativeGrowth => {
                Some("`offheap dump` and `offheap top --by go` name the Go functions that hold it")
            }
            Self::Fragmentation => Some("`offheap frag` names the size classes and the sites that pin their slabs"),
            Self::PagesNotYetReturned => {
                Some("`offheap purge` returns them now; dirty_decay_ms and background_thread decide how long they stay")
            }
            Self::GoHeap => Some("`go tool pprof` on the service's /debug/pprof/heap names its owners"),
            Self::GoIdleMemory => {
                Some("GOMEMLIMIT or a smaller GOGC makes the Go runtime return it; debug.FreeOSMemory does so at once")
            }
            Self::OutsideBothAllocators => {
                Some("look for mmap in C code: `strace -f -e trace=mmap,munmap -k` shows it")
            }
            Self::Healthy | Self::NotEnoughToTell => None,
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// The cause.
    #[serde(rename = "verdict")]
    pub(crate) cause: Cause,
    /// It grew between two readings; `None` after one reading.
    pub(crate) growing: Option<bool>,
    /// Sentences with the numbers that decided.
    pub(crate) reasons: Vec<String>,
    /// The same numbers by name; sizes in bytes.
    pub(crate) numbers: BTreeMap<&'static str, f64>,
}

/// One reading with its ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    /// The ledger.
    pub(crate) ledger: &'a Ledger,
    /// The allocator's statistics.
    pub(crate) native: Option<&'a Stats>,
    /// The Go runtime's.
    pub(crate) go: Option<&'a GoMemory>,
}

/// A part of RSS with the cause that it would stand for.
#[derive(Clone, Copy, Debug)]
struct Part {
    cause: Cause,
    bytes: u64,
}

const GO_HEAP: [Owner; 2] = [Owner::GoInUse, Owner::GoStacks];

/// The parts of a reading that may be somebody's fault.
fn parts(evidence: Evidence<'_>) -> Vec<Part> {
    let ledger = evidence.ledger;
    let live = ledger.bytes(Owner::JemallocLive);
    [
        (Cause::LiveNativeGrowth, evidence.native.map_or(0, never_freed).min(live)),
        (Cause::Fragmentation, ledger.bytes(Owner::JemallocSlabWaste)),
        (Cause::PagesNotYetReturned, ledger.bytes(Owner::JemallocUnreturned)),
        (Cause::GoHeap, ledger.bytes_of(&GO_HEAP)),
        (Cause::GoIdleMemory, ledger.bytes(Owner::GoIdle)),
        (Cause::OutsideBothAllocators, outside(ledger)),
    ]
    .map(|(cause, bytes)| Part { cause, bytes })
    .to_vec()
}

fn outside(ledger: &Ledger) -> u64 {
    ledger.outside_allocators + ledger.bytes(Owner::ThreadStacks)
}

/// Bytes in size classes from which almost nothing was ever freed.
fn never_freed(stats: &Stats) -> u64 {
    let kept = |nmalloc: Option<u64>, ndalloc: Option<u64>| match (nmalloc, ndalloc) {
        (Some(allocated), Some(freed)) => allocated > 0 && (freed as f64) <= NEVER_FREED * allocated as f64,
        _ => false,
    };
    let bins = stats.bins.iter().filter(|bin| kept(bin.nmalloc, bin.ndalloc));
    let large = stats.large.iter().filter(|class| kept(class.nmalloc, class.ndalloc));
    bins.map(|bin| bin.curregs.saturating_mul(bin.size))
        .chain(large.map(|class| class.curlextents.saturating_mul(class.size)))
        .fold(0, u64::saturating_add)
}

/// Judge a reading, or two that are `elapsed` apart.
pub(crate) fn judge(now: Evidence<'_>, before: Option<(Evidence<'_>, Duration)>) -> Verdict {
    let mut verdict = match before {
        None => single(now),
        Some((before, elapsed)) => match growth(before, now, elapsed) {
            Some(verdict) => verdict,
            None => steady(before, now, elapsed),
        },
    };
    verdict.numbers.insert("rss", now.ledger.rss as f64);
    verdict.numbers.insert("unattributed", now.ledger.unattributed as f64);
    if let Some(remedy) = verdict.cause.remedy() {
        verdict.reasons.push(remedy.into());
    }
    verdict
}

/// The owner that took most of a growth of RSS. Only live memory and direct mappings count here: waste is judged by its
/// size, since it comes and goes with the load.
fn growth(before: Evidence<'_>, now: Evidence<'_>, elapsed: Duration) -> Option<Verdict> {
    let grew = now.ledger.rss.saturating_sub(before.ledger.rss);
    if (grew as f64) < (RSS_NOISE as f64).max(RSS_NOISE_SHARE * before.ledger.rss as f64) {
        return None;
    }
    let delta = |bytes: &dyn Fn(&Ledger) -> u64| bytes(now.ledger).saturating_sub(bytes(before.ledger));
    // A Go heap rises between two collections and falls again. It has grown when the collector raised its goal too.
    let goal = |go: Option<&GoMemory>| go.map_or(0, |memory| memory.next_gc);
    let go_heap = delta(&|l| l.bytes_of(&GO_HEAP)).min(goal(now.go).saturating_sub(goal(before.go)));
    let (cause, bytes) = [
        (Cause::LiveNativeGrowth, delta(&|l| l.bytes(Owner::JemallocLive))),
        (Cause::GoHeap, go_heap),
        (Cause::OutsideBothAllocators, delta(&outside)),
    ]
    .into_iter()
    .max_by_key(|(_, bytes)| *bytes)?;
    if bytes < grew / 2 {
        return None;
    }
    let per_second = bytes as f64 / elapsed.as_secs_f64().max(1e-3);
    Some(Verdict {
        cause,
        growing: Some(true),
        reasons: vec![format!(
            "RSS grew by {} in {:.1} s, {} by {} ({}/s)",
            size(grew),
            elapsed.as_secs_f64(),
            subject(cause),
            size(bytes),
            size(per_second as u64)
        )],
        numbers: BTreeMap::from([
            ("rss_growth", grew as f64),
            ("growth", bytes as f64),
            ("bytes_per_second", per_second),
            ("seconds", elapsed.as_secs_f64()),
        ]),
    })
}

/// One reading: what it says of live memory, a second one would confirm.
fn single(now: Evidence<'_>) -> Verdict {
    let mut verdict = dominant(now);
    let live = now.ledger.bytes(Owner::JemallocLive) >= FLOOR;
    if verdict.cause == Cause::LiveNativeGrowth || verdict.cause == Cause::NotEnoughToTell && live {
        verdict.reasons.push("a second reading (--interval 10s) would tell whether it grows, and how fast".into());
    }
    verdict
}

/// Two readings between which nothing grew: judged by size, but nothing may be called growth.
fn steady(before: Evidence<'_>, now: Evidence<'_>, elapsed: Duration) -> Verdict {
    let mut verdict = dominant(now);
    let moved = i128::from(now.ledger.rss) - i128::from(before.ledger.rss);
    verdict.growing = Some(false);
    verdict.numbers.insert("rss_growth", moved as f64);
    verdict.numbers.insert("seconds", elapsed.as_secs_f64());
    verdict.reasons.push(format!(
        "RSS moved by {} in {:.1} s, and no owner of live memory took more than half of a growth",
        human(moved),
        elapsed.as_secs_f64()
    ));
    if verdict.cause == Cause::LiveNativeGrowth {
        verdict.cause = Cause::NotEnoughToTell;
        verdict.reasons.push("live native memory dominates but did not grow: measure longer, or under load".into());
    }
    verdict
}

/// The part that dominates one reading.
fn dominant(now: Evidence<'_>) -> Verdict {
    let rss = now.ledger.rss;
    let share = |bytes: u64| if rss == 0 { 0.0 } else { bytes as f64 / rss as f64 };
    let dominates = |bytes: u64| bytes >= FLOOR && share(bytes) >= DOMINANT;
    let part = parts(now).into_iter().max_by_key(|part| part.bytes);
    let largest = part.filter(|part| dominates(part.bytes));
    let verdict = |cause, reasons, bytes: u64| Verdict {
        cause,
        growing: None,
        reasons,
        numbers: BTreeMap::from([("part", bytes as f64), ("share", share(bytes))]),
    };
    if let Some(part) = largest {
        return verdict(part.cause, reasons(part, share(part.bytes), now), part.bytes);
    }
    let live = now.ledger.bytes(Owner::JemallocLive);
    if dominates(live) && share(live) >= 0.5 {
        let reason = format!(
            "live native memory is {}, {:.0} % of RSS, but memory of its size classes is freed too: a cache or a leak",
            size(live),
            100.0 * share(live)
        );
        return verdict(Cause::NotEnoughToTell, vec![reason], live);
    }
    let unsplit = now.ledger.bytes_of(&[Owner::GoHeap, Owner::Native, Owner::Unattributed]);
    if dominates(unsplit) {
        let mut reasons =
            vec![format!("{} of RSS, {:.0} %, could not be divided by owner", size(unsplit), 100.0 * share(unsplit))];
        reasons.extend(now.ledger.notes.iter().cloned());
        return verdict(Cause::NotEnoughToTell, reasons, unsplit);
    }
    let bytes = part.map_or(0, |part| part.bytes);
    let reason = match part.filter(|part| part.bytes > 0) {
        Some(part) => format!(
            "no part is both above {} and above {:.0} % of RSS; the largest, {}, is {} ({:.0} %)",
            size(FLOOR),
            100.0 * DOMINANT,
            subject(part.cause),
            size(bytes),
            100.0 * share(bytes)
        ),
        None => format!("RSS is {}, and nothing in it stands out", size(rss)),
    };
    verdict(Cause::Healthy, vec![reason], bytes)
}

fn size(bytes: u64) -> String {
    human(i128::from(bytes))
}

/// What a cause counts.
const fn subject(cause: Cause) -> &'static str {
    match cause {
        Cause::LiveNativeGrowth => "live native memory",
        Cause::Fragmentation => "slab waste",
        Cause::PagesNotYetReturned => "unused pages that jemalloc has not returned",
        Cause::GoHeap => "the Go heap in use, with stacks",
        Cause::GoIdleMemory => "idle Go memory",
        Cause::OutsideBothAllocators => "memory outside both allocators",
        Cause::Healthy | Cause::NotEnoughToTell => "nothing in particular",
    }
}

/// The numbers behind a part that dominates.
fn reasons(part: Part, share: f64, now: Evidence<'_>) -> Vec<String> {
    let ledger = now.ledger;
    let mut reasons = vec![format!(
        "{} is {}, {:.0} % of RSS ({})",
        subject(part.cause),
        size(part.bytes),
        100.0 * share,
        size(ledger.rss)
    )];
    reasons.push(match part.cause {
        Cause::LiveNativeGrowth => {
            "at least 90 % of what was ever allocated in its size classes was never freed".into()
        }
        Cause::Fragmentation => format!(
            "live native memory is {}: for each live byte jemalloc keeps {:.1} bytes of slabs free but pinned",
            size(ledger.bytes(Owner::JemallocLive)),
            part.bytes as f64 / (ledger.bytes(Owner::JemallocLive).max(1)) as f64
        ),
        Cause::PagesNotYetReturned => {
            format!("live native memory is {}", size(ledger.bytes(Owner::JemallocLive)))
        }
        Cause::GoHeap => {
            let stacks = size(ledger.bytes(Owner::GoStacks));
            let goal = now.go.map_or(0, |go| go.next_gc);
            format!("of it stacks {stacks}; the next collection is due at {}", size(goal))
        }
        Cause::GoIdleMemory => format!("the Go heap in use is {}", size(ledger.bytes(Owner::GoInUse))),
        Cause::OutsideBothAllocators => format!(
            "mapped directly or shared {}, thread stacks {}",
            size(ledger.outside_allocators),
            size(ledger.bytes(Owner::ThreadStacks))
        ),
        Cause::Healthy | Cause::NotEnoughToTell => return reasons,
    });
    reasons
}

#[cfg(test)]
mod tests {
    use super::{Cause, Evidence, judge};
    use crate::analysis::go_runtime::GoMemory;
    use crate::analysis::ledger::{Ledger, Owner, Row};
    use offheap_wire::{BinStats, Stats};
    use std::time::Duration;

    const MIB: u64 = 1 << 20;

    /// A service of 20 MiB of images with these rows.
    fn ledger(rows: &[(Owner, u64)]) -> Ledger {
        let rows: Vec<Row> = rows
            .iter()
            .chain(&[(Owner::FileBacked, 20)])
            .map(|(owner, mib)| Row { owner: *owner, bytes: mib * MIB, measured_by: String::new() })
            .collect();
        Ledger { rss: rows.iter().map(|row| row.bytes).sum(), rows, ..Ledger::default() }
    }

    /// `mib` live in one class from which `freed` of 100 were freed.
    fn class(mib: u64, freed: u64) -> Stats {
        let bin = BinStats {
            size: 4096,
            curregs: mib * 256,
            nmalloc: Some(100),
            ndalloc: Some(freed),
            ..BinStats::default()
        };
        Stats { bins: vec![bin], ..Stats::default() }
    }

    fn one(ledger: &Ledger, native: Option<&Stats>) -> Cause {
        judge(Evidence { ledger, native, go: None }, None).cause
    }

    #[test]
    fn the_dominant_part_of_one_reading() {
        let outside = Ledger { outside_allocators: 200 * MIB, ..ledger(&[(Owner::OtherAnonymous, 200)]) };
        for (label, ledger, native, expected) in [
            ("never freed", ledger(&[(Owner::JemallocLive, 200)]), class(200, 0), Cause::LiveNativeGrowth),
            ("a cache", ledger(&[(Owner::JemallocLive, 200)]), class(200, 60), Cause::NotEnoughToTell),
            ("pinned slabs", ledger(&[(Owner::JemallocSlabWaste, 190)]), class(3, 98), Cause::Fragmentation),
            ("dirty pages", ledger(&[(Owner::JemallocUnreturned, 190)]), class(3, 98), Cause::PagesNotYetReturned),
            ("Go objects", ledger(&[(Owner::GoInUse, 80), (Owner::GoStacks, 80)]), class(1, 0), Cause::GoHeap),
            ("Go idle", ledger(&[(Owner::GoInUse, 40), (Owner::GoIdle, 90)]), class(1, 0), Cause::GoIdleMemory),
            ("mmap", outside, class(1, 0), Cause::OutsideBothAllocators),
            ("small", ledger(&[(Owner::JemallocLive, 9), (Owner::GoInUse, 9)]), class(9, 0), Cause::Healthy),
            ("unasked", ledger(&[(Owner::Native, 300)]), class(0, 0), Cause::NotEnoughToTell),
        ] {
            assert_eq!(one(&ledger, Some(&native)), expected, "{label}");
        }
    }

    #[test]
    fn two_readings_tell_growth() {
        let go = |next_gc| GoMemory { next_gc: next_gc * MIB, ..GoMemory::default() };
        let (a, b) = (ledger(&[(Owner::JemallocLive, 100)]), ledger(&[(Owner::JemallocLive, 110)]));
        let (c, d) = (ledger(&[(Owner::GoInUse, 10)]), ledger(&[(Owner::GoInUse, 20)]));
        let stats = class(100, 50);
        for (label, before, now, goals, expected, growing) in [
            ("a cache that grows", &a, &b, (4, 4), Cause::LiveNativeGrowth, true),
            ("a cache that does not", &b, &b, (4, 4), Cause::NotEnoughToTell, false),
            ("a Go heap that grows", &c, &d, (16, 40), Cause::GoHeap, true),
            ("a Go heap before its collection", &c, &d, (40, 40), Cause::Healthy, false),
            ("RSS that falls", &d, &c, (40, 16), Cause::Healthy, false),
        ] {
            let (was, is) = (go(goals.0), go(goals.1));
            let evidence = |ledger, go| Evidence { ledger, native: Some(&stats), go: Some(go) };
            let verdict = judge(evidence(now, &is), Some((evidence(before, &was), Duration::from_secs(10))));
            assert_eq!((verdict.cause, verdict.growing), (expected, Some(growing)), "{label}: {verdict:?}");
        }
    }

    #[test]
    fn never_freed_but_steady_is_no_growth() {
        let ledger = ledger(&[(Owner::JemallocLive, 200)]);
        let stats = class(200, 0);
        let evidence = Evidence { ledger: &ledger, native: Some(&stats), go: None };
        let verdict = judge(evidence, Some((evidence, Duration::from_secs(10))));
        assert_eq!(verdict.cause, Cause::NotEnoughToTell);
        assert!(verdict.reasons.iter().any(|reason| reason.contains("did not grow")), "{verdict:?}");
    }

    #[test]
    fn the_numbers_that_decided_are_named() {
        let ledger = ledger(&[(Owner::JemallocSlabWaste, 180)]);
        let verdict = judge(Evidence { ledger: &ledger, native: None, go: None }, None);
        assert_eq!(verdict.numbers["part"], (180 * MIB) as f64);
        assert!(verdict.reasons[0].contains("180.0 MiB, 90 % of RSS (200.0 MiB)"), "{:?}", verdict.reasons);
    }
}
