//! Sandboxes that a host enters after it was started.
//!
//! A seccomp filter lists the system calls that the host needs from now on, and not those of a guest. Where it answers the
//! others with an error, the agent lives with that. Where it ends the process, or hands the call to somebody else, the
//! first call of the agent's would be the host's end: so the agent ends first, with its threads, its socket and the
//! recording, and the host goes on with a plain jemalloc.
//!
//! A filter is put in place by `prctl` or by `syscall`, so these two functions of libc are interposed. Both are variadic in
//! C; on both architectures variadic integers travel like others, so they are declared here with all they can have. One
//! that is not given is whatever is in its place, and the kernel does not look at it.

use super::errno;
use super::next::next;
use crate::boundary::contain;
use crate::control;
use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

type Prctl = unsafe extern "C" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
type Syscall = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

/// The next functions of these names in the search, libc's. Null until [`resolve`]: jemalloc makes system calls while it
/// starts, when nothing can be looked up yet.
static NEXT_PRCTL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static NEXT_SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks up what is interposed. From the constructor.
pub(super) fn resolve() {
    NEXT_PRCTL.store(next(c"prctl"), Relaxed);
    NEXT_SYSCALL.store(next(c"syscall"), Relaxed);
}

/// As in the manual.
///
/// # Safety
/// As in the manual.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code))]
pub(crate) unsafe extern "C" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    let call = || {
        let next = NEXT_PRCTL.load(Relaxed);
        if next.is_null() {
            let all = [option as c_long, a as c_long, b as c_long, c as c_long, d as c_long, 0];
            // SAFETY: by the contract.
            return unsafe { with_errno(arch::system_call(libc::SYS_prctl, all)) } as c_int;
        }
        // SAFETY: libc's function of this name; the rest by the contract.
        unsafe { mem::transmute::<*mut c_void, Prctl>(next)(option, a, b, c, d) }
    };
    if option != libc::PR_SET_SECCOMP {
        return call();
    }
    let deadly = match u32::try_from(a) {
        Ok(libc::SECCOMP_MODE_STRICT) => true,
        Ok(libc::SECCOMP_MODE_FILTER) => may_be_deadly(b),
        _ => false,
    };
    enter(deadly, call)
}

/// As in the manual.
///
/// # Safety
/// As in the manual.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code))]
pub(crate) unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let call = || {
        let next = NEXT_SYSCALL.load(Relaxed);
        if next.is_null() {
            // SAFETY: by the contract.
            return unsafe { with_errno(arch::system_call(number, [a, b, c, d, e, f])) };
        }
        // SAFETY: libc's function of this name; the rest by the contract.
        unsafe { mem::transmute::<*mut c_void, Syscall>(next)(number, a, b, c, d, e, f) }
    };
    if number != libc::SYS_seccomp {
        return call();
    }
    let deadly = match u32::try_from(a) {
        Ok(libc::SECCOMP_SET_MODE_STRICT) => true,
        Ok(libc::SECCOMP_SET_MODE_FILTER) => may_be_deadly(c as u64),
        _ => false,
    };
    enter(deadly, call)
}

/// As [`is_deadly`], and a program that it cannot be asked about is taken for one.
fn may_be_deadly(program: u64) -> bool {
    contain(|| is_deadly(program)).unwrap_or(true)
}

/// Makes the call; before a deadly one the agent goes, and comes back when the call has failed.
#[inline]
fn enter<R: Copy + Into<i64>>(deadly: bool, call: impl Fn() -> R) -> R {
    if !deadly {
        return call();
    }
    errno::make_once(call, |call| {
        control::retire_for(call, |&result| result.into() < 0);
    })
}

/// Turns the kernel's answer into libc's.
fn with_errno(answer: c_long) -> c_long {
    if (-4095..0).contains(&answer) {
        errno::set(-answer as c_int);
        return -1;
    }
    answer
}

/// Whether a filter can answer with anything but "go on" or an error.
///
/// ```text
/// struct sock_fprog   0 u16 length       8 pointer to instructions
/// struct sock_filter  0 u16 code  2 u8 jt  3 u8 jf  4 u32 k
/// ```
///
/// The program is not run but searched: a return of a constant names its answer, any other return is not trusted.
fn is_deadly(program: u64) -> bool {
    const LONGEST: u16 = 4096; // BPF_MAXINSNS
    const RETURN: u16 = 0x06;
    const CLASS: u16 = 0x07;
    const HARMLESS: [u32; 3] = [libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_LOG, libc::SECCOMP_RET_ERRNO];
    let Some([header, instructions]) = read::<2>(program) else { return false };
    let length = (header as u16).min(LONGEST);
    (0..u64::from(length)).any(|index| {
        let Some([word]) = read::<1>(instructions.wrapping_add(index * 8)) else { return false };
        let (code, constant) = (word as u16, (word >> 32) as u32);
        code & CLASS == RETURN && (code != RETURN || !HARMLESS.contains(&(constant & libc::SECCOMP_RET_ACTION_FULL)))
    })
}

/// Words of the host's, at an address that it gave to the kernel and that need not be one.
fn read<const N: usize>(address: u64) -> Option<[u64; N]> {
    let mut words = [0u64; N];
    let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of::<[u64; N]>() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: local.iov_len };
    // SAFETY: `local` is the array above. The remote side is our own process; the kernel checks it.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    (copied == local.iov_len as isize).then_some(words)
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::ffi::c_long;

    /// # Safety
    /// As for the system call.
    pub(super) unsafe fn system_call(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
        let answer;
        // SAFETY: the kernel's calling convention; the rest by the contract.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") number => answer,
                in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
                lateout("rcx") _, lateout("r11") _,
                options(nostack)
            );
        }
        answer
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::ffi::c_long;

    /// # Safety
    /// As for the system call.
    pub(super) unsafe fn system_call(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
        let answer;
        // SAFETY: the kernel's calling convention; the rest by the contract.
        unsafe {
            std::arch::asm!(
                "svc 0",
                in("x8") number,
                inlateout("x0") a => answer,
                in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
                options(nostack)
            );
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const u64,
    }

    fn deadly(instructions: &[u64]) -> bool {
        let program = Program { length: instructions.len() as u16, instructions: instructions.as_ptr() };
        is_deadly(&raw const program as u64)
    }

    fn give(answer: u32) -> u64 {
        0x06 | u64::from(answer) << 32
    }

    #[test]
    fn filters_that_end_the_process_are_told_apart() {
        let load = 0x20;
        let compare = 0x15 | 39 << 32;
        let allow = give(libc::SECCOMP_RET_ALLOW);
        assert!(!deadly(&[load, compare, give(libc::SECCOMP_RET_ERRNO | 1), allow]));
        assert!(!deadly(&[load, give(libc::SECCOMP_RET_LOG)]));
        for answer in [
            libc::SECCOMP_RET_KILL_PROCESS,
            libc::SECCOMP_RET_KILL_THREAD,
            libc::SECCOMP_RET_TRAP,
            libc::SECCOMP_RET_TRACE,
            libc::SECCOMP_RET_USER_NOTIF,
        ] {
            assert!(deadly(&[load, compare, allow, give(answer | 7)]), "{answer:#x}");
        }
        assert!(deadly(&[load, 0x16]), "an answer that is computed");
        assert!(!is_deadly(0) && !is_deadly(16), "the kernel refuses it");
    }

    #[test]
    fn calls_pass_through() {
        // SAFETY: calls without effect.
        unsafe {
            assert_eq!(syscall(libc::SYS_getpid, 0, 0, 0, 0, 0, 0), c_long::from(libc::getpid()));
            assert_eq!(syscall(libc::SYS_close, -1, 0, 0, 0, 0, 0), -1);
            assert_eq!(errno::get(), libc::EBADF);
            assert_eq!(prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0), libc::prctl(libc::PR_GET_DUMPABLE));
            assert_eq!(prctl(-1, 0, 0, 0, 0), -1);
            assert_eq!(errno::get(), libc::EINVAL);
        }
    }
}
