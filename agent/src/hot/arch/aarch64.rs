//! aarch64.

use framehop::UnwindRegsNative;

/// Where a walk stands: what the walker needs beside framehop's registers.
pub(crate) type Regs = UnwindRegsNative;

/// Registers as they were captured.
pub(crate) struct Captured {
    pc: u64,
    lr: u64,
    sp: u64,
    fp: u64,
}

impl Captured {
    /// Where a walk starts.
    pub(crate) fn start(&self) -> (u64, Regs) {
        (self.pc, Regs::new(self.lr, self.sp, self.fp))
    }
}

/// The registers at this very instruction of the caller.
#[inline(always)]
pub(crate) fn capture() -> Captured {
    let (pc, lr, sp, fp): (u64, u64, u64, u64);
    // SAFETY: reads four registers; touches no memory and no flags.
    unsafe {
        std::arch::asm!(
            "adr {pc}, .",
            "mov {lr}, x30",
            "mov {sp}, sp",
            "mov {fp}, x29",
            pc = out(reg) pc,
            lr = out(reg) lr,
            sp = out(reg) sp,
            fp = out(reg) fp,
            options(nomem, nostack, preserves_flags)
        );
    }
    Captured { pc, lr, sp, fp }
}

/// Registers of a native frame found at the end of a Go frame-pointer chain: frame records are `{fp, lr}` pairs in C
/// and in Go alike.
pub(crate) fn native_regs(return_address: u64, frame: u64, caller_frame: u64) -> Regs {
    Regs::new(return_address, frame.wrapping_add(16), caller_frame)
}

/// The frame pointer of the goroutine that called C.
///
/// Unlike on x86-64, `asmcgocall` overwrites the frame register. It leaves, on the system stack, what leads back:
///
/// ```text
///   [sp+8]  depth = g.stack.hi - SP of the goroutine
///   [sp]    g
/// ```
///
/// or, when it was on the system stack already, a zero in place of `g` and the plain stack pointer beside it. `g.stack` is the first field of a `g` (`lo` at 0, `hi` at 8). The goroutine's stack pointer then addresses the
/// frame that `asmcgocall`'s prologue made (saved LR at `[SP]`, saved frame pointer at `[SP-8]`, which is what the Go
/// frame pointer chain links).
pub(crate) fn go_frame_pointer(regs: &Regs, read: &mut impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let sp = regs.sp();
    let g = read(sp)?;
    let depth = read(sp.checked_add(8)?)?;
    if g == 0 {
        return depth.checked_sub(8);
    }
    let stack_hi = read(g.checked_add(8)?)?;
    let goroutine_sp = stack_hi.checked_sub(depth)?;
    goroutine_sp.checked_sub(8)
}

/// Stack pointer of a walk.
pub(crate) fn stack_pointer(regs: &Regs) -> u64 {
    regs.sp()
}

/// The thread pointer: distinct for each live thread.
#[inline(always)]
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
