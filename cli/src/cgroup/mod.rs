//! Control groups of a process: what limits its memory and its CPU time, versions 1 and 2.

mod hierarchy;
mod read;

#[cfg(test)]
pub(crate) use read::Cpu;
pub(crate) use read::{Cgroup, Memory, of};
