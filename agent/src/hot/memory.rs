//! Reading stack memory at addresses that nobody vouches for.
//!
//! Two kinds of addresses occur. Those on a stack in use: the one the hook runs on, from the stack pointer upward, and the
//! goroutine's that waits for this very call, from its frame pointer upward. Nobody unmaps them meanwhile, so one probe a
//! page suffices and then plain loads are safe. All others (what a corrupted frame pointer names) could vanish between a
//! probe and a load, so they are copied by the kernel, which fails instead of faulting.

use crate::kernel::page_size;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes copied at once from elsewhere.
const WINDOW: usize = 256;
/// How far above the verified part of a stack a read still counts as being on it, in pages.
const STEP_LIMIT: u64 = 64;

/// `process_vm_readv` was refused (seccomp, Yama), so foreign addresses are probed and then loaded.
static COPY_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Reader for one walk: what it has verified is forgotten with it.
pub(super) struct StackReader {
    page: u64,
    own: Verified,
    goroutine: Verified,
    window: [u64; WINDOW / 8],
    window_start: u64,
    window_len: u64,
}

/// The verified part of a stack in use: `[start, end)`.
#[derive(Clone, Copy, Default)]
struct Verified {
    start: u64,
    end: u64,
}

impl Verified {
    #[inline]
    fn contains(self, address: u64) -> bool {
        address >= self.start && address < self.end
    }

    /// Verifies the pages up to the address, if it is not far above what was verified.
    fn reaches(&mut self, address: u64, page: u64) -> bool {
        if address < self.end || (address - self.end) / page >= STEP_LIMIT || self.end == 0 {
            return false;
        }
        while address >= self.end && probe(self.end) {
            self.end += page;
        }
        address < self.end
    }
}

impl StackReader {
    /// `sp` is the current stack pointer, whose page is mapped since we run on it.
    pub(super) fn new(sp: u64) -> Self {
        let page = page_size();
        Self {
            page,
            own: Verified { start: sp, end: (sp & !(page - 1)) + page },
            goroutine: Verified::default(),
            window: [0; WINDOW / 8],
            window_start: 0,
            window_len: 0,
        }
    }

    /// From here on a goroutine's stack is read, at and above its frame pointer.
    pub(super) fn enter_goroutine(&mut self, frame: u64) {
        if !self.own.contains(frame) && !self.goroutine.contains(frame) && frame & 7 == 0 && probe(frame) {
            self.goroutine = Verified { start: frame, end: (frame & !(self.page - 1)).saturating_add(self.page) };
        }
    }

    /// The word at `address`, or `None` when it cannot be read or is not aligned.
    #[inline]
    pub(super) fn read(&mut self, address: u64) -> Option<u64> {
        if address & 7 != 0 {
            return None;
        }
        if self.own.contains(address) || self.goroutine.contains(address) {
            // SAFETY: aligned, and in a page of a stack in use that is mapped (it was probed, or we run on it).
            return Some(unsafe { std::ptr::read_volatile(address as *const u64) });
        }
        self.read_elsewhere(address)
    }

    #[cold]
    fn read_elsewhere(&mut self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.window_start);
        if offset < self.window_len {
            return self.window.get((offset / 8) as usize).copied();
        }
        if self.own.reaches(address, self.page) || self.goroutine.reaches(address, self.page) {
            // SAFETY: as in `read`; every page between was just probed.
            return Some(unsafe { std::ptr::read_volatile(address as *const u64) });
        }
        self.fill_window(address)?;
        self.window.first().copied()
    }

    /// Copies up to [`WINDOW`] bytes from `address`, at least one word.
    fn fill_window(&mut self, address: u64) -> Option<()> {
        self.window_len = 0;
        // Not across a page boundary at first: the next page may not be there.
        let in_page = self.page - (address & (self.page - 1));
        let want = in_page.min(WINDOW as u64);
        if !COPY_FORBIDDEN.load(Relaxed) {
            match copy(address, &mut self.window, want as usize) {
                Copy::Done(bytes) if bytes >= 8 => {
                    self.window_start = address;
                    self.window_len = (bytes & !7) as u64;
                    return Some(());
                }
                Copy::Done(_) | Copy::Unreadable => return None,
                Copy::Forbidden => COPY_FORBIDDEN.store(true, Relaxed),
            }
        }
        if !probe(address) {
            return None;
        }
        // SAFETY: aligned, and the probe found the page mapped. Not guaranteed: that no other thread unmaps it right
        // now; without process_vm_readv there is nothing better, and stacks in use are not unmapped.
        self.window[0] = unsafe { std::ptr::read_volatile(address as *const u64) };
        self.window_start = address;
        self.window_len = 8;
        Some(())
    }
}

enum Copy {
    Done(usize),
    Unreadable,
    Forbidden,
}

fn copy(address: u64, into: &mut [u64; WINDOW / 8], bytes: usize) -> Copy {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: bytes.min(WINDOW) };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: local.iov_len };
    let saved = errno();
    // SAFETY: `local` lies within `into`. The remote side is our own process; the kernel checks it.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    let error = errno();
    set_errno(saved);
    match copied {
        n if n >= 0 => Copy::Done(n as usize),
        _ if error == libc::EFAULT => Copy::Unreadable,
        _ => Copy::Forbidden,
    }
}

/// Whether the eight bytes at `address` can be read.
///
/// `rt_sigprocmask` with an invalid `how` copies its argument from user memory before it looks at `how`: it answers
/// EFAULT for an unreadable address and EINVAL otherwise, and changes nothing. It costs a bare system call, a quarter
/// of `process_vm_readv`, and no sandbox forbids it, since every pthread program needs it.
fn probe(address: u64) -> bool {
    const INVALID_HOW: libc::c_long = -1;
    const SIGSET_BYTES: usize = 8;
    let saved = errno();
    // SAFETY: the call fails in any case (`how` is invalid) and only reads from `address`, which the kernel checks.
    let _ = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            INVALID_HOW,
            address as *const libc::c_void,
            std::ptr::null_mut::<libc::c_void>(),
            SIGSET_BYTES,
        )
    };
    let readable = errno() == libc::EINVAL;
    set_errno(saved);
    readable
}

fn errno() -> i32 {
    // SAFETY: glibc returns the address of this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// `malloc` must leave errno alone when it succeeds.
fn set_errno(value: i32) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack_pointer() -> u64 {
        let here = 0u64;
        (&raw const here) as u64 & !7
    }

    /// Two pages, the second unmapped.
    fn page_before_hole() -> u64 {
        let page = page_size() as usize;
        // SAFETY: a fresh anonymous mapping, of which the second page is given back.
        unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            libc::munmap(start.byte_add(page), page);
            start as u64
        }
    }

    #[test]
    fn own_stack_and_heap_are_read() {
        let values = [1u64, 2, 3];
        let heap = Box::new(7u64);
        let mut reader = StackReader::new(stack_pointer());
        assert_eq!(reader.read(values.as_ptr() as u64 + 8), Some(2));
        assert_eq!(reader.read((&raw const *heap) as u64), Some(7));
    }

    #[test]
    fn unmapped_unaligned_and_absurd_addresses_are_refused() {
        let start = page_before_hole();
        let page = page_size();
        let mut reader = StackReader::new(stack_pointer());
        assert_eq!(reader.read(start + page - 8), Some(0));
        assert_eq!(reader.read(start + page), None);
        assert_eq!(reader.read(start + 1), None);
        for address in [0, 8, 0x8000_0000_0000, !7, 1 << 63] {
            assert_eq!(reader.read(address), None, "{address:#x}");
        }
    }

    #[test]
    fn probe_tells_mapped_from_unmapped_and_keeps_errno() {
        let start = page_before_hole();
        set_errno(1234);
        assert!(probe(start));
        assert!(!probe(start + page_size()));
        assert!(!probe(0));
        assert_eq!(errno(), 1234);
    }

    #[test]
    fn inaccessible_pages_are_refused() {
        let start = page_before_hole();
        // SAFETY: a page of our own mapping that nothing refers to.
        unsafe { libc::mprotect(start as *mut _, page_size() as usize, libc::PROT_NONE) };
        let mut reader = StackReader::new(stack_pointer());
        assert_eq!(reader.read(start), None);
    }
}
