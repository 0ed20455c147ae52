use crate::boundary::contain;
use std::cell::Cell;
use std::ffi::c_int;

/// This thread's errno.
pub(super) fn get() -> c_int {
    // SAFETY: libc gives each thread its own.
    unsafe { *libc::__errno_location() }
}

/// Sets this thread's errno.
pub(super) fn set(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Has `around` make a call of the host's, of which the host then finds result and errno. It is made once and not twice,
/// also when the agent panics. (Inlined, so that the compiler sees that nothing of it unwinds into C.)
#[inline(always)]
pub(super) fn make_once<R: Copy>(call: impl Fn() -> R, around: impl FnOnce(&dyn Fn() -> R)) -> R {
    let made = Cell::new(None);
    let call_keeping_errno = || {
        let result = call();
        made.set(Some((result, get())));
        result
    };
    let _ = contain(|| around(&call_keeping_errno));
    let Some((result, errno)) = made.get() else { return call() };
    set(errno);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_made_once_and_leaves_its_errno_whatever_happens_around_it() {
        let calls = Cell::new(0);
        let call = || {
            calls.set(calls.get() + 1);
            set(libc::EXDEV);
            -1
        };
        let disturbed = |call: &dyn Fn() -> i32| {
            let _ = call();
            set(libc::EIO);
        };
        let panics_before = |_: &dyn Fn() -> i32| panic!("before");
        let panics_after = |call: &dyn Fn() -> i32| {
            disturbed(call);
            panic!("after");
        };
        assert_eq!((make_once(call, disturbed), get(), calls.get()), (-1, libc::EXDEV, 1));
        assert_eq!((make_once(call, panics_before), get(), calls.get()), (-1, libc::EXDEV, 2));
        assert_eq!((make_once(call, panics_after), get(), calls.get()), (-1, libc::EXDEV, 3));
    }
}
