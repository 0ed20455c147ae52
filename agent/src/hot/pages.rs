//! Zeroed memory straight from the kernel, touched only where something is stored.

/// Room for a `T` of which all bits are zero; null when the kernel has none. To be given back by [`unmap`].
#[cfg(not(miri))]
pub(super) fn map<T>() -> *mut T {
    // SAFETY: a fresh anonymous mapping.
    let fresh = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<T>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if fresh == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    // SAFETY: just mapped, nobody else knows it. Huge pages would make each first touch cost 2 MiB.
    unsafe { libc::madvise(fresh, size_of::<T>(), libc::MADV_NOHUGEPAGE) };
    fresh.cast()
}

/// # Safety
/// `mapped` came from [`map`], and nobody uses it any more.
#[cfg(not(miri))]
pub(super) unsafe fn unmap<T>(mapped: *mut T) {
    // SAFETY: by the contract.
    unsafe { libc::munmap(mapped.cast(), size_of::<T>()) };
}

// Miri knows no such mappings; the allocator's memory is as good for what it looks for.
#[cfg(miri)]
pub(super) fn map<T>() -> *mut T {
    // SAFETY: of a type that is not empty.
    unsafe { std::alloc::alloc_zeroed(std::alloc::Layout::new::<T>()).cast() }
}

/// # Safety
/// As without Miri.
#[cfg(miri)]
pub(super) unsafe fn unmap<T>(mapped: *mut T) {
    // SAFETY: by the contract.
    unsafe { std::alloc::dealloc(mapped.cast(), std::alloc::Layout::new::<T>()) };
}

/// Whether the kernel would give so many bytes to the process now.
pub(crate) fn are_there<const BYTES: usize>() -> bool {
    let probe: *mut [u8; BYTES] = map();
    if probe.is_null() {
        return false;
    }
    // SAFETY: just mapped, nobody else knows it.
    unsafe { unmap(probe) };
    true
}
