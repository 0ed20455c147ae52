//! Waiting that Ctrl-C ends early and in order, so that what was started is also stopped.

use std::mem::MaybeUninit;
use std::time::Duration;

/// While it lives, SIGINT, SIGTERM and SIGHUP are held back in this thread and only end a [`wait`](Interrupt::wait);
/// dropping it delivers those that came meanwhile and were not waited for.
///
/// Blocking and `sigtimedwait` rather than a handler: no global state, no handler that interrupts what it should not.
#[derive(Debug)]
pub(crate) struct Interrupt {
    before: libc::sigset_t,
    held: libc::sigset_t,
}

impl Interrupt {
    /// Hold the signals back. Threads started afterwards hold them back as well, so that they reach this one.
    pub(crate) fn hold() -> Self {
        let mut held = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set before sigaddset and pthread_sigmask read it; pthread_sigmask with
        // valid arguments fills `before` and does not fail.
        unsafe {
            libc::sigemptyset(held.as_mut_ptr());
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(held.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, held.as_ptr(), before.as_mut_ptr());
            Self { before: before.assume_init(), held: held.assume_init() }
        }
    }

    /// Wait; `true` when a signal ended it early.
    pub(crate) fn wait(&self, duration: Duration) -> bool {
        let end = std::time::Instant::now() + duration;
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            let time = libc::timespec {
                tv_sec: libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            // SAFETY: both structures are initialised and live through the call; no information is asked for.
            let signal = unsafe { libc::sigtimedwait(&raw const self.held, std::ptr::null_mut(), &raw const time) };
            if signal > 0 {
                return true;
            }
            if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                return false;
            }
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask when the signals were blocked.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Interrupt;
    use std::time::Duration;

    #[test]
    fn a_signal_ends_the_wait_and_silence_does_not() {
        let interrupt = Interrupt::hold();
        assert!(!interrupt.wait(Duration::from_millis(1)));
        // SAFETY: the signal is blocked in this thread and directed at it.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGINT) };
        assert!(interrupt.wait(Duration::from_secs(3600)));
    }
}
