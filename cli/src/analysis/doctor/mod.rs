//! Configuration faults: facts in, findings out.
//!
//! Each rule has an id, the evidence that was read, why it matters, and the exact change to make. A rule whose facts are
//! missing is silent: `doctor` accuses nobody on a guess.

mod allocator;
mod cpu;
mod examine;
mod facts;
mod finding;
mod memory;
mod preload;

pub(crate) use examine::examine;
pub(crate) use facts::{AgentFacts, Facts, Obstacle, Unreachable};
pub(crate) use finding::{Finding, Severity};
