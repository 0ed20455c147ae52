//! Control groups of a process: what limits its memory and its CPU time, versions 1 and 2.

mod hierarchy;
mod read;

#[allow(unused_imports)]
pub(crate) use read::{Cgroup, Cpu, Memory, of};
