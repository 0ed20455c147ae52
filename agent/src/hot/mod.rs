//! What runs inside `malloc` and `free` of the host.
//!
//! Rules of this zone: no blocking lock, no allocation while unwinding, no loader call, no I/O but the probes of
//! [`memory`], no panic. Tables are built by the control zone and swapped in.

mod arch;
mod counters;
mod golang;
mod hook;
mod memory;
mod modules;
mod scratch;
mod walk;

pub(crate) use counters::COUNTERS;
pub(crate) use hook::{BACKTRACE, BacktraceHook};
pub(crate) use modules::{ModuleTable, StartupImages, loader_generation};
pub(crate) use scratch::{POOL, publish, with_table};
