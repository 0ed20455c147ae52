//! The function that jemalloc asks for the stack of each sampled allocation.

use super::arch;
use super::counters::COUNTERS;
use super::samples::{ENDS, hash_stack};
use super::scratch::POOL;
use super::walk;
use offheap_wire::StackEnd;
use std::ffi::{c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) type BacktraceHook = unsafe extern "C" fn(*mut *mut c_void, *mut c_uint, c_uint);

/// The hook. To be put in place after the pool was filled and a table published.
///
/// Its type is the one that `experimental.hooks.prof_backtrace` takes.
pub(crate) const BACKTRACE: BacktraceHook = backtrace;

/// Fills in the stack of the current thread.
///
/// Called inside `malloc`, with jemalloc's re-entrancy raised and none of its locks held.
unsafe extern "C" fn backtrace(vector: *mut *mut c_void, length: *mut c_uint, capacity: c_uint) {
    let start = arch::capture();
    let walk = AssertUnwindSafe(|| {
        let mut scratch = POOL.take()?;
        let (table, caches) = scratch.parts()?;
        // SAFETY: jemalloc gives a vector with room for `capacity` addresses; `usize` and pointers have one layout.
        let frames = unsafe { std::slice::from_raw_parts_mut(vector.cast::<usize>(), capacity as usize) };
        Some(walk::walk(table, caches, start, frames))
    });
    // Nothing here panics; a dependency that does must not abort the host.
    match catch_unwind(walk) {
        Ok(Some(walked)) => {
            // SAFETY: jemalloc's own counter.
            unsafe { *length = walked.frames as c_uint };
            COUNTERS.stack(walked.end, walked.with_go);
            if walked.end != StackEnd::Root {
                // SAFETY: the frames just written.
                let stack = unsafe { std::slice::from_raw_parts(vector.cast::<u64>().cast_const(), walked.frames) };
                ENDS.put(hash_stack(stack), walked.end);
            }
        }
        Ok(None) | Err(_) => {
            // SAFETY: as above.
            unsafe { *length = 0 };
            COUNTERS.busy();
        }
    }
}
