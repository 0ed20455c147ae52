//! The fragmentation index and the named numbers beside it.
//!
//! ```text
//! index       1 − allocated/active
//! slab waste  Σ over small classes of curslabs·slab_size − curregs·size
//! cached      tcache bytes: freed by the program, held by thread caches, counted as allocated
//! unreturned  resident − active − metadata: dirty and muzzy pages
//! outside     RSS − resident
//! ```
//!
//! active − allocated, the numerator of the index, is slab waste plus what large allocations lose by rounding up to
//! pages (jemalloc's `cache_oblivious` adds one page each): that rest is `large_padding`. Differences are signed: one
//! that comes out negative tells that the numbers do not belong together, and is shown as it is.

use offheap_wire::{ArenaStats, BinStats, LargeStats, Stats};
use serde::Serialize;

/// Numbers above are no sizes: a counter that went below zero.
const UNDERFLOWED: u64 = 1 << 60;
/// Active pages may exceed RSS by this factor (swapped out, never touched) before the index stops describing RSS.
const ACTIVE_OVER_RSS: f64 = 2.0;
/// Differences below this are the noise between two readings of moving counters.
const NOISE: u64 = 64 << 20;

/// From when on an index is called fragmentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The index itself.
    pub(crate) index: f64,
    /// Bytes of active − allocated: a small heap may have any index and nobody would win by changing it.
    pub(crate) min_waste: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { index: 0.35, min_waste: 16 << 20 }
    }
}

/// What the numbers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Nothing to win.
    Ok,
    /// Above the limits.
    Fragmented,
    /// The numbers contradict each other.
    Unreliable,
    /// There are no numbers to judge.
    Unknown,
}

impl Verdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fragmented => "fragmented",
            Self::Unreliable => "unreliable",
            Self::Unknown => "unknown",
        }
    }
}

/// The named numbers; `None` is unknown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fragmentation {
    pub(crate) index: Option<f64>,
    pub(crate) slab_waste: Option<i64>,
    pub(crate) large_padding: Option<i64>,
    pub(crate) cached: Option<u64>,
    pub(crate) unreturned: Option<i64>,
    pub(crate) metadata: Option<u64>,
    pub(crate) retained: Option<u64>,
    pub(crate) outside: Option<i64>,
    pub(crate) allocated: Option<u64>,
    pub(crate) active: Option<u64>,
    pub(crate) resident: Option<u64>,
    pub(crate) rss: Option<u64>,
    pub(crate) verdict: Verdict,
    /// Why the verdict is not `ok`; for `ok`, the numbers that decided.
    pub(crate) reasons: Vec<String>,
}

impl Fragmentation {
    /// The numbers are there and do not contradict each other.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self.verdict, Verdict::Ok | Verdict::Fragmented)
    }
}

/// A small size class with what it loses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Class {
    pub(crate) size: u64,
    pub(crate) waste: i64,
    /// Regions in use of those that its slabs have; `None` without slabs.
    pub(crate) utilization: Option<f64>,
    /// Of all slab waste.
    pub(crate) share: Option<f64>,
    pub(crate) curregs: u64,
    pub(crate) curslabs: u64,
    pub(crate) nonfull_slabs: Option<u64>,
    pub(crate) nregs: u64,
    pub(crate) slab_size: u64,
}

/// A large size class: an allocation is an extent, so nothing is stranded in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Large {
    pub(crate) size: u64,
    pub(crate) extents: u64,
    pub(crate) bytes: u64,
}

/// One arena with what it loses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Arena {
    pub(crate) index: u32,
    /// 1 − allocated/active of the arena alone.
    pub(crate) fragmentation: Option<f64>,
    pub(crate) slab_waste: Option<u64>,
    pub(crate) allocated: Option<u64>,
    pub(crate) active: Option<u64>,
    /// Dirty and muzzy pages.
    pub(crate) unused: Option<u64>,
    pub(crate) nthreads: Option<u64>,
    /// The arena is the agent's own.
    pub(crate) agent: bool,
}

/// Judge one reading.
pub(crate) fn assess(stats: &Stats, limits: Limits) -> Fragmentation {
    let slab_waste = slab_waste(stats);
    let lost = difference(stats.active, stats.allocated);
    let (verdict, reasons) = judge(stats, limits);
    Fragmentation {
        index: index(stats.allocated, stats.active),
        slab_waste,
        large_padding: lost.zip(slab_waste).map(|(lost, slabs)| lost - slabs),
        cached: stats.tcache,
        unreturned: difference(stats.resident, stats.active)
            .zip(stats.metadata)
            .map(|(pages, metadata)| pages.saturating_sub_unsigned(metadata)),
        metadata: stats.metadata,
        retained: stats.retained,
        outside: difference(stats.rss, stats.resident),
        allocated: stats.allocated,
        active: stats.active,
        resident: stats.resident,
        rss: stats.rss,
        verdict,
        reasons,
    }
}

/// 1 − allocated/active; `None` when either is unknown, underflowed, or there is no active page.
pub(crate) fn index(allocated: Option<u64>, active: Option<u64>) -> Option<f64> {
    let (allocated, active) = (allocated?, active?);
    let whole = active > 0 && active <= UNDERFLOWED && allocated <= UNDERFLOWED;
    whole.then(|| 1.0 - allocated as f64 / active as f64)
}

/// Bytes in free regions of slabs of this class.
pub(crate) fn waste(bin: &BinStats) -> i64 {
    let held = i128::from(bin.curslabs) * i128::from(bin.slab_size);
    let used = i128::from(bin.curregs) * i128::from(bin.size);
    // Both fit by far in any real process; a counter that underflowed saturates and is seen as such.
    i64::try_from(held - used).unwrap_or(if held > used { i64::MAX } else { i64::MIN })
}

fn slab_waste(stats: &Stats) -> Option<i64> {
    if stats.bins.is_empty() && stats.allocated != Some(0) {
        return None;
    }
    Some(stats.bins.iter().map(waste).fold(0, i64::saturating_add))
}

/// The small classes, the one with most waste first; those without slabs are left out.
pub(crate) fn classes(bins: &[BinStats]) -> Vec<Class> {
    let total: i64 = bins.iter().map(waste).fold(0, i64::saturating_add);
    let mut classes: Vec<Class> = bins
        .iter()
        .filter(|bin| bin.curslabs > 0)
        .map(|bin| {
            let waste = waste(bin);
            let regions = bin.curslabs as f64 * bin.nregs as f64;
            Class {
                size: bin.size,
                waste,
                utilization: (regions > 0.0).then(|| bin.curregs as f64 / regions),
                share: (total > 0).then(|| waste as f64 / total as f64),
                curregs: bin.curregs,
                curslabs: bin.curslabs,
                nonfull_slabs: bin.nonfull_slabs,
                nregs: bin.nregs,
                slab_size: bin.slab_size,
            }
        })
        .collect();
    classes.sort_by(|a, b| b.waste.cmp(&a.waste).then(a.size.cmp(&b.size)));
    classes
}

/// The large classes, the one with most bytes first.
pub(crate) fn large(large: &[LargeStats]) -> Vec<Large> {
    let class = |class: &LargeStats| Large {
        size: class.size,
        extents: class.curlextents,
        bytes: class.size.saturating_mul(class.curlextents),
    };
    let mut classes: Vec<Large> = large.iter().filter(|class| class.curlextents > 0).map(class).collect();
    classes.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.size.cmp(&b.size)));
    classes
}

/// The arenas that hold something, the one with most slab waste first.
pub(crate) fn arenas(arenas: &[ArenaStats]) -> Vec<Arena> {
    let mut found: Vec<Arena> = arenas
        .iter()
        .map(|arena| {
            let allocated = arena.small_allocated.zip(arena.large_allocated).map(|(small, large)| small + large);
            Arena {
                index: arena.index,
                fragmentation: index(allocated, arena.active),
                slab_waste: arena.slab_waste,
                allocated,
                active: arena.active,
                unused: arena.dirty.map(|dirty| dirty + arena.muzzy.unwrap_or(0)),
                nthreads: arena.nthreads,
                agent: arena.agent,
            }
        })
        .filter(|arena| arena.active.unwrap_or(1) > 0 || arena.unused.unwrap_or(0) > 0)
        .collect();
    found.sort_by(|a, b| b.slab_waste.cmp(&a.slab_waste).then(a.index.cmp(&b.index)));
    found
}

fn difference(a: Option<u64>, b: Option<u64>) -> Option<i64> {
    let (a, b) = (a?, b?);
    // What underflowed has no meaning to subtract from.
    (a <= UNDERFLOWED && b <= UNDERFLOWED).then(|| a as i64 - b as i64)
}

fn judge(stats: &Stats, limits: Limits) -> (Verdict, Vec<String>) {
    let unknown = |reason: &str| (Verdict::Unknown, vec![reason.to_owned()]);
    let (Some(allocated), Some(active)) = (stats.allocated, stats.active) else {
        return unknown(
            "allocated or active is not in the report: were statistics compiled out, or is it another allocator instance?",
        );
    };
    if active == 0 {
        return unknown("the allocator holds nothing (active is 0): is the memory in another allocator instance?");
    }
    let contradictions = contradictions(stats, allocated, active);
    if !contradictions.is_empty() {
        return (Verdict::Unreliable, contradictions);
    }
    let index = 1.0 - allocated as f64 / active as f64;
    let lost = active - allocated;
    if index > limits.index && lost >= limits.min_waste {
        let reason = format!("index {index:.3} is above {}, {lost} bytes of active pages hold no object", limits.index);
        return (Verdict::Fragmented, vec![reason]);
    }
    let reason = if index > limits.index {
        format!("index {index:.3} is above {}, of a heap that loses only {lost} bytes by it", limits.index)
    } else {
        format!("index {index:.3} is not above {}", limits.index)
    };
    (Verdict::Ok, vec![reason])
}

/// What cannot be true of one moment of one allocator.
fn contradictions(stats: &Stats, allocated: u64, active: u64) -> Vec<String> {
    let mut found = Vec::new();
    let named = [
        ("allocated", stats.allocated),
        ("active", stats.active),
        ("metadata", stats.metadata),
        ("resident", stats.resident),
        ("mapped", stats.mapped),
        ("retained", stats.retained),
    ];
    for (name, value) in named {
        if let Some(value) = value.filter(|value| *value > UNDERFLOWED) {
            found.push(format!("{name} is {value}: a counter that went below zero"));
        }
    }
    if !found.is_empty() {
        return found;
    }
    if allocated > active {
        found.push(format!("allocated ({allocated}) is above active ({active}), which contains it"));
    }
    if let Some(resident) = stats.resident.filter(|resident| *resident < active) {
        found.push(format!("resident ({resident}) is below active ({active}), which it contains"));
    }
    if let Some(rss) = stats.rss
        && active as f64 > rss as f64 * ACTIVE_OVER_RSS
        && active > rss + NOISE
    {
        found.push(format!(
            "active ({active}) is far above RSS ({rss}): swapped out, never touched, or another process's numbers"
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Limits, Verdict, arenas, assess, classes, large};
    use offheap_wire::{ArenaStats, BinStats, LargeStats, Stats};

    const MIB: u64 = 1 << 20;

    fn stats(allocated: u64, active: u64) -> Stats {
        Stats { allocated: Some(allocated), active: Some(active), ..Stats::default() }
    }

    #[test]
    fn verdicts() {
        let with_rss = |rss| Stats { rss: Some(rss), ..stats(100 * MIB, 400 * MIB) };
        for (label, stats, index, verdict) in [
            ("fragmented", stats(100 * MIB, 400 * MIB), Some(0.75), Verdict::Fragmented),
            ("healthy", stats(390 * MIB, 400 * MIB), Some(0.025), Verdict::Ok),
            ("at the limit", stats(65 * MIB, 100 * MIB), Some(0.35), Verdict::Ok),
            ("tiny", stats(MIB, 4 * MIB), Some(0.75), Verdict::Ok),
            ("nothing", stats(0, 0), None, Verdict::Unknown),
            ("no numbers", Stats::default(), None, Verdict::Unknown),
            ("allocated above active", stats(401 * MIB, 400 * MIB), Some(-0.0025), Verdict::Unreliable),
            ("underflowed", stats(u64::MAX - 5, 400 * MIB), None, Verdict::Unreliable),
            (
                "resident below active",
                Stats { resident: Some(MIB), ..stats(1, 2 * MIB) },
                Some(1.0),
                Verdict::Unreliable,
            ),
            ("active above RSS", with_rss(300 * MIB), Some(0.75), Verdict::Fragmented),
            ("active far above RSS", with_rss(100 * MIB), Some(0.75), Verdict::Unreliable),
        ] {
            let found = assess(&stats, Limits::default());
            assert_eq!(found.verdict, verdict, "{label}: {:?}", found.reasons);
            assert!(!found.reasons.is_empty(), "{label}");
            match (found.index, index) {
                (Some(a), Some(b)) => assert!((a - b).abs() < 1e-6, "{label}: {a}"),
                (a, b) => assert_eq!(a, b, "{label}"),
            }
        }
    }

    #[test]
    fn the_named_numbers() {
        let bins = vec![
            BinStats { size: 64, nregs: 64, slab_size: 4096, curregs: 1000, curslabs: 100, ..BinStats::default() },
            BinStats { size: 448, nregs: 64, slab_size: 28672, curregs: 1, curslabs: 1, ..BinStats::default() },
            BinStats { size: 8, nregs: 512, slab_size: 4096, ..BinStats::default() },
        ];
        let stats = Stats {
            metadata: Some(30_000),
            resident: Some(1_000_000),
            retained: Some(9 << 30),
            rss: Some(900_000),
            tcache: Some(77),
            bins,
            ..stats(96_448, 500_000)
        };
        let found = assess(&stats, Limits::default());
        assert_eq!(found.slab_waste, Some(409_600 - 64_000 + 28_672 - 448));
        assert_eq!(found.large_padding, Some(500_000 - 96_448 - 373_824));
        assert_eq!(found.unreturned, Some(1_000_000 - 500_000 - 30_000));
        assert_eq!(found.outside, Some(-100_000));
        assert_eq!((found.cached, found.retained), (Some(77), Some(9 << 30)));

        let classes = classes(&stats.bins);
        assert_eq!(
            classes.iter().map(|class| (class.size, class.waste)).collect::<Vec<_>>(),
            [(64, 345_600), (448, 28_224)]
        );
        assert!((classes[0].utilization.unwrap() - 1000.0 / 6400.0).abs() < 1e-12);
        assert!((classes.iter().filter_map(|class| class.share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn arenas_and_large_classes_by_what_they_hold() {
        let arena = |index, active, waste| ArenaStats {
            index,
            active: Some(active),
            small_allocated: Some(active / 4),
            large_allocated: Some(active / 4),
            slab_waste: Some(waste),
            dirty: Some(0),
            ..ArenaStats::default()
        };
        let found = arenas(&[arena(0, 100, 5), arena(1, 0, 0), arena(2, 400, 50)]);
        assert_eq!(found.iter().map(|arena| arena.index).collect::<Vec<_>>(), [2, 0], "the empty one is left out");
        assert_eq!(found[0].fragmentation, Some(0.5));
        let class = |size, curlextents| LargeStats { size, curlextents, ..LargeStats::default() };
        let found = large(&[class(16384, 3), class(20480, 0), class(8 << 20, 1)]);
        assert_eq!(found.iter().map(|class| class.bytes).collect::<Vec<_>>(), [8 << 20, 3 * 16384]);
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        let found = assess(&stats(100, 200), Limits::default());
        assert_eq!(
            (found.slab_waste, found.unreturned, found.outside, found.cached, found.metadata, found.large_padding),
            (None, None, None, None, None, None)
        );
    }
}
