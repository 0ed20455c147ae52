//! The function that jemalloc asks for the stack of each sampled allocation.

use super::arch;
use super::counters::COUNTERS;
use super::samples::{ENDS, hash_stack};
use super::scratch::POOL;
use super::walk;
use crate::boundary::contain;
use offheap_wire::StackEnd;
use std::ffi::{c_uint, c_void};

pub(crate) type BacktraceHook = unsafe extern "C" fn(*mut *mut c_void, *mut c_uint, c_uint);

/// The hook. To be put in place after the pool was filled and a table published.
///
/// Its type is the one that `experimental.hooks.prof_backtrace` takes.
pub(crate) const BACKTRACE: BacktraceHook = backtrace;

/// Fills in the stack of the current thread.
///
/// Called inside `malloc`, with jemalloc's re-entrancy raised and none of its locks held.
unsafe extern "C" fn backtrace(vector: *mut *mut c_void, length: *mut c_uint, capacity: c_uint) {
    let captured = arch::capture();
    let walked = contain(|| {
        let mut scratch = POOL.take()?;
        let (table, caches) = scratch.parts()?;
        // SAFETY: jemalloc gives a vector with room for `capacity` addresses; `usize` and pointers have one layout.
        let frames = unsafe { std::slice::from_raw_parts_mut(vector.cast::<usize>(), capacity as usize) };
        let walked = walk::walk(table, caches, captured.start(), frames);
        COUNTERS.stack(walked.end, walked.with_go);
        if walked.end != StackEnd::Root {
            // SAFETY: the frames just written, as the table of samples has them.
            let stack = unsafe { std::slice::from_raw_parts(vector.cast::<u64>().cast_const(), walked.frames) };
            ENDS.put(hash_stack(stack), walked.end);
        }
        Some(walked.frames)
    });
    // Nothing here panics; a dependency that does must not abort the host.
    let frames = walked.flatten().unwrap_or_else(|| {
        COUNTERS.busy();
        0
    });
    // SAFETY: jemalloc's own counter.
    unsafe { *length = frames as c_uint };
}
