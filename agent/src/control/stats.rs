//! Reading jemalloc's statistics into the wire type.

use super::mallctl::{self, ALL_ARENAS, MallctlError, Mib};
use super::process;
use crate::allocator::OwnArena;
use crate::kernel;
use offheap_wire::{ArenaStats, BinStats, LargeStats, Stats};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A reading this young is handed out again: an epoch can take long with thousands of arenas.
const COALESCE: Duration = Duration::from_millis(50);

/// The last reading.
#[derive(Default)]
pub(crate) struct StatsReader {
    /// Guards: the last reading, and that one epoch is advanced at a time.
    last: Mutex<Option<(Instant, Stats)>>,
}

impl StatsReader {
    /// Statistics as of now, or of a moment ago when somebody else just asked.
    pub(crate) fn read(&self) -> Result<Stats, MallctlError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, stats)) = last.as_ref()
            && at.elapsed() < COALESCE
        {
            return Ok(stats.clone());
        }
        let stats = read_now()?;
        *last = Some((Instant::now(), stats.clone()));
        Ok(stats)
    }
}

/// One size in bytes. `None` when this jemalloc does not know it.
pub(crate) fn size(name: &str) -> Option<u64> {
    mallctl::read::<usize>(name).ok().map(|value| value as u64)
}

/// Bytes that the agent itself holds. As of the last epoch.
pub(crate) fn own_bytes() -> u64 {
    OwnArena::index().map_or(0, |arena| {
        let part = |kind: &str| size(&format!("stats.arenas.{arena}.{kind}.allocated")).unwrap_or(0);
        part("small") + part("large")
    })
}

fn read_now() -> Result<Stats, MallctlError> {
    mallctl::advance_epoch()?;
    let bin_classes = bin_classes();
    let arena_count = unsigned("arenas.narenas").unwrap_or(0);
    let arenas = read_arenas(arena_count as usize, &bin_classes);
    let sum = |part: fn(&ArenaStats) -> Option<u64>| arenas.iter().map(part).sum::<Option<u64>>();
    Ok(Stats {
        schema: "offheap.stats/1".into(),
        taken_at: Some(process::now()),
        jemalloc_version: mallctl::version(),
        allocated: size("stats.allocated"),
        active: size("stats.active"),
        metadata: size("stats.metadata"),
        resident: size("stats.resident"),
        mapped: size("stats.mapped"),
        retained: size("stats.retained"),
        tcache: sum(|arena| arena.tcache),
        dirty: sum(|arena| arena.dirty),
        muzzy: sum(|arena| arena.muzzy),
        rss: process::rss(),
        page_size: size("arenas.page"),
        narenas: Some(arena_count),
        bins: read_bins(&bin_classes),
        large: read_large(),
        arenas,
    })
}

/// A small size class, apart from what is in it.
struct BinClass {
    size: u64,
    nregs: u64,
    slab_size: u64,
}

fn bin_classes() -> Vec<BinClass> {
    let count = unsigned("arenas.nbins").unwrap_or(0);
    let (Some(size), Some(nregs), Some(slab_size)) =
        (Mib::resolve("arenas.bin.0.size"), Mib::resolve("arenas.bin.0.nregs"), Mib::resolve("arenas.bin.0.slab_size"))
    else {
        return Vec::new();
    };
    let class = |index: usize| {
        Some(BinClass {
            size: size.at(&[(2, index)]).read::<usize>()? as u64,
            nregs: u64::from(nregs.at(&[(2, index)]).read::<u32>()?),
            slab_size: slab_size.at(&[(2, index)]).read::<usize>()? as u64,
        })
    };
    (0..count as usize).map_while(class).collect()
}

fn read_bins(classes: &[BinClass]) -> Vec<BinStats> {
    let mib = |field: &str| Mib::resolve(&format!("stats.arenas.0.bins.0.{field}"));
    let (curregs, curslabs) = (mib("curregs"), mib("curslabs"));
    let (nonfull, nmalloc, ndalloc) = (mib("nonfull_slabs"), mib("nmalloc"), mib("ndalloc"));
    let bin = |(index, class): (usize, &BinClass)| {
        let here = |mib: &Option<Mib>| Some(mib.as_ref()?.at(&[(2, ALL_ARENAS), (4, index)]));
        Some(BinStats {
            size: class.size,
            nregs: class.nregs,
            slab_size: class.slab_size,
            curregs: here(&curregs)?.read::<usize>()? as u64,
            curslabs: here(&curslabs)?.read::<usize>()? as u64,
            nonfull_slabs: here(&nonfull).and_then(|mib| mib.read::<usize>()).map(|count| count as u64),
            nmalloc: here(&nmalloc).and_then(|mib| mib.read::<u64>()),
            ndalloc: here(&ndalloc).and_then(|mib| mib.read::<u64>()),
        })
    };
    classes.iter().enumerate().map_while(bin).collect()
}

fn read_large() -> Vec<LargeStats> {
    let count = unsigned("arenas.nlextents").unwrap_or(0);
    let mib = |field: &str| Mib::resolve(&format!("stats.arenas.0.lextents.0.{field}"));
    let size = Mib::resolve("arenas.lextent.0.size");
    let (current, nmalloc, ndalloc) = (mib("curlextents"), mib("nmalloc"), mib("ndalloc"));
    let class = |index: usize| {
        let here = |mib: &Option<Mib>| Some(mib.as_ref()?.at(&[(2, ALL_ARENAS), (4, index)]));
        Some(LargeStats {
            size: size.as_ref()?.at(&[(2, index)]).read::<usize>()? as u64,
            curlextents: here(&current)?.read::<usize>()? as u64,
            nmalloc: here(&nmalloc).and_then(|mib| mib.read::<u64>()),
            ndalloc: here(&ndalloc).and_then(|mib| mib.read::<u64>()),
        })
    };
    (0..count as usize)
        .map_while(class)
        .filter(|class| class.curlextents > 0 || class.nmalloc.is_some_and(|count| count > 0))
        .collect()
}

/// The controls of one arena, resolved once for all.
struct ArenaMibs {
    initialized: Option<Mib>,
    fields: [Option<Mib>; 14],
    curregs: Option<Mib>,
    curslabs: Option<Mib>,
}

const ARENA_FIELDS: [&str; 14] = [
    "nthreads",
    "small.allocated",
    "large.allocated",
    "pactive",
    "pdirty",
    "pmuzzy",
    "mapped",
    "retained",
    "resident",
    "base",
    "internal",
    "tcache_bytes",
    "dirty_decay_ms",
    "muzzy_decay_ms",
];

fn read_arenas(count: usize, classes: &[BinClass]) -> Vec<ArenaStats> {
    let stat = |field: &str| Mib::resolve(&format!("stats.arenas.0.{field}"));
    let mibs = ArenaMibs {
        initialized: Mib::resolve("arena.0.initialized"),
        fields: ARENA_FIELDS.map(stat),
        curregs: stat("bins.0.curregs"),
        curslabs: stat("bins.0.curslabs"),
    };
    (0..count).filter_map(|index| read_arena(index, &mibs, classes)).collect()
}

fn read_arena(index: usize, mibs: &ArenaMibs, classes: &[BinClass]) -> Option<ArenaStats> {
    if mibs.initialized.as_ref()?.at(&[(1, index)]).read() != Some(true) {
        return None;
    }
    let page = process_page();
    let field = |number: usize| Some(mibs.fields[number].as_ref()?.at(&[(2, index)]));
    let bytes = |number: usize| field(number)?.read::<usize>().map(|value| value as u64);
    let signed = |number: usize| field(number)?.read::<isize>().map(|value| value as i64);
    Some(ArenaStats {
        index: index as u32,
        nthreads: field(0).and_then(|mib| mib.read::<u32>()).map(u64::from),
        small_allocated: bytes(1),
        large_allocated: bytes(2),
        active: bytes(3).map(|pages| pages * page),
        dirty: bytes(4).map(|pages| pages * page),
        muzzy: bytes(5).map(|pages| pages * page),
        mapped: bytes(6),
        retained: bytes(7),
        resident: bytes(8),
        metadata: bytes(9).zip(bytes(10)).map(|(base, internal)| base + internal),
        tcache: bytes(11),
        dirty_decay_ms: signed(12),
        muzzy_decay_ms: signed(13),
        slab_waste: slab_waste(index, mibs, classes),
        agent: OwnArena::index() == Some(index as u32),
    })
}

/// Σ curslabs·slab_size − curregs·size over the small classes: bytes of slabs in which no object lives.
fn slab_waste(arena: usize, mibs: &ArenaMibs, classes: &[BinClass]) -> Option<u64> {
    let (curregs, curslabs) = (mibs.curregs.as_ref()?, mibs.curslabs.as_ref()?);
    classes.iter().enumerate().try_fold(0u64, |sum, (bin, class)| {
        let at = [(2, arena), (4, bin)];
        let (regs, slabs) = (curregs.at(&at).read::<usize>()? as u64, curslabs.at(&at).read::<usize>()? as u64);
        Some(sum + (slabs * class.slab_size).saturating_sub(regs * class.size))
    })
}

fn process_page() -> u64 {
    size("arenas.page").unwrap_or_else(kernel::page_size)
}

fn unsigned(name: &str) -> Option<u64> {
    mallctl::read::<u32>(name).ok().map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_whole_and_consistent() {
        let held = vec![1u8; 3 << 20];
        let stats = StatsReader::default().read().unwrap();
        assert!(stats.allocated.unwrap() >= held.len() as u64);
        assert!(stats.allocated <= stats.active && stats.active <= stats.mapped);
        assert!(!stats.bins.is_empty() && !stats.arenas.is_empty());
        assert!(stats.large.iter().any(|class| class.curlextents > 0));
        let by_arena: u64 = stats.arenas.iter().map(|a| a.small_allocated.unwrap() + a.large_allocated.unwrap()).sum();
        assert_eq!(by_arena, stats.allocated.unwrap());
        let waste: u64 = stats.arenas.iter().map(|arena| arena.slab_waste.unwrap()).sum();
        let by_bin: u64 = stats.bins.iter().map(|bin| bin.curslabs * bin.slab_size - bin.curregs * bin.size).sum();
        assert_eq!(waste, by_bin);
    }

    #[test]
    fn a_young_reading_is_handed_out_again() {
        let reader = StatsReader::default();
        assert_eq!(reader.read().unwrap().taken_at, reader.read().unwrap().taken_at);
    }
}
