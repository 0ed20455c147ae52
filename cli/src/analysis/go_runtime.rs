//! The memory statistics of a Go runtime, from any of the pages on which Go services publish them.
//!
//! ```text
//! # runtime.MemStats                         /debug/pprof/heap?debug=1
//! # HeapInuse = 176668672
//! # Stack = 294912 / 294912
//!
//! go_memstats_heap_inuse_bytes 1.76668672e+08    /metrics
//!
//! {"memstats": {"HeapInuse": 176668672, …}}      /debug/vars
//! ```

use std::collections::BTreeMap;

/// What the Go runtime says of its memory; bytes. Everything is as of the reading, not of the last garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct GoMemory {
    /// Bytes of live and not yet collected objects.
    pub(crate) heap_alloc: u64,
    /// Bytes of spans that hold at least one object.
    pub(crate) heap_inuse: u64,
    /// Bytes of spans that hold none.
    pub(crate) heap_idle: u64,
    /// Bytes of idle spans that the kernel was given back.
    pub(crate) heap_released: u64,
    /// Bytes of spans that hold goroutine stacks; they lie in the heap's arenas.
    pub(crate) stack_inuse: u64,
    /// `stack_inuse` and what was mapped for stacks outside the arenas.
    pub(crate) stack_sys: u64,
    /// Mapped for span descriptors.
    pub(crate) mspan_sys: u64,
    /// Mapped for per-processor caches.
    pub(crate) mcache_sys: u64,
    /// Mapped for the profiler's hash table.
    pub(crate) buck_hash_sys: u64,
    /// Mapped for the garbage collector; its work buffers lie in the arenas.
    pub(crate) gc_sys: u64,
    /// Mapped for the rest of the runtime.
    pub(crate) other_sys: u64,
    /// Heap size at which the next collection is due.
    pub(crate) next_gc: u64,
}

/// The page on which the statistics were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The MemStats at the end of `/debug/pprof/heap?debug=1`.
    HeapText,
    /// Prometheus text with the collector of the Go client.
    Prometheus,
    /// `/debug/vars` of the package expvar.
    Expvar,
}

impl Source {
    /// The name that people know it by.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::HeapText => "MemStats of the Go heap profile",
            Self::Prometheus => "go_memstats_* metrics",
            Self::Expvar => "expvar memstats",
        }
    }
}

impl GoMemory {
    /// Idle spans that are still the process's.
    pub(crate) fn idle_unreturned(&self) -> u64 {
        self.heap_idle.saturating_sub(self.heap_released)
    }

    /// Address space that the runtime mapped outside the arenas; how much of it is resident nobody says.
    pub(crate) fn outside_arenas(&self) -> u64 {
        [self.mspan_sys, self.mcache_sys, self.buck_hash_sys, self.gc_sys, self.other_sys]
            .into_iter()
            .fold(self.stack_sys.saturating_sub(self.stack_inuse), u64::saturating_add)
    }
}

/// Find the statistics in a page. `None` when it holds none, or lacks one of the keys that the ledger cannot do without.
pub(crate) fn parse(page: &[u8]) -> Option<(GoMemory, Source)> {
    let text = String::from_utf8_lossy(page);
    if text.trim_start().starts_with('{') {
        return Some((expvar(&text)?, Source::Expvar));
    }
    if let Some(memory) = heap_text(&text) {
        return Some((memory, Source::HeapText));
    }
    Some((prometheus(&text)?, Source::Prometheus))
}

fn heap_text(text: &str) -> Option<GoMemory> {
    let (_, block) = text.split_once("# runtime.MemStats")?;
    let values: BTreeMap<&str, &str> =
        block.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(" = ")).collect();
    let number = |key: &str| values.get(key)?.trim().parse::<u64>().ok();
    let pair = |key: &str| {
        let (inuse, sys) = values.get(key)?.split_once('/')?;
        Some((inuse.trim().parse().ok()?, sys.trim().parse().ok()?))
    };
    let (stack_inuse, stack_sys) = pair("Stack")?;
    Some(GoMemory {
        heap_alloc: number("HeapAlloc")?,
        heap_inuse: number("HeapInuse")?,
        heap_idle: number("HeapIdle")?,
        heap_released: number("HeapReleased")?,
        stack_inuse,
        stack_sys,
        mspan_sys: pair("MSpan").map_or(0, |(_, sys)| sys),
        mcache_sys: pair("MCache").map_or(0, |(_, sys)| sys),
        buck_hash_sys: number("BuckHashSys").unwrap_or(0),
        gc_sys: number("GCSys").unwrap_or(0),
        other_sys: number("OtherSys").unwrap_or(0),
        next_gc: number("NextGC").unwrap_or(0),
    })
}

fn expvar(text: &str) -> Option<GoMemory> {
    let page: serde_json::Value = serde_json::from_str(text).ok()?;
    let memory = page.get("memstats")?;
    let number = |key: &str| memory.get(key)?.as_u64();
    from_keys(&number, |name| match name {
        Key::HeapAlloc => "HeapAlloc",
        Key::HeapInuse => "HeapInuse",
        Key::HeapIdle => "HeapIdle",
        Key::HeapReleased => "HeapReleased",
        Key::StackInuse => "StackInuse",
        Key::StackSys => "StackSys",
        Key::MSpanSys => "MSpanSys",
        Key::MCacheSys => "MCacheSys",
        Key::BuckHashSys => "BuckHashSys",
        Key::GcSys => "GCSys",
        Key::OtherSys => "OtherSys",
        Key::NextGc => "NextGC",
    })
}

fn prometheus(text: &str) -> Option<GoMemory> {
    // A value may carry a timestamp; labels, if a relabelling proxy added some, end at the last brace.
    let values: BTreeMap<&str, f64> = text
        .lines()
        .filter(|line| line.starts_with("go_memstats_"))
        .filter_map(|line| {
            let name = &line[..line.find(['{', ' '])?];
            let after = line.rsplit_once('}').map_or(&line[name.len()..], |(_, after)| after);
            Some((name, after.split_ascii_whitespace().next()?.parse().ok()?))
        })
        .collect();
    let number = |key: &str| values.get(key).filter(|v| **v >= 0.0 && **v < 1.8e19).map(|v| *v as u64);
    from_keys(&number, |name| match name {
        Key::HeapAlloc => "go_memstats_heap_alloc_bytes",
        Key::HeapInuse => "go_memstats_heap_inuse_bytes",
        Key::HeapIdle => "go_memstats_heap_idle_bytes",
        Key::HeapReleased => "go_memstats_heap_released_bytes",
        Key::StackInuse => "go_memstats_stack_inuse_bytes",
        Key::StackSys => "go_memstats_stack_sys_bytes",
        Key::MSpanSys => "go_memstats_mspan_sys_bytes",
        Key::MCacheSys => "go_memstats_mcache_sys_bytes",
        Key::BuckHashSys => "go_memstats_buck_hash_sys_bytes",
        Key::GcSys => "go_memstats_gc_sys_bytes",
        Key::OtherSys => "go_memstats_other_sys_bytes",
        Key::NextGc => "go_memstats_next_gc_bytes",
    })
}

#[derive(Clone, Copy)]
enum Key {
    HeapAlloc,
    HeapInuse,
    HeapIdle,
    HeapReleased,
    StackInuse,
    StackSys,
    MSpanSys,
    MCacheSys,
    BuckHashSys,
    GcSys,
    OtherSys,
    NextGc,
}

fn from_keys(number: &dyn Fn(&str) -> Option<u64>, name: fn(Key) -> &'static str) -> Option<GoMemory> {
    let get = |key| number(name(key));
    let or_zero = |key| get(key).unwrap_or(0);
    let stack_inuse = get(Key::StackInuse)?;
    Some(GoMemory {
        heap_alloc: get(Key::HeapAlloc)?,
        heap_inuse: get(Key::HeapInuse)?,
        heap_idle: get(Key::HeapIdle)?,
        heap_released: get(Key::HeapReleased)?,
        stack_inuse,
        stack_sys: get(Key::StackSys).unwrap_or(stack_inuse),
        mspan_sys: or_zero(Key::MSpanSys),
        mcache_sys: or_zero(Key::MCacheSys),
        buck_hash_sys: or_zero(Key::BuckHashSys),
        gc_sys: or_zero(Key::GcSys),
        other_sys: or_zero(Key::OtherSys),
        next_gc: or_zero(Key::NextGc),
    })
}

#[cfg(test)]
mod tests {
    use super::{GoMemory, Source, parse};

    const RECORDED: GoMemory = GoMemory {
        heap_alloc: 176_422_368,
        heap_inuse: 176_668_672,
        heap_idle: 15_974_400,
        heap_released: 6_520_832,
        stack_inuse: 294_912,
        stack_sys: 294_912,
        mspan_sys: 97_920,
        mcache_sys: 16_072,
        buck_hash_sys: 1_446_027,
        gc_sys: 2_135_328,
        other_sys: 542_277,
        next_gc: 353_003_482,
    };

    #[test]
    fn the_block_below_a_heap_profile() {
        let text = include_bytes!("../../../testdata/field/r05-live-go126-debug1.txt");
        assert_eq!(parse(text), Some((RECORDED, Source::HeapText)));
        // The kernel got the idle spans that were released; the rest is still the process's.
        assert_eq!(RECORDED.idle_unreturned(), 9_453_568);
        assert_eq!(RECORDED.outside_arenas(), 4_237_624);
    }

    #[test]
    fn the_metrics_of_the_prometheus_client() {
        let text = b"# HELP go_memstats_heap_inuse_bytes Number of heap bytes that are in use.\n\
            # TYPE go_memstats_heap_inuse_bytes gauge\n\
            go_memstats_heap_inuse_bytes 1.76668672e+08\ngo_memstats_heap_alloc_bytes 1.76422368e+08\n\
            go_memstats_heap_idle_bytes{pod=\"a b}\"} 1.59744e+07 1700000000000\ngo_memstats_heap_released_bytes 6.520832e+06\n\
            go_memstats_stack_inuse_bytes 294912\ngo_memstats_stack_sys_bytes 294912\ngo_memstats_mspan_sys_bytes 97920\n\
            go_memstats_mcache_sys_bytes 16072\ngo_memstats_buck_hash_sys_bytes 1.446027e+06\n\
            go_memstats_gc_sys_bytes 2.135328e+06\ngo_memstats_other_sys_bytes 542277\ngo_memstats_next_gc_bytes 3.53003482e+08\n";
        assert_eq!(parse(text), Some((RECORDED, Source::Prometheus)));
    }

    #[test]
    fn the_variables_of_expvar() {
        let text = br#"{"cmdline": ["svc"],
            "memstats": {"HeapAlloc":176422368,"HeapInuse":176668672,"HeapIdle":15974400,"HeapReleased":6520832,
            "StackInuse":294912,"StackSys":294912,"MSpanSys":97920,"MCacheSys":16072,"BuckHashSys":1446027,
            "GCSys":2135328,"OtherSys":542277,"NextGC":353003482,"LastGC":0}}"#;
        assert_eq!(parse(text), Some((RECORDED, Source::Expvar)));
    }

    #[test]
    fn other_pages_hold_none() {
        for page in
            ["", "<html>404", "heap profile: 0: 0 [0: 0] @ heap/1048576\n", "{\"cmdline\": []}", "up 1\n", "{cut"]
        {
            assert_eq!(parse(page.as_bytes()), None, "{page}");
        }
        // A block that was cut before the stacks cannot feed a ledger.
        assert_eq!(parse(b"# runtime.MemStats\n# HeapAlloc = 1\n# HeapInuse = 2\n"), None);
    }
}
