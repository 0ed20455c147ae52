//! Threads of the agent.

use super::profile::fork_gate;
use super::{mallctl, own_table};
use crate::allocator;
use crate::boundary::contain;
use crate::hot;
use crate::kernel;
use std::ffi::{CStr, c_void};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Enough for building the module table and framehop's caches; virtual, touched as needed. The thread-local storage of the
/// host and its libraries, which libc takes from the same mapping, comes on top.
const STACK_BYTES: usize = 512 << 10;
/// What must be there besides before a thread is started. With the first allocation of a thread, jemalloc makes a new arena
/// for it, and where it cannot (5.3.1) it goes on without one and crashes. Enough for a few threads that are at it at once.
const ROOM_BYTES: usize = 16 << 20;

/// A thread of the agent's. It goes on when this is dropped.
pub(crate) struct Thread {
    id: libc::pthread_t,
    has_ended: Arc<AtomicBool>,
}

impl Thread {
    pub(crate) fn is_finished(&self) -> bool {
        self.has_ended.load(Acquire)
    }

    /// Waits for its end.
    pub(crate) fn join(self) {
        let thread = ManuallyDrop::new(self);
        // SAFETY: joined once, and detached never.
        unsafe { libc::pthread_join(thread.id, std::ptr::null_mut()) };
        // SAFETY: not used after this.
        drop(unsafe { std::ptr::read(&raw const thread.has_ended) });
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: neither joined nor detached before.
        unsafe { libc::pthread_detach(self.id) };
    }
}

/// Starts a thread that the host cannot notice by signals or profiles: every signal is blocked in it from its first
/// instruction (a process-directed signal so goes to a thread of the host), its allocations are not sampled, and where
/// there is no memory it waits and does not end the process.
///
/// A panic in `body` ends the thread and nothing else. No thread is started where memory is so short that its start could
/// crash the host.
///
/// Not by `std::thread`, which allocates in the new thread before anything of ours runs there: that would be sampled.
pub(crate) fn spawn_quietly(name: &'static CStr, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    if !hot::are_there::<ROOM_BYTES>() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let own = own_table::is_own();
    let has_ended = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&has_ended);
    let start: Start = Box::new(move || {
        // SAFETY: a thread may name itself; names of threads are at most 15 bytes, and longer ones have no effect.
        unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
        own_table::inherit(own);
        allocator::wait_for_memory_on_this_thread();
        body();
    });
    let start = Box::into_raw(Box::new((start, ended)));
    let blocked = SignalsBlocked::new();
    let gate = fork_gate();
    let stack_bytes = STACK_BYTES.saturating_add(thread_local_bytes()).next_multiple_of(kernel::page_size() as usize);
    drop(gate);
    // SAFETY: the attributes are initialised before they are used and destroyed once; `begin` takes what it is given.
    let (error, id) = unsafe {
        let (mut id, mut attributes) = (std::mem::zeroed(), std::mem::zeroed());
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, stack_bytes);
        let error = libc::pthread_create(&raw mut id, &raw const attributes, begin, start.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        (error, id)
    };
    drop(blocked);
    if error != 0 {
        // SAFETY: no thread was started that would take it.
        drop(unsafe { Box::from_raw(start) });
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(Thread { id, has_ended })
}

/// Bytes of thread-local storage that each new thread gets at least: those of the images that are loaded.
fn thread_local_bytes() -> usize {
    let mut bytes = 0_usize;
    hot::for_each_image(|image| {
        for header in image.headers(libc::PT_TLS) {
            bytes = bytes.saturating_add(header.p_memsz as usize).saturating_add(header.p_align as usize);
        }
        ControlFlow::Continue(())
    });
    bytes
}

type Start = Box<dyn FnOnce() + Send>;

/// What the thread does.
extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // Before anything is allocated here.
    mallctl::set_prof_active_here(false);
    let _ = contain(|| {
        // SAFETY: made by `spawn_quietly` for this thread alone.
        let (start, ended) = *unsafe { Box::from_raw(start.cast::<(Start, Arc<AtomicBool>)>()) };
        let _ = contain(start);
        ended.store(true, Release);
    });
    std::ptr::null_mut()
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
