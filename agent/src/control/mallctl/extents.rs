use super::mib::Mib;
use std::ffi::c_void;

/// Questions about what jemalloc has at an address.
///
/// `experimental.utilization.batch_query` answers for any pointer into a slab, but on an address that jemalloc never
/// managed it follows a null pointer: its look-up in the radix tree depends on the leaf being there. `arenas.lookup` uses
/// the independent look-up, which says "not found" instead. So each address is looked up first; leaves of the tree are never
/// freed, so what was found once can be asked about at any later time. Neither touches the page itself, which may be
/// unmapped meanwhile. What jemalloc changes between the two calls gives numbers of another moment, never a fault.
pub(crate) struct Extents {
    lookup: Mib,
    query: Mib,
}

/// An extent: of one allocation, or a slab of regions.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Utilization {
    /// Regions in which no object lives.
    pub(crate) free: usize,
    /// All of its regions; one where it is no slab.
    pub(crate) regions: usize,
    /// Bytes of the extent.
    pub(crate) size: usize,
}

impl Extents {
    /// `None` when this jemalloc has not the controls.
    pub(crate) fn resolve() -> Option<Self> {
        Some(Self {
            lookup: Mib::resolve("arenas.lookup")?,
            query: Mib::resolve("experimental.utilization.batch_query")?,
        })
    }

    /// The extent at an address; `None` where jemalloc has none, or where it belongs to the arena `but`.
    pub(crate) fn at(&self, address: u64, but: Option<u32>) -> Option<Utilization> {
        let pointer = address as *const c_void;
        // SAFETY: `arenas.lookup` takes a pointer, which it does not follow, and answers an `unsigned`.
        let arena: u32 = unsafe { self.lookup.ask(pointer) }?;
        if but == Some(arena) {
            return None;
        }
        // SAFETY: for one pointer the control answers three `size_t`. The address was found a moment ago, so its leaf of
        // the tree exists, and leaves stay; the pointer itself is not followed.
        unsafe { self.query.ask(pointer) }
    }
}
