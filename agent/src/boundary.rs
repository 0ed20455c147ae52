//! The edge of this library: where C calls into it.
//!
//! A panic that reached the edge would end the host. So each function that C calls does its work inside [`contain`], or is
//! one of which the compiler knows that it cannot unwind; `tests/panics.rs` looks that up in the library as it was built.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Panics that were caught.
static CONTAINED: AtomicU64 = AtomicU64::new(0);

/// How many panics were caught in this process.
pub(crate) fn contained() -> u64 {
    CONTAINED.load(Relaxed)
}

/// Runs `body`; `None` when it panicked. What it shares with others must be fit for use after that.
///
/// Never inlined and with C's convention, by which it cannot unwind: so its callers need nothing that ends the process
/// where something unwinds, and the compiler leaves that out.
#[inline(never)]
#[allow(improper_ctypes_definitions)] // nobody calls it from C
pub(crate) extern "C" fn contain<R>(body: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => Some(result),
        Err(payload) => {
            CONTAINED.fetch_add(1, Relaxed);
            // Not dropped: a payload's own destructor may panic, and this would be outside.
            mem::forget(payload);
            None
        }
    }
}

/// Sets something back when dropped, at the end or on a panic's way out.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stays_inside_and_is_counted() {
        struct Explosive;
        impl Drop for Explosive {
            fn drop(&mut self) {
                panic!("a payload that cannot be dropped");
            }
        }
        assert_eq!(contain(|| 7), Some(7));
        let before = contained();
        assert_eq!(contain(|| -> i32 { panic!("with a message") }), None);
        assert_eq!(contain(|| -> i32 { std::panic::panic_any(Explosive) }), None);
        assert!(contained() >= before + 2);
    }

    #[test]
    fn what_was_set_is_set_back_by_a_panic() {
        let mut busy = true;
        let outcome = contain(|| {
            let _idle = Finally(|| busy = false);
            panic!("at work");
        });
        assert_eq!((outcome, busy), (None::<()>, false));
    }
}
