//! `unshare` and `setns`.
//!
//! Some namespaces can only be entered by a process of one thread, and the agent's would be a second. So these two
//! functions of libc are interposed: the agent's threads end before such a call and are started again after it.

use super::errno;
use crate::control;
use std::ffi::{c_int, c_long};

/// What the kernel refuses to a process with several threads.
const UNSHARE_ALONE: c_int = libc::CLONE_NEWUSER | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM;
/// Likewise; of an unstated type it may be any.
const SETNS_ALONE: c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | CLONE_NEWTIME;
const CLONE_NEWTIME: c_int = 0x80;

/// As in the manual.
///
/// # Safety
/// Has no preconditions.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code))]
pub(crate) unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    // SAFETY: the system call has no preconditions.
    let call = || unsafe { libc::syscall(libc::SYS_unshare, flags) };
    answer(flags & UNSHARE_ALONE != 0, call)
}

/// As in the manual.
///
/// # Safety
/// Has no preconditions.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code))]
pub(crate) unsafe extern "C" fn setns(fd: c_int, kind: c_int) -> c_int {
    // SAFETY: the system call has no preconditions.
    let call = || unsafe { libc::syscall(libc::SYS_setns, fd, kind) };
    answer(kind == 0 || kind & SETNS_ALONE != 0, call)
}

#[inline(always)]
fn answer(alone: bool, call: impl Fn() -> c_long) -> c_int {
    let result = if alone {
        errno::make_once(call, |call| {
            control::alone(call);
        })
    } else {
        call()
    };
    result as c_int
}
