//! Typed access to jemalloc's controls.

use std::ffi::{CString, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use tikv_jemalloc_sys as sys;

/// Error number of a mallctl, with the control's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MallctlError {
    pub(crate) name: String,
    pub(crate) errno: i32,
}

impl std::fmt::Display for MallctlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

/// The one place that calls `mallctl`. The typed keys of tikv-jemalloc-ctl serve where they exist; its raw functions do
/// not, since they assert on lengths and hide the error number.
fn call(name: &str, old: Option<(*mut u8, usize)>, new: Option<(*mut u8, usize)>) -> Result<(), MallctlError> {
    let failed = |errno| Err(MallctlError { name: name.to_owned(), errno });
    let Ok(name_z) = CString::new(name) else { return failed(libc::ENOENT) };
    let mut old_length = old.map_or(0, |(_, length)| length);
    let old_length_pointer = if old.is_some() { &raw mut old_length } else { ptr::null_mut() };
    // SAFETY: the pointers are null or point to as many bytes as said; the callers vouch for types.
    let errno = unsafe {
        sys::mallctl(
            name_z.as_ptr(),
            old.map_or(ptr::null_mut(), |(pointer, _)| pointer.cast()),
            old_length_pointer,
            new.map_or(ptr::null_mut(), |(pointer, _)| pointer.cast()),
            new.map_or(0, |(_, length)| length),
        )
    };
    if errno == 0 { Ok(()) } else { failed(errno) }
}

/// Value of a control whose type `T` the caller knows to be right.
///
/// # Safety
/// `T` has exactly the width and meaning of the control, and any bits of that width are a valid `T` that jemalloc could
/// write.
pub(crate) unsafe fn read<T: Copy>(name: &str) -> Result<T, MallctlError> {
    let mut value = MaybeUninit::<T>::zeroed();
    call(name, Some((value.as_mut_ptr().cast(), size_of::<T>())), None)?;
    // SAFETY: jemalloc reported success, so it wrote all of `T`.
    Ok(unsafe { value.assume_init() })
}

/// Sets a control.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn write<T: Copy>(name: &str, mut value: T) -> Result<(), MallctlError> {
    call(name, None, Some(((&raw mut value).cast(), size_of::<T>())))
}

/// A text control.
pub(crate) fn read_text(name: &str) -> Result<String, MallctlError> {
    // SAFETY: the callers name controls of type `const char *`; jemalloc answers a string that lives as long as it.
    let pointer: *const std::ffi::c_char = unsafe { read(name) }?;
    if pointer.is_null() {
        return Ok(String::new());
    }
    // SAFETY: as above.
    Ok(unsafe { std::ffi::CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// A control that takes no value: the act is in the name.
pub(crate) fn act(name: &str) -> Result<(), MallctlError> {
    call(name, None, None)
}

/// A control resolved once, to be read with other indices in place of those in its name.
#[derive(Debug, Clone)]
pub(crate) struct Mib {
    path: [usize; 8],
    length: usize,
}

impl Mib {
    /// Resolves a name such as `stats.arenas.0.bins.0.curregs`; `None` when this jemalloc has no such control.
    pub(crate) fn resolve(name: &str) -> Option<Self> {
        let name_z = CString::new(name).ok()?;
        let mut path = [0; 8];
        let mut length = path.len();
        // SAFETY: `path` has room for `length` entries.
        let errno = unsafe { sys::mallctlnametomib(name_z.as_ptr(), path.as_mut_ptr(), &raw mut length) };
        (errno == 0).then_some(Self { path, length })
    }

    /// The same control with other indices: pairs of position in the name and index.
    pub(crate) fn at(&self, indices: &[(usize, usize)]) -> Self {
        let mut other = self.clone();
        for &(position, index) in indices {
            if let Some(part) = other.path[..other.length].get_mut(position) {
                *part = index;
            }
        }
        other
    }

    /// # Safety
    /// As for [`read`].
    pub(crate) unsafe fn read<T: Copy>(&self) -> Option<T> {
        // SAFETY: by the contract; nothing is passed in.
        unsafe { self.answer(ptr::null_mut(), 0) }
    }

    /// Asks a control that answers about a value that it is given.
    ///
    /// # Safety
    /// As for [`read`], of both types; and the control may be asked about this value.
    pub(crate) unsafe fn ask<Q: Copy, T: Copy>(&self, mut about: Q) -> Option<T> {
        // SAFETY: by the contract; `about` has its own size.
        unsafe { self.answer((&raw mut about).cast(), size_of::<Q>()) }
    }

    /// # Safety
    /// As for [`read`], and `about` is null or points to as many bytes as the control takes.
    unsafe fn answer<T: Copy>(&self, about: *mut c_void, about_length: usize) -> Option<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        let mut length = size_of::<T>();
        // SAFETY: `value` has `length` bytes; the caller vouches for the type and for `about`.
        let errno = unsafe {
            sys::mallctlbymib(
                self.path.as_ptr(),
                self.length,
                value.as_mut_ptr().cast(),
                &raw mut length,
                about,
                about_length,
            )
        };
        // SAFETY: jemalloc reported success, so it wrote all of `T`.
        (errno == 0 && length == size_of::<T>()).then(|| unsafe { value.assume_init() })
    }
}

/// Whether jemalloc was started with profiling available.
pub(crate) fn opt_prof() -> bool {
    // SAFETY: `opt.prof` is a bool.
    unsafe { read("opt.prof") }.unwrap_or(false)
}

/// Whether allocations are being sampled.
pub(crate) fn prof_active() -> bool {
    // SAFETY: `prof.active` is a bool.
    opt_prof() && unsafe { read("prof.active") }.unwrap_or(false)
}

/// Switches the sampling of allocations on or off.
pub(crate) fn set_prof_active(on: bool) -> Result<(), MallctlError> {
    // SAFETY: `prof.active` is a bool.
    unsafe { write("prof.active", on) }
}

/// Whether the calling thread's allocations are sampled while profiling is on. Allocates nothing itself. Without `opt.prof`
/// there is nothing to switch.
pub(crate) fn set_prof_active_here(mut on: bool) {
    let name = c"thread.prof.active".as_ptr();
    // SAFETY: `thread.prof.active` is a bool.
    unsafe { sys::mallctl(name, ptr::null_mut(), ptr::null_mut(), (&raw mut on).cast(), size_of::<bool>()) };
}

/// jemalloc gives unused pages back on a thread of its own. Switched on here and not by the configuration, which would
/// start it in the middle of the host's first allocation and aborts hosts that are not ready for that.
pub(crate) fn set_background_thread(on: bool) -> Result<(), MallctlError> {
    // SAFETY: size_t and bool.
    unsafe { write("max_background_threads", 1usize).and_then(|()| write("background_thread", on)) }
}
