//! Reading stack memory at addresses that nobody vouches for.
//!
//! Two kinds of addresses occur. Those on the stack that the hook itself runs on: the pages from the stack pointer
//! upward, contiguous. Nobody unmaps them while this thread is on them, so one probe a page suffices and then plain
//! loads are safe. All others (a goroutine's stack, or anything a corrupted frame pointer names) could vanish between a
//! probe and a load, so they are copied by the kernel, which fails instead of faulting.

use super::arch::page_size;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes copied at once from a foreign stack. Go frames are small: a call chain of depth 10 fits.
const WINDOW: usize = 1024;
/// How far above the verified part of the own stack a read still counts as being on it, in pages.
const OWN_STACK_STEP_LIMIT: u64 = 64;

/// `process_vm_readv` was refused (seccomp, Yama), so foreign addresses are probed and then loaded.
static COPY_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Reader for one walk: what it has verified is forgotten with it.
pub(super) struct StackReader {
    page_mask: u64,
    /// Verified part of the own stack: `[own_start, own_end)`.
    own_start: u64,
    own_end: u64,
    window: [u64; WINDOW / 8],
    window_start: u64,
    window_len: u64,
}

impl StackReader {
    /// `sp` is the current stack pointer, whose page is mapped since we run on it.
    pub(super) fn new(sp: u64) -> Self {
        let page_mask = !(page_size() - 1);
        let start = sp & page_mask;
        Self {
            page_mask,
            own_start: sp,
            own_end: start + page_size(),
            window: [0; WINDOW / 8],
            window_start: 0,
            window_len: 0,
        }
    }

    /// The word at `address`, or `None` when it cannot be read or is not aligned.
    #[inline]
    pub(super) fn read(&mut self, address: u64) -> Option<u64> {
        if address & 7 != 0 {
            return None;
        }
        if address >= self.own_start && address < self.own_end {
            // SAFETY: aligned, and in a page of our own stack that is mapped (it was probed, or we run on it).
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
        let page = !self.page_mask + 1;
        if address >= self.own_end && (address - self.own_end) / page < OWN_STACK_STEP_LIMIT {
            while address >= self.own_end && probe(self.own_end) {
                self.own_end += page;
            }
            if address < self.own_end {
                // SAFETY: as in `read`; every page between was just probed.
                return Some(unsafe { std::ptr::read_volatile(address as *const u64) });
            }
        }
        self.fill_window(address)?;
        self.window.first().copied()
    }

    /// Copies up to [`WINDOW`] bytes from `address`, at least one word.
    fn fill_window(&mut self, address: u64) -> Option<()> {
        self.window_len = 0;
        // Not across a page boundary at first: the next page may not be there.
        let page = !self.page_mask + 1;
        let in_page = page - (address & !self.page_mask);
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
