use std::ffi::{CStr, c_char, c_void};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ON: AtomicBool = AtomicBool::new(false);

/// Whether the agent speaks.
pub(crate) struct Log;

impl Log {
    /// `OFFHEAP_LOG` was set: the agent writes lines to the host's standard error.
    pub(crate) fn enable() {
        ON.store(true, Relaxed);
    }

    /// The descriptor that lines are written to, or -1 when there are none.
    pub(crate) fn descriptor() -> RawFd {
        if ON.load(Relaxed) { libc::STDERR_FILENO } else { -1 }
    }
}

/// One line to standard error, if asked for.
///
/// Written with one `write(2)`: standard error's lock belongs to this library's own copy of std, but the descriptor is
/// the host's, and a single write is not torn.
pub(crate) fn say(line: &str) {
    if !ON.load(Relaxed) {
        return;
    }
    let line = format!("offheap: {line}\n");
    // SAFETY: writes `line.len()` bytes of a live string. Failure is none of the host's concern.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Keeps one of jemalloc's messages from the host's standard error: that a background thread could not be started, which
/// happens when the agent switches them on while the process is ending. What else jemalloc writes (`stats_print`, faults
/// in `MALLOC_CONF`) the host's user has asked for.
pub(crate) fn filter_jemalloc_messages() {
    // SAFETY: jemalloc reads the pointer when it writes a message; the function fulfils its type. Called once, from the
    // constructor.
    unsafe { tikv_jemalloc_sys::malloc_message = Some(message) };
}

unsafe extern "C" fn message(_: *mut c_void, text: *const c_char) {
    // SAFETY: a NUL-terminated string of jemalloc.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let wanted = !text.windows(UNWANTED.len()).any(|part| part == UNWANTED);
    if wanted || ON.load(Relaxed) {
        // SAFETY: as in `say`.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
}

const UNWANTED: &[u8] = b"background thread creation failed";
