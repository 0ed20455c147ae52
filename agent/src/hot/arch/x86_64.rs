//! x86-64.

use framehop::UnwindRegsNative;

/// Where a walk stands: what the walker needs beside framehop's registers.
pub(crate) type Regs = UnwindRegsNative;

/// Registers as they were captured.
pub(crate) struct Captured {
    ip: u64,
    sp: u64,
    bp: u64,
}

impl Captured {
    /// Where a walk starts.
    pub(crate) fn start(&self) -> (u64, Regs) {
        (self.ip, Regs::new(self.ip, self.sp, self.bp))
    }
}

/// The registers at this very instruction of the caller.
#[inline(always)]
pub(crate) fn capture() -> Captured {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers; touches no memory and no flags.
    unsafe {
        std::arch::asm!(
            "lea {ip}, [rip]",
            "mov {sp}, rsp",
            "mov {bp}, rbp",
            ip = out(reg) ip,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags)
        );
    }
    Captured { ip, sp, bp }
}

/// Registers of a native frame found at the end of a Go frame-pointer chain: C called Go, and `crosscall2` linked its
/// frame into the chain, so the frame above it is the C caller's with the stack pointer just past the return address.
pub(crate) fn native_regs(return_address: u64, frame: u64, caller_frame: u64) -> Regs {
    Regs::new(return_address, frame.wrapping_add(16), caller_frame)
}

/// The frame pointer of the goroutine that called C, when the native walk returned into `runtime.asmcgocall`.
///
/// `asmcgocall` switches to the system stack but has no frame of its own and leaves RBP alone; C code preserves it. So
/// after the last C frame is undone, RBP is the frame pointer of `asmcgocall`'s Go caller.
///
/// ```text
///   goroutine stack                        system stack
///   [fp+8] return address into caller      ... C frames ...
///   [fp]   caller's frame pointer          return address into asmcgocall   <- sp - 8
/// ```
pub(crate) fn go_frame_pointer(regs: &Regs, _read: &mut impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    Some(regs.bp())
}

/// Stack pointer of a walk.
pub(crate) fn stack_pointer(regs: &Regs) -> u64 {
    regs.sp()
}

/// The thread pointer: distinct for each live thread.
#[inline(always)]
pub(crate) fn thread_pointer() -> u64 {
    if cfg!(miri) {
        // SAFETY: no preconditions.
        return unsafe { libc::pthread_self() as u64 };
    }
    let pointer: u64;
    // SAFETY: the x86-64 ABI keeps the thread pointer at %fs:0.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}
