//! `dlopen` without `RTLD_DEEPBIND`.
//!
//! A library that is loaded with this flag looks names up in itself and its own dependencies first, libc among them, so
//! it gets libc's `malloc` while everything around it has the agent's: what one allocates and the other frees ends the
//! process. No preloaded allocator survives that, so the flag is taken off. What changes for the host is the order in
//! which that library's other names are looked up.
//!
//! The function leaves by a jump and not by a call: `dlopen` looks at its return address to find the caller's search path.

use super::next::next;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The next `dlopen` in the search, libc's. Null until it is first called.
#[cfg_attr(test, allow(dead_code))]
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// As in the manual, but for the flag.
///
/// # Safety
/// As in the manual.
#[cfg(all(not(test), target_arch = "x86_64"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    std::arch::naked_asm!(
        "and esi, {keep}",
        "mov rax, [rip + {next}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        keep = const !libc::RTLD_DEEPBIND,
        next = sym NEXT,
        find = sym find_next,
    )
}

/// As in the manual, but for the flag.
///
/// # Safety
/// As in the manual.
#[cfg(all(not(test), target_arch = "aarch64"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    std::arch::naked_asm!(
        "and w1, w1, {keep}",
        "adrp x16, {next}",
        "ldr x16, [x16, :lo12:{next}]",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "stp x29, x30, [sp, #-32]!",
        "stp x0, x1, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        keep = const !libc::RTLD_DEEPBIND,
        next = sym NEXT,
        find = sym find_next,
    )
}

#[cfg_attr(test, allow(dead_code))]
extern "C" fn find_next() -> *const c_void {
    let found = next(c"dlopen");
    if found.is_null() {
        // A host that can call `dlopen` has one; but never jump to nowhere.
        return refuse as *const c_void;
    }
    NEXT.store(found, Relaxed);
    found
}

extern "C" fn refuse() -> *mut c_void {
    ptr::null_mut()
}
