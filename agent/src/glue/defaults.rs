//! What jemalloc starts with; `MALLOC_CONF` and `/etc/malloc.conf` are read after it and win.
//!
//! * `prof:true,prof_active:false`: profiling can be switched on later; until then it costs one test per allocation.
//! * `lg_prof_sample:19`: one sample per 512 KiB allocated.
//! * `prof_unbias:true`: so that a dump says how its numbers are to be read (it cannot be asked for later).
//! * decay of one second: RSS follows the live bytes soon enough to be looked at.
//!
//! * `background_thread:false`: they are switched on later, by the agent thread. Switched on here they would be started
//!   in the middle of one of the host's first allocations.

/// NUL-terminated, as jemalloc reads it.
#[cfg(not(test))]
static CONF: [u8; 127] = *b"prof:true,prof_active:false,lg_prof_sample:19,prof_unbias:true,\
dirty_decay_ms:1000,muzzy_decay_ms:1000,background_thread:false\0";

// jemalloc's weak symbol `malloc_conf` gives way to this one. It is hidden, which a `#[no_mangle]` static of a cdylib
// could not be: a host with a jemalloc of its own must neither see it nor replace it.
#[cfg(not(test))]
std::arch::global_asm!(
    ".pushsection .data.rel.ro.offheap_malloc_conf,\"aw\"",
    ".p2align 3",
    ".globl malloc_conf",
    ".hidden malloc_conf",
    "malloc_conf:",
    ".quad {conf}",
    ".popsection",
    conf = sym CONF,
);
