//! What runs inside `malloc` and `free` of the host.
//!
//! Rules of this zone: no blocking lock, no allocation while unwinding, no loader call, no I/O but the probes of
//! [`memory`], no panic. Tables are built by the control zone and swapped in.

mod arch;
mod clock;
mod counters;
mod golang;
mod hook;
mod memory;
mod modules;
mod pages;
mod samples;
mod scratch;
mod storage;
mod walk;

pub(crate) use clock::now_ns;
pub(crate) use counters::COUNTERS;
pub(crate) use hook::{BACKTRACE, BacktraceHook};
pub(crate) use modules::{ModuleTable, StartupImages, loaded_modules, loader_generation, thread_local_bytes};
pub(crate) use pages::are_there;
pub(crate) use samples::{
    SAMPLE, SAMPLE_FREE, SampleFreeHook, SampleHook, SampleView, SiteView, counts as sample_counts,
    reset as reset_samples, view as sample_view,
};
pub(crate) use scratch::{POOL, await_quiet, publish, with_table};
