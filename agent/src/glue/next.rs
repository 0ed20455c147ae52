//! Functions by name, as the loader finds them.

use std::ffi::{CStr, c_void};

/// The function of this name that everybody's calls lead to; null when there is none.
pub(super) fn first(name: &CStr) -> *mut c_void {
    // SAFETY: looks a name up.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The one after this library's: libc's, where nobody else brings one. Null when there is none.
pub(super) fn next(name: &CStr) -> *mut c_void {
    // SAFETY: looks a name up.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}
