//! The offheap agent: a shared library that is preloaded into a host process.
//!
//! It *is* the host's allocator (jemalloc, whose own symbols the library exports) and it serves a control socket.
//! Three zones, which the tree shows:
//!
//! * [`hot`]: runs inside `malloc` and `free`. No allocation while unwinding, no lock, no I/O, no panic.
//! * [`control`]: ordinary code on the agent's own threads: statistics, dumps, the server.
//! * [`glue`]: the life of the agent in its host: constructor, environment, fork, exit. Nobody imports it.
//!
//! Below them stand [`kernel`], its calls as safe functions, and [`boundary`], what all catch panics with where C calls
//! them.
//!
//! `control` may import `hot`; `hot` imports neither of the others.

// Unsafe code is where a module is allowed to have it, and nowhere else.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!(
    "offheap-agent works by LD_PRELOAD on Linux with glibc. musl is not supported: its loader and its threads differ, \
     and a Go program linked against it cannot be preloaded. Build for a *-linux-gnu target."
);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("offheap-agent unwinds stacks of x86_64 and aarch64 only");

#[allow(unsafe_code)]
mod allocator;
mod boundary;
mod control;
mod glue;
mod hot;
mod kernel;

// Miri runs Rust alone.
#[cfg_attr(not(miri), global_allocator)]
static ALLOCATOR: allocator::OwnArena = allocator::OwnArena;
