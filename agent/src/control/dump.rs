//! The `heap_v2` dump.

use super::mallctl::{self, MallctlError};
use super::watched_fd::memory_file;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::{fmt, io};

/// Why there is no dump.
#[derive(Debug)]
pub(crate) enum DumpError {
    /// `opt.prof` is false.
    Unavailable,
    /// No memory file could be made.
    Memfd(io::Error),
    Mallctl(MallctlError),
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable => f.write_str(
                "profiling is not available: the process was started with prof:false in MALLOC_CONF; \
                 remove that and restart it",
            ),
            Self::Memfd(error) => write!(f, "the kernel gave no memory file for the dump (memfd_create): {error}"),
            Self::Mallctl(error) => write!(
                f,
                "{error}; the dump is written through /proc/thread-self/fd, so /proc must be mounted in the process's root"
            ),
        }
    }
}

/// Makes a dump in a memory file, so that it works with a read-only root and leaves nothing behind.
pub(crate) fn heap_dump() -> Result<File, DumpError> {
    if !mallctl::opt_prof() {
        return Err(DumpError::Unavailable);
    }
    let file = memory_file(c"offheap-heap-dump").map_err(DumpError::Memfd)?;
    // jemalloc opens a path; this one leads to the same memory file, which other threads' tables do not have.
    let path = CString::new(format!("/proc/thread-self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    mallctl::dump_to(&path).map_err(DumpError::Mallctl)?;
    Ok(file)
}
