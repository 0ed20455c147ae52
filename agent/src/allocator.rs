//! The agent's own allocations: an arena of their own in the host's jemalloc.
//!
//! They are thereby told apart from the host's bytes (`own_bytes`), never mix into the host's slabs, and bypass the
//! host threads' caches.
//!
//! Rust's answer to exhausted memory is to end the process, which would be the host's end. So a thread of the agent's
//! waits until there is memory, and if there never is, it waits for ever: the host has lost its agent, nothing else.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use tikv_jemalloc_sys as sys;

/// Index of the own arena; [`NO_ARENA`] until [`OwnArena::create`] succeeded.
static ARENA: AtomicU32 = AtomicU32::new(NO_ARENA);
const NO_ARENA: u32 = u32::MAX;
/// Flags of each allocation; without an own arena, jemalloc chooses one.
static FLAGS: AtomicI32 = AtomicI32::new(sys::MALLOCX_TCACHE_NONE);

/// Pause between two attempts to get memory.
const RETRY_PAUSE_NS: i64 = 20_000_000;

thread_local! {
    /// Set in threads of the agent's. Without a destructor, and in the static block: reading it calls nothing.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// From now on an allocation of this thread waits where it would fail.
pub(crate) fn wait_for_memory_on_this_thread() {
    WAITS.set(true);
}

/// Allocates by `attempt`; see the module for what happens when it fails.
#[inline]
fn insist(attempt: impl Fn() -> *mut c_void) -> *mut u8 {
    let allocated = attempt();
    if allocated.is_null() { insist_further(attempt) } else { allocated.cast() }
}

#[cold]
fn insist_further(attempt: impl Fn() -> *mut c_void) -> *mut u8 {
    while WAITS.get() {
        let pause = libc::timespec { tv_sec: 0, tv_nsec: RETRY_PAUSE_NS };
        // SAFETY: reads a struct of ours.
        unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
        let allocated = attempt();
        if !allocated.is_null() {
            return allocated.cast();
        }
    }
    ptr::null_mut()
}

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
        insist(|| unsafe { sys::mallocx(layout.size(), flags) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let flags = FLAGS.load(Ordering::Relaxed) | align_flag(layout.align()) | sys::MALLOCX_ZERO;
        // SAFETY: size is not zero.
        insist(|| unsafe { sys::mallocx(layout.size(), flags) })
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let flags = sys::MALLOCX_TCACHE_NONE | align_flag(layout.align());
        // SAFETY: `ptr` came from `alloc` with the same layout.
        unsafe { sys::sdallocx(ptr.cast(), layout.size(), flags) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let flags = FLAGS.load(Ordering::Relaxed) | align_flag(layout.align());
        // SAFETY: `ptr` came from `alloc` with this layout, a failure leaves it as it is, and `new_size` is not zero.
        insist(|| unsafe { sys::rallocx(ptr.cast(), new_size, flags) })
    }
}
