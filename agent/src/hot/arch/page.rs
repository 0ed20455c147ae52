//! Pages of memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static PAGE_SIZE: AtomicU64 = AtomicU64::new(0);

/// Page size of the kernel: 4 KiB on x86-64, up to 64 KiB on aarch64.
pub(in crate::hot) fn page_size() -> u64 {
    match PAGE_SIZE.load(Relaxed) {
        0 => {
            // SAFETY: sysconf reads a constant that the loader was given.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let size = if size > 0 { size as u64 } else { 4096 };
            PAGE_SIZE.store(size, Relaxed);
            size
        }
        size => size,
    }
}
