//! `pthread_exit` of the first thread.
//!
//! After it a process goes on until its last thread has ended, and then libc calls `exit(0)` there. The agent's threads
//! would be the last ones and never end, so a thread watches from then on whether the host has any left.
//!
//! The function leaves by a jump and not by a call: libc unwinds the stack from it, and a frame of this library's would
//! be in the way.

use super::next::next;
use crate::boundary::contain;
use crate::control;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// As in the manual.
///
/// # Safety
/// As in the manual.
#[cfg(all(not(test), target_arch = "x86_64"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn pthread_exit() {
    std::arch::naked_asm!(
        "push rdi",
        "call {leave}",
        "pop rdi",
        "jmp rax",
        leave = sym leave,
    )
}

/// As in the manual.
///
/// # Safety
/// As in the manual.
#[cfg(all(not(test), target_arch = "aarch64"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn pthread_exit() {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "str x0, [sp, #16]",
        "bl {leave}",
        "mov x16, x0",
        "ldr x0, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        leave = sym leave,
    )
}

/// Has the agent watch when the first thread is about to go; gives libc's function.
#[cfg_attr(test, allow(dead_code))]
extern "C" fn leave() -> *const c_void {
    static LEFT: AtomicBool = AtomicBool::new(false);
    // SAFETY: no preconditions.
    let is_first = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    if is_first && !LEFT.swap(true, Relaxed) {
        let _ = contain(control::end_with_the_host);
    }
    let found = next(c"pthread_exit");
    if found.is_null() { end_thread as *const c_void } else { found.cast_const() }
}

/// For a host that can call `pthread_exit` and has none.
extern "C" fn end_thread() -> ! {
    loop {
        // SAFETY: ends this thread.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}
