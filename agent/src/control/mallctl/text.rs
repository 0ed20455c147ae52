//! What jemalloc says in words.

use crate::boundary::contain;
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use tikv_jemalloc_sys as sys;

/// What `malloc_stats_print` writes with these options.
pub(crate) fn stats_print(options: &CStr) -> Vec<u8> {
    unsafe extern "C" fn append(text: *mut c_void, piece: *const c_char) {
        let _ = contain(|| {
            // SAFETY: `text` is the vector below, `piece` a NUL-terminated string of jemalloc.
            unsafe { (*text.cast::<Vec<u8>>()).extend_from_slice(CStr::from_ptr(piece).to_bytes()) }
        });
    }
    let mut text: Vec<u8> = Vec::new();
    // SAFETY: the callback fulfils its contract; `text` lives through the call.
    unsafe { sys::malloc_stats_print(Some(append), (&raw mut text).cast(), options.as_ptr()) };
    text
}

/// Who hears jemalloc's messages.
static LISTENER: OnceLock<fn(&[u8])> = OnceLock::new();

/// Has jemalloc's messages told to `listener` instead of written to standard error. From the constructor.
pub(crate) fn tell_messages_to(listener: fn(&[u8])) {
    unsafe extern "C" fn message(_: *mut c_void, text: *const c_char) {
        let _ = contain(|| {
            // SAFETY: a NUL-terminated string of jemalloc.
            let text = unsafe { CStr::from_ptr(text) }.to_bytes();
            if let Some(listener) = LISTENER.get() {
                listener(text);
            }
        });
    }
    let _ = LISTENER.set(listener);
    // SAFETY: jemalloc reads the pointer when it writes a message; the function fulfils its type. No thread has been started
    // that could write one meanwhile.
    unsafe { sys::malloc_message = Some(message) };
}
