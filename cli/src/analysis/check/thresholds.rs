//! From when on there is an alert. `rules` writes the same numbers for Prometheus.

use crate::analysis::fragmentation::Limits;
use std::time::Duration;

/// A condition that held is given up below this part of its threshold: a value that trembles around the threshold does
/// not start anew each time.
pub(super) const HYSTERESIS: f64 = 0.95;

/// The conditions and for how long they must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thresholds {
    /// Fragmentation index.
    pub(crate) index: f64,
    /// RSS below which nobody cares about the index.
    pub(crate) min_rss: u64,
    /// Bytes of active − allocated below which the index is that of a tiny heap, however large the process is.
    pub(crate) min_waste: u64,
    pub(crate) index_for: Duration,
    /// RSS ÷ Go heap in use.
    pub(crate) go_ratio: f64,
    /// RSS below which nobody cares about the ratio.
    pub(crate) go_min_rss: u64,
    pub(crate) go_for: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            index: limits.index,
            min_rss: 1_500_000_000,
            min_waste: limits.min_waste,
            index_for: Duration::from_secs(300),
            go_ratio: 3.0,
            go_min_rss: 2_000_000_000,
            go_for: Duration::from_secs(600),
        }
    }
}
