//! The agent's beginning and end.

use super::environment::Environment;
use super::{fork, next, preload, sandbox};
use crate::allocator::OwnArena;
use crate::boundary::contain;
use crate::control::{self, Agent, Log, say};
use offheap_wire::AGENT_FILE_NAME;
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

/// glibc passes `main`'s arguments to constructors.
#[cfg(not(test))]
type Constructor = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char);

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: Constructor = constructor;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: unsafe extern "C" fn() = destructor;

#[cfg_attr(test, allow(dead_code))]
unsafe extern "C" fn constructor(_argc: c_int, _argv: *mut *mut c_char, envp: *mut *mut c_char) {
    let _ = contain(|| {
        // Rust's own panic message would go to the host's standard error.
        std::panic::set_hook(Box::new(|panic| say(&format!("internal error: {panic}"))));
        // SAFETY: the loader's environment, and no thread has been started yet by anybody but other constructors.
        unsafe { begin(envp) }
    });
}

#[cfg_attr(test, allow(dead_code))]
unsafe extern "C" fn destructor() {
    let _ = contain(control::remove_socket);
}

/// # Safety
/// As for [`preload::leave`].
unsafe fn begin(envp: *mut *mut c_char) {
    sandbox::resolve();
    if envp.is_null() {
        return;
    }
    // SAFETY: by the contract.
    let environment = Environment::read(unsafe { preload::variables(envp) });
    if environment.log {
        Log::enable();
    }
    if !environment.children {
        let own_path = own_path();
        // SAFETY: by the contract.
        unsafe {
            preload::leave(envp, |part| {
                own_path.as_deref() == Some(part)
                    || part.rsplit(|&b| b == b'/').next() == Some(AGENT_FILE_NAME.as_bytes())
            });
        }
    }
    if environment.off {
        return;
    }
    if let Some(complaint) = &environment.complaint {
        say(complaint);
    }
    control::filter_jemalloc_messages();
    OwnArena::create();
    fork::register();
    let agent = Arc::new(Agent::new(malloc_is_ours()));
    profile(&agent, &environment);
    if let Some(rules) = &environment.triggers
        && let Err(error) = agent.watch(rules)
    {
        say(&format!("OFFHEAP_TRIGGER: {error}"));
    }
    if let Err(error) = control::start(agent, &environment.socket) {
        say(&format!("the agent could not be started: {error}"));
    }
}

/// Profiling that the environment asks for, be it by our variable or by `MALLOC_CONF=prof_active:true`.
fn profile(agent: &Agent, environment: &Environment) {
    let started = match environment.profile {
        Some(lg_sample) => agent.profiler.start_on_main_thread(lg_sample).map(|_| ()),
        None if control::prof_active() => agent.profiler.adopt(),
        None => Ok(()),
    };
    if let Err(error) = started {
        say(&error.to_string());
    }
}

/// Path of this library as the loader has it.
fn own_path() -> Option<Vec<u8>> {
    let own = (&raw const crate::ALLOCATOR).cast();
    // SAFETY: all zeros is a valid Dl_info; dladdr fills it in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the name lives as long as the library.
    unsafe {
        (libc::dladdr(own, &raw mut info) != 0 && !info.dli_fname.is_null())
            .then(|| CStr::from_ptr(info.dli_fname).to_bytes().to_vec())
    }
}

/// Whether the host's calls to `malloc` arrive here. An executable that defines its own comes first in the search.
pub(super) fn malloc_is_ours() -> bool {
    std::ptr::eq(next::first(c"malloc"), tikv_jemalloc_sys::malloc as *const libc::c_void)
}
