//! Controls of the recording of allocations.

use super::call;
use super::error::MallctlError;
use crate::hot::{BacktraceHook, SampleFreeHook, SampleHook};
use std::ffi::CStr;
use std::ptr;
use tikv_jemalloc_sys as sys;

unsafe extern "C" {
    /// `opt.prof_unbias` has no mallctl to be read by. The symbol is private to the jemalloc that is linked in, so that
    /// a version without it fails to link instead of reporting a guess.
    #[link_name = "_rjem_je_opt_prof_unbias"]
    static OPT_PROF_UNBIAS: bool;
}

/// Whether jemalloc was started with profiling available.
pub(crate) fn opt_prof() -> bool {
    call::read("opt.prof").unwrap_or(false)
}

/// Whether dumps are corrected by jemalloc, so that nobody else must.
pub(crate) fn opt_prof_unbias() -> bool {
    // SAFETY: a plain bool that jemalloc writes once, while it starts.
    unsafe { OPT_PROF_UNBIAS }
}

/// Base-2 logarithm of the mean distance between samples, in bytes.
pub(crate) fn lg_sample() -> u64 {
    call::read::<usize>("prof.lg_sample").unwrap_or(0) as u64
}

/// Whether allocations are being sampled.
pub(crate) fn prof_active() -> bool {
    opt_prof() && call::read("prof.active").unwrap_or(false)
}

/// Switches the sampling of allocations on or off.
pub(crate) fn set_prof_active(on: bool) -> Result<(), MallctlError> {
    // SAFETY: a switch, of C's type `bool`.
    unsafe { call::write("prof.active", on) }
}

/// Whether the calling thread's allocations are sampled while profiling is on. Allocates nothing itself. Without `opt.prof`
/// there is nothing to switch.
pub(crate) fn set_prof_active_here(mut on: bool) {
    let name = c"thread.prof.active".as_ptr();
    // SAFETY: a switch, of C's type `bool`.
    unsafe { sys::mallctl(name, ptr::null_mut(), ptr::null_mut(), (&raw mut on).cast(), size_of::<bool>()) };
}

/// Forgets what was recorded, and sets another rate if one is given.
pub(crate) fn reset_prof(lg_sample: Option<u64>) -> Result<(), MallctlError> {
    // SAFETY: takes a size_t or nothing. What it frees are jemalloc's own records.
    unsafe {
        match lg_sample {
            Some(lg) => call::write("prof.reset", lg as usize),
            None => call::act("prof.reset"),
        }
    }
}

/// Has jemalloc write its dump to a file, which it opens.
pub(crate) fn dump_to(path: &CStr) -> Result<(), MallctlError> {
    // SAFETY: takes a `const char *`, which it does not keep.
    unsafe { call::write("prof.dump", path.as_ptr()) }
}

/// Has jemalloc ask these for the stack of an allocation that it samples, and tell them when it is sampled and freed.
pub(crate) fn install_hooks(
    backtrace: BacktraceHook,
    sample: SampleHook,
    free: SampleFreeHook,
) -> Result<(), MallctlError> {
    // SAFETY: the controls take a `prof_backtrace_hook_t`, a `prof_sample_hook_t` and a `prof_sample_free_hook_t`, which
    // these are. The functions live as long as this library, which is never unloaded.
    unsafe {
        call::write("experimental.hooks.prof_backtrace", backtrace)?;
        call::write("experimental.hooks.prof_sample", sample)?;
        call::write("experimental.hooks.prof_sample_free", free)
    }
}

/// Allocates and frees as many bytes, in pieces; jemalloc counts them towards the calling thread's next sample. No page is
/// touched.
pub(crate) fn pass_bytes(bytes: u64) {
    // Large enough to bypass caches, small enough not to leave much address space behind.
    const PIECE: u64 = 1 << 20;
    for _ in 0..bytes.div_ceil(PIECE) {
        // SAFETY: the size is not zero, and what comes back is freed at once. (LLVM would take `malloc` and `free` away.)
        unsafe {
            let piece = sys::mallocx(PIECE as usize, sys::MALLOCX_TCACHE_NONE);
            if piece.is_null() {
                return;
            }
            sys::dallocx(piece, sys::MALLOCX_TCACHE_NONE);
        }
    }
}
