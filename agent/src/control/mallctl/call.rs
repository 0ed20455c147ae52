//! Calls of `mallctl` by name. (The raw functions of tikv-jemalloc-ctl would not do: they assert on lengths and hide the
//! error number.)

use super::error::MallctlError;
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::ptr;
use tikv_jemalloc_sys as sys;

/// What a control can answer.
///
/// # Safety
/// Whatever jemalloc writes for a control of this width is a value of the type.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: jemalloc has no control of one byte but those of C's `bool`.
unsafe impl Plain for bool {}
// SAFETY: any bits are a number.
unsafe impl Plain for u32 {}
// SAFETY: any bits are a number.
unsafe impl Plain for u64 {}
// SAFETY: any bits are a number.
unsafe impl Plain for i64 {}
// SAFETY: any bits are a number.
unsafe impl Plain for usize {}
// SAFETY: any bits are a number.
unsafe impl Plain for isize {}

/// Value of a control. An error when it has another width; what it means the caller knows.
pub(crate) fn read<T: Plain>(name: &str) -> Result<T, MallctlError> {
    // SAFETY: by the trait.
    unsafe { read_as(name) }
}

/// A text.
///
/// # Safety
/// The control's value is a `const char *`.
pub(super) unsafe fn read_text(name: &str) -> Result<String, MallctlError> {
    // SAFETY: by the contract, and any bits are an address.
    let text: *const c_char = unsafe { read_as(name) }?;
    if text.is_null() {
        return Ok(String::new());
    }
    // SAFETY: a string of jemalloc, which lives as long as it.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// # Safety
/// Whatever jemalloc writes for a control of this width is a `T`.
unsafe fn read_as<T: Copy>(name: &str) -> Result<T, MallctlError> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: nothing is set.
    unsafe { call(name, Some(&mut value), None::<&()>) }?;
    // SAFETY: jemalloc reported success, so it wrote all of it; the rest by the contract.
    Ok(unsafe { value.assume_init() })
}

/// Sets a control.
///
/// # Safety
/// The control takes a `T`, and whatever it does with this one is sound.
pub(super) unsafe fn write<T: Copy>(name: &str, value: T) -> Result<(), MallctlError> {
    // SAFETY: by the contract.
    unsafe { call(name, None::<&mut MaybeUninit<()>>, Some(&value)) }
}

/// A control that takes no value: the act is in the name.
///
/// # Safety
/// What it does is sound; some free what is in use.
pub(super) unsafe fn act(name: &str) -> Result<(), MallctlError> {
    // SAFETY: by the contract.
    unsafe { call(name, None::<&mut MaybeUninit<()>>, None::<&()>) }
}

/// # Safety
/// `new` is what the control takes, and whatever it does with it is sound.
unsafe fn call<O, N>(name: &str, old: Option<&mut MaybeUninit<O>>, new: Option<&N>) -> Result<(), MallctlError> {
    let failed = |errno| Err(MallctlError { name: name.to_owned(), errno });
    let Ok(name_z) = CString::new(name) else { return failed(libc::ENOENT) };
    let mut old_length = size_of::<O>();
    let old_length_pointer = if old.is_some() { &raw mut old_length } else { ptr::null_mut() };
    // SAFETY: the pointers are null or lead to as many bytes as said. Into the old value jemalloc writes no more than fit,
    // whatever the control is; from the new one it only reads.
    let errno = unsafe {
        sys::mallctl(
            name_z.as_ptr(),
            old.map_or(ptr::null_mut(), |old| old.as_mut_ptr().cast()),
            old_length_pointer,
            new.map_or(ptr::null_mut(), |new| ptr::from_ref(new).cast_mut().cast()),
            new.map_or(0, |_| size_of::<N>()),
        )
    };
    if errno == 0 { Ok(()) } else { failed(errno) }
}

/// Whether a control's value has this width: for any other jemalloc answers EINVAL.
#[cfg(test)]
pub(super) fn accepts_width(name: &str, width: usize) -> bool {
    match width {
        1 => read::<bool>(name).is_ok(),
        4 => read::<u32>(name).is_ok(),
        8 => read::<u64>(name).is_ok(),
        _ => panic!("no control is {width} bytes wide"),
    }
}
