//! What runs inside `malloc` and `free` of the host.
//!
//! Rules of this zone: no blocking lock, no allocation while unwinding, no loader call, no I/O but the probes of
//! [`memory`], no panic. Tables are built by the control zone and swapped in.

#[allow(unsafe_code)]
mod arch;
mod counters;
mod golang;
#[allow(unsafe_code)]
mod hook;
#[allow(unsafe_code)]
mod loader;
#[allow(unsafe_code)]
mod memory;
mod modules;
#[allow(unsafe_code)]
mod pages;
#[allow(unsafe_code)]
mod samples;
#[allow(unsafe_code)]
mod scratch;
mod storage;
mod walk;

pub(crate) use counters::COUNTERS;
pub(crate) use hook::{BACKTRACE, BacktraceHook};
pub(crate) use loader::{LoadedImage, StartupImages, for_each_image, loader_generation};
pub(crate) use modules::ModuleTable;
pub(crate) use pages::are_there;
pub(crate) use samples::{
    SAMPLE, SAMPLE_FREE, SampleFreeHook, SampleHook, SampleView, SiteView, counts as sample_counts,
    reset as reset_samples, view as sample_view,
};
pub(crate) use scratch::{POOL, await_quiet, publish, with_table};
