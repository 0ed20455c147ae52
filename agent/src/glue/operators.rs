//! C++'s `operator new` and `operator delete`.
//!
//! libstdc++'s call `malloc` and `free`, which are the agent's. But a library with an allocator of its own (Debian's
//! `libjemalloc.so.2` is one, tcmalloc another) brings operators that lead into *its* allocator, past everybody's `malloc`:
//! a host linked against it would have two allocators under any preload, of which only one can be looked into, and one may
//! free what the other has allocated. So the operators are exported beside `malloc`.
//!
//! Where memory runs out, the next operator in the search answers: it knows the new-handler and how to throw. It answers
//! always where the host's `malloc` is not the agent's, which is the case when an executable defines its own.

use super::constructor::malloc_is_ours as look_up_malloc;
use super::next::next;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use tikv_jemalloc_sys as sys;

/// An operator that was looked up, called with what it takes beyond the size.
macro_rules! allocate {
    ($($name:ident ($($more:ident: $kind:ty),*) $allocate:expr;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[cfg_attr(test, allow(dead_code))]
        #[allow(non_snake_case)]
        unsafe extern "C-unwind" fn $name(size: usize $(, $more: $kind)*) -> *mut c_void {
            if malloc_is_ours() {
                let allocate: fn(usize $(, $kind)*) -> *mut c_void = $allocate;
                let allocated = allocate(size $(, $more)*);
                if !allocated.is_null() {
                    return allocated;
                }
            }
            const NAME: &CStr = name(concat!(stringify!($name), "\0"));
            // Looked up each time: it is the way of those whose memory has run out.
            let next = next(NAME);
            if next.is_null() {
                return std::ptr::null_mut();
            }
            // SAFETY: the operator of this very name, which has this type. It may throw through this frame, which holds
            // nothing.
            unsafe {
                let next: unsafe extern "C-unwind" fn(usize $(, $kind)*) -> *mut c_void = std::mem::transmute(next);
                next(size $(, $more)*)
            }
        }
    )*};
}

macro_rules! release {
    ($($name:ident ($($more:ident: $kind:ty),*);)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[cfg_attr(test, allow(dead_code))]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name(ptr: *mut c_void $(, $more: $kind)*) {
            const NAME: &CStr = name(concat!(stringify!($name), "\0"));
            let next = if malloc_is_ours() { std::ptr::null_mut() } else { next(NAME) };
            if !next.is_null() {
                // SAFETY: the operator of this very name, which has this type.
                return unsafe {
                    let next: unsafe extern "C" fn(*mut c_void $(, $kind)*) = std::mem::transmute(next);
                    next(ptr $(, $more)*)
                };
            }
            // SAFETY: by the contract of the operator, `ptr` is null or came from one of those above. Not by its size: a
            // class without a virtual destructor that is deleted through its base has been told wrongly often enough.
            unsafe { sys::free(ptr) }
        }
    )*};
}

/// `std::nothrow_t const &`, which says nothing.
type Nothrow = *const c_void;
/// `std::align_val_t`, a power of two.
type Align = usize;

fn plain(size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for; jemalloc gives a distinct pointer for zero.
    unsafe { sys::malloc(size) }
}

fn aligned(size: usize, align: Align) -> *mut c_void {
    // SAFETY: jemalloc refuses an alignment that is none.
    unsafe { sys::aligned_alloc(align, size) }
}

allocate! {
    _Znwm() plain;
    _Znam() plain;
    _ZnwmRKSt9nothrow_t(nothrow: Nothrow) |size, _| plain(size);
    _ZnamRKSt9nothrow_t(nothrow: Nothrow) |size, _| plain(size);
    _ZnwmSt11align_val_t(align: Align) aligned;
    _ZnamSt11align_val_t(align: Align) aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t(align: Align, nothrow: Nothrow) |size, align, _| aligned(size, align);
    _ZnamSt11align_val_tRKSt9nothrow_t(align: Align, nothrow: Nothrow) |size, align, _| aligned(size, align);
}

release! {
    _ZdlPv();
    _ZdaPv();
    _ZdlPvm(size: usize);
    _ZdaPvm(size: usize);
    _ZdlPvRKSt9nothrow_t(nothrow: Nothrow);
    _ZdaPvRKSt9nothrow_t(nothrow: Nothrow);
    _ZdlPvSt11align_val_t(align: Align);
    _ZdaPvSt11align_val_t(align: Align);
    _ZdlPvmSt11align_val_t(size: usize, align: Align);
    _ZdaPvmSt11align_val_t(size: usize, align: Align);
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align: Align, nothrow: Nothrow);
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align: Align, nothrow: Nothrow);
}

/// Whether the host's `malloc` is the agent's; looked up once, and not by the constructor, since those of other libraries
/// may run earlier.
#[inline]
fn malloc_is_ours() -> bool {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;
    static OURS: AtomicU8 = AtomicU8::new(UNKNOWN);
    match OURS.load(Relaxed) {
        UNKNOWN => {
            let ours = look_up_malloc();
            OURS.store(if ours { YES } else { NO }, Relaxed);
            ours
        }
        known => known == YES,
    }
}

/// A name that ends with NUL.
const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("evaluated while this is compiled"),
    }
}
