//! Allocator statistics from a live host or from a file.

use crate::client::Agent;
use crate::exit::Outcome;
use offheap_wire::Stats;

/// Statistics with what has to be said about them.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) stats: Stats,
    /// Remarks for the user.
    pub(crate) notes: Vec<String>,
    /// Parts of the input were damaged and left out.
    pub(crate) partial: bool,
}

impl Reading {
    /// Read from what the user typed.
    pub(crate) fn of(source: &str) -> anyhow::Result<Self> {
        let stats = Agent::of(source)?.stats()?;
        Ok(Self { stats, notes: Vec::new(), partial: false })
    }

    /// Exit code of a command that showed it.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.partial { Outcome::Partial } else { Outcome::Done }
    }
}
