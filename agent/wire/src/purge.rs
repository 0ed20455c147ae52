use serde::{Deserialize, Serialize};

/// Effect of purging every arena; bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// jemalloc `resident` before.
    pub resident_before: u64,
    /// jemalloc `resident` after.
    pub resident_after: u64,
    /// RSS of the process before.
    pub rss_before: Option<u64>,
    /// RSS of the process after.
    pub rss_after: Option<u64>,
}
