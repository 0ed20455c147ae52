//! Threads of the agent.

use super::profile::fork_gate;
use super::{mallctl, own_table};
use crate::allocator;
use crate::boundary::contain;
use crate::hot;
use std::io;
use std::thread::JoinHandle;

/// Enough for building the module table and framehop's caches; virtual, touched as needed. The thread-local storage of the
/// host and its libraries, which libc takes from the same mapping, comes on top.
const STACK_BYTES: usize = 512 << 10;
/// What must be there besides before a thread is started. With the first allocation of a thread, jemalloc makes a new arena
/// for it, and where it cannot (5.3.1) it goes on without one and crashes. Enough for a few threads that are at it at once.
const ROOM_BYTES: usize = 16 << 20;

/// Starts a thread that the host cannot notice by signals or profiles: every signal is blocked in it from its first
/// instruction (a process-directed signal so goes to a thread of the host), its allocations are not sampled, and where
/// there is no memory it waits and does not end the process.
///
/// A panic in `body` ends the thread and nothing else. No thread is started where memory is so short that its start could
/// crash the host.
pub(crate) fn spawn_quietly<T: Default + Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    if !hot::are_there::<ROOM_BYTES>() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let own = own_table::is_own();
    let run = move || {
        own_table::inherit(own);
        allocator::wait_for_memory_on_this_thread();
        // Fails without `opt.prof`, when there is nothing to switch off.
        let _ = mallctl::set_prof_active_here(false);
        contain(body).unwrap_or_default()
    };
    let blocked = SignalsBlocked::new();
    let gate = fork_gate();
    let stack_bytes = STACK_BYTES.saturating_add(hot::thread_local_bytes());
    drop(gate);
    let spawned = std::thread::Builder::new().name(name.to_owned()).stack_size(stack_bytes).spawn(run);
    drop(blocked);
    spawned
}

/// All signals of the current thread are blocked while this lives.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> Self {
        // SAFETY: both sets are ours and initialised by the calls; a zeroed sigset_t is a valid value.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self { before }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `new` found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}
