use crate::analysis::fragmentation::{Fragmentation, Limits, assess};
use offheap_wire::{ProfileState, Stats};
use serde::{Deserialize, Serialize};

/// What was seen at one moment; a line of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Observation {
    /// Unix time, seconds.
    pub(crate) taken_at: f64,
    /// Statistics of the allocator.
    pub(crate) stats: Stats,
    /// State of profiling.
    pub(crate) profile: Option<ProfileState>,
    /// The ledger; empty when the mappings of the process could not be read.
    pub(crate) ledger: Vec<OwnerBytes>,
    /// Why RSS is what it is, judged with the observations of the minute before.
    pub(crate) verdict: Option<VerdictLine>,
    /// The largest holders, when a profile was taken with this observation.
    pub(crate) sites: Vec<SiteBytes>,
}

/// A row of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerBytes {
    pub(crate) owner: String,
    pub(crate) bytes: u64,
}

/// A verdict in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VerdictLine {
    pub(crate) cause: String,
    pub(crate) growing: Option<bool>,
    pub(crate) reasons: Vec<String>,
}

/// A function with what its allocations hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteBytes {
    pub(crate) name: String,
    pub(crate) bytes: i64,
}

impl Observation {
    /// RSS: the sum of the ledger, which was read in one piece, else what the agent saw.
    pub(crate) fn rss(&self) -> Option<u64> {
        let sum: u64 = self.ledger.iter().map(|row| row.bytes).sum();
        if sum > 0 { Some(sum) } else { self.stats.rss }
    }

    pub(crate) fn fragmentation(&self) -> Fragmentation {
        assess(&self.stats, Limits::default())
    }
}
