use serde::{Deserialize, Serialize};

/// One reading of the allocator's statistics after one epoch; sizes in bytes.
///
/// The same type holds what was read from a saved `malloc_stats_print`, hence the many `Option`s: what a version of
/// jemalloc does not report is `None`, never 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Always `offheap.stats/1`.
    pub schema: String,
    /// Unix time of the reading, seconds.
    pub taken_at: Option<f64>,
    /// Version string of the jemalloc that was read.
    pub jemalloc_version: Option<String>,
    /// Bytes allocated by the program (`stats.allocated`).
    pub allocated: Option<u64>,
    /// Bytes in pages that hold allocations (`stats.active`).
    pub active: Option<u64>,
    /// Bytes of allocator metadata (`stats.metadata`).
    pub metadata: Option<u64>,
    /// Bytes in physically resident pages (`stats.resident`).
    pub resident: Option<u64>,
    /// Bytes in active extents mapped by the allocator (`stats.mapped`).
    pub mapped: Option<u64>,
    /// Bytes of address space kept after unmapping (`stats.retained`); never part of RSS.
    pub retained: Option<u64>,
    /// Bytes held in thread caches.
    pub tcache: Option<u64>,
    /// Bytes in unused dirty pages.
    pub dirty: Option<u64>,
    /// Bytes in unused muzzy pages.
    pub muzzy: Option<u64>,
    /// RSS of the process at the time of the reading.
    pub rss: Option<u64>,
    /// Page size of the allocator.
    pub page_size: Option<u64>,
    /// Number of arenas, automatic ones included.
    pub narenas: Option<u64>,
    /// Small size classes, all arenas together, by size.
    pub bins: Vec<BinStats>,
    /// Large size classes with live extents, all arenas together, by size.
    pub large: Vec<LargeStats>,
    /// One entry an initialised arena.
    pub arenas: Vec<ArenaStats>,
}

/// A small size class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BinStats {
    /// Size of one region, bytes.
    pub size: u64,
    /// Regions in one slab.
    pub nregs: u64,
    /// Bytes of one slab.
    pub slab_size: u64,
    /// Regions in use now; those cached by threads count as in use.
    pub curregs: u64,
    /// Slabs now.
    pub curslabs: u64,
    /// Slabs that have free regions now.
    pub nonfull_slabs: Option<u64>,
    /// Cumulative allocations.
    pub nmalloc: Option<u64>,
    /// Cumulative deallocations.
    pub ndalloc: Option<u64>,
}

/// A large size class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LargeStats {
    /// Size of one extent, bytes.
    pub size: u64,
    /// Extents in use now.
    pub curlextents: u64,
    /// Cumulative allocations.
    pub nmalloc: Option<u64>,
    /// Cumulative deallocations.
    pub ndalloc: Option<u64>,
}

/// One arena; sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArenaStats {
    /// Index of the arena.
    pub index: u32,
    /// Threads assigned to it.
    pub nthreads: Option<u64>,
    /// Bytes allocated in small size classes.
    pub small_allocated: Option<u64>,
    /// Bytes allocated in large size classes.
    pub large_allocated: Option<u64>,
    /// Bytes in active pages.
    pub active: Option<u64>,
    /// Bytes in unused dirty pages.
    pub dirty: Option<u64>,
    /// Bytes in unused muzzy pages.
    pub muzzy: Option<u64>,
    /// Bytes mapped.
    pub mapped: Option<u64>,
    /// Bytes of retained address space.
    pub retained: Option<u64>,
    /// Bytes resident.
    pub resident: Option<u64>,
    /// Bytes of metadata (`base` and `internal` together).
    pub metadata: Option<u64>,
    /// Bytes held in thread caches of the arena's threads.
    pub tcache: Option<u64>,
    /// `dirty_decay_ms` of this arena.
    pub dirty_decay_ms: Option<i64>,
    /// `muzzy_decay_ms` of this arena.
    pub muzzy_decay_ms: Option<i64>,
    /// Slab waste of its small classes: Σ curslabs·slab_size − curregs·size.
    pub slab_waste: Option<u64>,
    /// The arena is the agent's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
}
