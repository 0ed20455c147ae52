//! The agent's own allocations: an arena of their own in the host's jemalloc.
//!
//! They are thereby told apart from the host's bytes (`own_bytes`), never mix into the host's slabs, and bypass the
//! host threads' caches.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use tikv_jemalloc_sys as sys;

/// Index of the own arena; [`NO_ARENA`] until [`OwnArena::create`] succeeded.
static ARENA: AtomicU32 = AtomicU32::new(NO_ARENA);
const NO_ARENA: u32 = u32::MAX;
/// Flags of each allocation; without an own arena, jemalloc chooses one.
static FLAGS: AtomicI32 = AtomicI32::new(sys::MALLOCX_TCACHE_NONE);

/// The global allocator of this library.
pub(crate) struct OwnArena;

impl OwnArena {
    /// Creates the arena. Without it (jemalloc refused) the agent still works, its bytes are only not told apart.
    pub(crate) fn create() {
        // SAFETY: `arenas.create` answers an `unsigned`, 4 bytes.
        let created = unsafe { tikv_jemalloc_ctl::raw::read::<u32>(b"arenas.create\0") };
        if let Ok(index) = created {
            FLAGS.store(sys::MALLOCX_ARENA(index as usize) | sys::MALLOCX_TCACHE_NONE, Ordering::Relaxed);
            ARENA.store(index, Ordering::Relaxed);
        }
    }

    /// Index of the arena, if there is one.
    pub(crate) fn index() -> Option<u32> {
        match ARENA.load(Ordering::Relaxed) {
            NO_ARENA => None,
            index => Some(index),
        }
    }
}

fn align_flag(align: usize) -> i32 {
    // mallocx wants log2 of the alignment in the low six bits; a `Layout`'s alignment is a power of two.
    align.trailing_zeros() as i32
}

// SAFETY: jemalloc's extended API fulfils the contract of `GlobalAlloc`: null on failure, the alignment asked for, and
// `rallocx` keeps the contents. `Layout` sizes given here are never zero (contract of the callers).
unsafe impl GlobalAlloc for OwnArena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let flags = FLAGS.load(Ordering::Relaxed) | align_flag(layout.align());
        // SAFETY: size is not zero.
        unsafe { sys::mallocx(layout.size(), flags).cast() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let flags = FLAGS.load(Ordering::Relaxed) | align_flag(layout.align()) | sys::MALLOCX_ZERO;
        // SAFETY: size is not zero.
        unsafe { sys::mallocx(layout.size(), flags).cast() }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let flags = sys::MALLOCX_TCACHE_NONE | align_flag(layout.align());
        // SAFETY: `ptr` came from `alloc` with the same layout.
        unsafe { sys::sdallocx(ptr.cast(), layout.size(), flags) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let flags = FLAGS.load(Ordering::Relaxed) | align_flag(layout.align());
        // SAFETY: `ptr` came from `alloc` with this layout, and `new_size` is not zero.
        unsafe { sys::rallocx(ptr.cast(), new_size, flags).cast() }
    }
}
