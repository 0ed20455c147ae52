//! fork without exec: the child keeps a working allocator and loses the agent.

use crate::control::{close_all_in_child, fork_gate};
use crate::hot::POOL;
use std::cell::UnsafeCell;
use std::sync::MutexGuard;

/// The gate, held by the thread that forks, from before to after.
struct Held(UnsafeCell<Option<MutexGuard<'static, ()>>>);

// SAFETY: written by the thread that has just got the gate, taken by the same thread before it gives the gate back.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

/// Registers the handlers. They run outside jemalloc's own (registered before), so its locks are taken inside the gate,
/// as the agent thread takes them.
pub(super) fn register() {
    // SAFETY: three functions that live as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
}

unsafe extern "C" fn prepare() {
    let gate = fork_gate();
    // SAFETY: this thread holds the gate.
    unsafe { *HELD.0.get() = Some(gate) };
}

unsafe extern "C" fn in_parent() {
    // SAFETY: this thread holds the gate since `prepare`.
    drop(unsafe { (*HELD.0.get()).take() });
}

unsafe extern "C" fn in_child() {
    // SAFETY: the only thread of the child, and it holds the gate since `prepare`.
    drop(unsafe { (*HELD.0.get()).take() });
    POOL.reset_in_child();
    close_all_in_child();
}
