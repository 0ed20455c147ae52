use std::fmt;

/// Error number of a mallctl, with the control's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MallctlError {
    pub(crate) name: String,
    pub(crate) errno: i32,
}

impl fmt::Display for MallctlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.errno {
            libc::ENOENT => "no such control in this jemalloc, or profiling is not available (opt.prof is false)",
            libc::EINVAL => "jemalloc does not accept this value or this width",
            libc::EPERM => "the control cannot be used in this direction",
            libc::EAGAIN => "jemalloc could not do it now (out of memory, or a thread could not be started)",
            libc::EFAULT => "jemalloc could not do it (a file could not be written, or memory ran out)",
            _ => "jemalloc refused",
        };
        write!(f, "mallctl {}: {reason}", self.name)
    }
}
