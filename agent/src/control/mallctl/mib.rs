use super::call::Plain;
use std::ffi::{CString, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use tikv_jemalloc_sys as sys;

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

    /// The value; `None` when jemalloc has none, or of another width.
    pub(crate) fn read<T: Plain>(&self) -> Option<T> {
        // SAFETY: by the trait; nothing is passed in.
        unsafe { self.answer(ptr::null_mut(), 0) }
    }

    /// Asks a control that answers about a value that it is given.
    ///
    /// # Safety
    /// The control takes a `Q`, answers a `T`, and may be asked about this value.
    pub(super) unsafe fn ask<Q: Copy, T: Copy>(&self, mut about: Q) -> Option<T> {
        // SAFETY: by the contract; `about` has its own size.
        unsafe { self.answer((&raw mut about).cast(), size_of::<Q>()) }
    }

    /// # Safety
    /// Whatever jemalloc writes for a control of this width is a `T`, and `about` is null or leads to as many bytes as the
    /// control takes.
    unsafe fn answer<T: Copy>(&self, about: *mut c_void, about_length: usize) -> Option<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        let mut length = size_of::<T>();
        // SAFETY: `value` has `length` bytes; the rest by the contract.
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
        // SAFETY: jemalloc reported success, so it wrote all of it.
        (errno == 0 && length == size_of::<T>()).then(|| unsafe { value.assume_init() })
    }
}
