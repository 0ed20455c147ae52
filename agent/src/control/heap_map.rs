//! The occupancy of every slab, asked of jemalloc page by page.
//!
//! What jemalloc changes meanwhile gives numbers of another moment, which are checked for sense.

use super::mallctl::Extents;
use super::{process, stats};
use crate::allocator::OwnArena;
use crate::boundary::Finally;
use offheap_wire::{HeapMap, SlabClass};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Look-ups between two pauses. Each takes jemalloc's control lock for some 100 ns, which others want too.
const STEPS_PER_PAUSE: u32 = 2048;
const PAUSE: Duration = Duration::from_micros(500);
/// Bounds of one scan: time, and slabs in the answer.
const TIME: Duration = Duration::from_secs(20);
const SLABS_MAX: usize = 1 << 20;

/// Why there is no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoMap {
    /// Another scan is under way.
    Busy,
    /// This jemalloc has not the controls, or the mappings cannot be read.
    Unavailable,
}

/// A scan is under way.
static SCANNING: AtomicBool = AtomicBool::new(false);

/// Scan all anonymous mappings.
pub(crate) fn heap_map() -> Result<HeapMap, NoMap> {
    if SCANNING.swap(true, Ordering::Acquire) {
        return Err(NoMap::Busy);
    }
    let _idle = Finally(|| SCANNING.store(false, Ordering::Release));
    scan()
}

fn scan() -> Result<HeapMap, NoMap> {
    let extents = Extents::resolve().ok_or(NoMap::Unavailable)?;
    let maps = std::fs::read("/proc/thread-self/maps").map_err(|_| NoMap::Unavailable)?;
    let maps = String::from_utf8_lossy(&maps);
    let page = stats::size("arenas.page").unwrap_or(4096).max(4096);
    let mut scan =
        Scan { extents, page, begin: Instant::now(), steps: 0, slabs: 0, scanned: 0, classes: BTreeMap::new() };
    let truncated = !maps.lines().filter_map(anonymous).all(|range| scan.range(range));
    let classes = scan.classes.into_iter().map(|((slab_size, nregs), slabs)| SlabClass {
        // Slabs are chosen so that regions fill them exactly.
        size: slab_size / nregs,
        nregs,
        slab_size,
        slabs,
    });
    let mut classes: Vec<SlabClass> = classes.collect();
    classes.sort_by_key(|class| class.size);
    Ok(HeapMap {
        schema: "offheap.heap_map/1".into(),
        taken_at: process::now(),
        scanned: scan.scanned,
        truncated,
        classes,
    })
}

/// Address range of a mapping in which jemalloc may have slabs: writable, private, without a file. Named ones belong to
/// somebody else (`[stack]`, `[anon: Go: heap]`), but for the names that a kernel or an allocator gives to plain memory.
///
/// ```text
/// 7f3c40000000-7f3c40800000 rw-p 00000000 00:00 0
/// ```
fn anonymous(line: &str) -> Option<Range<u64>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let inode = fields.nth(2)?;
    let name = fields.next().unwrap_or("");
    let plain = name.is_empty() || name.starts_with("[anon:jemalloc") || name == "[heap]";
    if !permissions.starts_with("rw") || !permissions.ends_with('p') || inode != "0" || !plain {
        return None;
    }
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some(hex(start)?..hex(end)?)
}

struct Scan {
    extents: Extents,
    page: u64,
    begin: Instant,
    steps: u32,
    slabs: usize,
    scanned: u64,
    /// By slab size and regions, which together tell the class.
    classes: BTreeMap<(u64, u64), Vec<(u64, u64)>>,
}

impl Scan {
    /// Walk a mapping; `false` when a bound was reached.
    fn range(&mut self, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            if !self.pace() {
                return false;
            }
            let step = self.look(at, range.end - at);
            at += step;
            self.scanned += step;
        }
        true
    }

    fn pace(&mut self) -> bool {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_PER_PAUSE) {
            std::thread::sleep(PAUSE);
            return self.begin.elapsed() < TIME && self.slabs < SLABS_MAX;
        }
        true
    }

    /// Record what is at an address; how far to go to what comes next.
    fn look(&mut self, at: u64, left: u64) -> u64 {
        let Some(found) = self.extents.at(at, OwnArena::index()) else { return self.page };
        let (size, regions, free) = (found.size as u64, found.regions as u64, found.free as u64);
        // Numbers of an extent that changed under our eyes.
        if size < self.page || size % self.page != 0 || size > left {
            return self.page;
        }
        if regions > 1 && free <= regions && size / regions > 0 {
            self.slabs += 1;
            self.classes.entry((size, regions)).or_default().push((at, free));
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::anonymous;

    #[test]
    fn only_plain_anonymous_memory_is_scanned() {
        for (line, range) in [
            ("7f3c40000000-7f3c40800000 rw-p 00000000 00:00 0 ", Some(0x7f3c_4000_0000..0x7f3c_4080_0000)),
            (
                "7f3c40000000-7f3c40800000 rw-p 00000000 00:00 0    [anon:jemalloc_pg]",
                Some(0x7f3c_4000_0000..0x7f3c_4080_0000),
            ),
            ("555500000000-555500021000 rw-p 00000000 00:00 0    [heap]", Some(0x5555_0000_0000..0x5555_0002_1000)),
            ("c000000000-c004000000 rw-p 00000000 00:00 0        [anon: Go: heap]", None),
            ("7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0    [stack]", None),
            ("7f3c40000000-7f3c40800000 ---p 00000000 00:00 0 ", None),
            ("7f3c40000000-7f3c40800000 r-xp 00000000 00:00 0    [vdso]", None),
            ("7f3c40000000-7f3c40800000 rw-s 00000000 00:01 77   /memfd:x (deleted)", None),
            ("7f3c40000000-7f3c40800000 rw-p 00001000 08:01 99   /usr/lib/libc.so.6", None),
            ("garbage", None),
            ("", None),
        ] {
            assert_eq!(anonymous(line), range, "{line}");
        }
    }
}
