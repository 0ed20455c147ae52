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

impl Thresholds {
    /// An index as it is typed. One outside 0 to 1 (`35`, meant as a percentage) would never alarm, and nobody would know.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn parse_index(text: &str) -> Result<f64, String> {
        match text.parse() {
            Ok(index) if (0.0..=1.0).contains(&index) => Ok(index),
            _ => Err(format!("`{text}` is not an index, a share from 0 to 1; write for example 0.35")),
        }
    }

    /// How many times one thing is another.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn parse_ratio(text: &str) -> Result<f64, String> {
        match text.parse::<f64>() {
            Ok(ratio) if ratio.is_finite() && ratio >= 0.0 => Ok(ratio),
            _ => Err(format!("`{text}` is not a ratio; write for example 3.0")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Thresholds;

    #[test]
    fn a_threshold_that_nothing_can_cross_is_a_mistake() {
        for (text, expected) in [("0", Some(0.0)), ("0.35", Some(0.35)), ("1", Some(1.0))] {
            assert_eq!(Thresholds::parse_index(text).ok(), expected, "{text}");
        }
        for text in ["35", "-0.1", "NaN", "35%", ""] {
            assert!(Thresholds::parse_index(text).unwrap_err().contains("from 0 to 1"), "{text}");
        }
        assert_eq!(Thresholds::parse_ratio("3.5"), Ok(3.5));
        for text in ["inf", "nan", "-1", "x"] {
            assert!(Thresholds::parse_ratio(text).is_err(), "{text}");
        }
    }
}
