use serde::{Deserialize, Serialize};

/// The occupancy of every slab of the allocator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeapMap {
    /// Always `offheap.heap_map/1`.
    pub schema: String,
    /// Unix time at which the scan ended, seconds. The host went on meanwhile: slabs are of slightly different moments.
    pub taken_at: f64,
    /// Bytes of anonymous mappings that were looked through.
    pub scanned: u64,
    /// The scan reached a bound before the end of the mappings.
    pub truncated: bool,
    /// Slabs by size class, by size.
    pub classes: Vec<SlabClass>,
}

/// The slabs of one small size class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlabClass {
    /// Size of one region, bytes.
    pub size: u64,
    /// Regions in one slab.
    pub nregs: u64,
    /// Bytes of one slab.
    pub slab_size: u64,
    /// Address and free regions of each slab, by address. Regions cached by threads are not free.
    pub slabs: Vec<(u64, u64)>,
}
