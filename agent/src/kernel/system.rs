use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The user that this process acts as now.
pub(crate) fn effective_user() -> libc::uid_t {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() }
}

/// Page size of the kernel: 4 KiB on x86-64, up to 64 KiB on aarch64.
pub(crate) fn page_size() -> u64 {
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    match KNOWN.load(Relaxed) {
        0 => {
            // SAFETY: reads a constant that the loader was given.
            let size = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
            KNOWN.store(size, Relaxed);
            size
        }
        size => size,
    }
}

/// Ticks a second in which the kernel tells start times.
pub(crate) fn clock_ticks() -> f64 {
    // SAFETY: reads a constant.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}
