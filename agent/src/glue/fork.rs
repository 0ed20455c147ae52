//! fork without exec: the child keeps a working allocator and loses the agent.

use crate::boundary::contain;
use crate::control::{close_all_in_child, fork_gate_within, forked};
use crate::hot::POOL;
use std::cell::UnsafeCell;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A host that forks does not wait longer for the agent than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// The gate, held by the thread that forks, from before to after.
struct Held {
    gate: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    /// `pthread_self` of the thread that has it, which is the same in the child.
    by: AtomicUsize,
}

// SAFETY: the gate is written by the thread that has just got it, taken by the same thread before it is given back.
unsafe impl Sync for Held {}

static HELD: Held = Held { gate: UnsafeCell::new(None), by: AtomicUsize::new(0) };

fn this_thread() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// Gives the gate back, if this thread has it.
fn release() {
    if HELD.by.load(Relaxed) == this_thread() {
        HELD.by.store(0, Relaxed);
        // SAFETY: this thread holds the gate since `prepare`.
        drop(unsafe { (*HELD.gate.get()).take() });
    }
}

/// Registers the handlers. They run outside jemalloc's own (registered before), so its locks are taken inside the gate,
/// as the agent thread takes them.
pub(super) fn register() {
    // SAFETY: three functions that live as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
}

unsafe extern "C" fn prepare() {
    let _ = contain(|| {
        if let Some(gate) = fork_gate_within(PATIENCE) {
            // SAFETY: this thread holds the gate.
            unsafe { *HELD.gate.get() = Some(gate) };
            HELD.by.store(this_thread(), Relaxed);
        }
    });
}

unsafe extern "C" fn in_parent() {
    let _ = contain(release);
}

unsafe extern "C" fn in_child() {
    let _ = contain(release);
    let _ = contain(|| {
        POOL.reset_in_child();
        close_all_in_child();
    });
    let _ = contain(forked);
}
