use super::mallctl;
use crate::kernel;
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
    // Failure is none of the host's concern.
    kernel::write_once(libc::STDERR_FILENO, format!("offheap: {line}\n").as_bytes());
}

/// Keeps one of jemalloc's messages from the host's standard error: that a background thread could not be started, which
/// happens when the agent switches them on while the process is ending. What else jemalloc writes (`stats_print`, faults
/// in `MALLOC_CONF`) the host's user has asked for.
pub(crate) fn filter_jemalloc_messages() {
    mallctl::tell_messages_to(|text| {
        let wanted = !text.windows(UNWANTED.len()).any(|part| part == UNWANTED);
        if wanted || ON.load(Relaxed) {
            kernel::write_once(libc::STDERR_FILENO, text);
        }
    });
}

const UNWANTED: &[u8] = b"background thread creation failed";
