//! For how long a condition has held.
//!
//! ```text
//!            Above                     held for `hold`
//!   quiet ───────────▶ pending since t ───────────────▶ firing
//!     ▲                    │ Below                        │ Below
//!     └────────────────────┴──────────────────────────────┘
//! Between keeps what is: quiet stays quiet, pending and firing go on.
//! ```

use super::measure::{Level, Observation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What an alert does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Quiet,
    /// The condition holds, not yet for long enough: this much is left.
    Pending(Duration),
    Firing,
    /// The last reading could not be judged.
    Unknown,
}

/// One alert over time.
#[derive(Clone, Debug)]
pub(super) struct Alert {
    hold: Duration,
    since: Option<Duration>,
}

impl Alert {
    pub(super) fn new(hold: Duration, since: Option<Duration>) -> Self {
        Self { hold, since }
    }

    /// Take in a reading made at `now`.
    pub(super) fn observe(&mut self, now: Duration, observation: &Observation) -> Phase {
        match observation.level {
            Level::Above => {
                self.since.get_or_insert(now);
            }
            Level::Between => {}
            Level::Below => self.since = None,
            // It is not known whether the condition went on, so its time does not either.
            Level::Unknown => {
                self.since = None;
                return Phase::Unknown;
            }
        }
        match self.since.map(|since| now.saturating_sub(since)) {
            None => Phase::Quiet,
            Some(held) if held >= self.hold => Phase::Firing,
            Some(held) => Phase::Pending(self.hold - held),
        }
    }

    pub(super) fn since(&self) -> Option<Duration> {
        self.since
    }
}

/// What one run of `check` leaves for the next, so that a timer can ask often and each run is short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// By target and pid: another process under the same name starts anew.
    #[serde(default)]
    pub(crate) targets: BTreeMap<String, Remembered>,
}

/// One target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// Unix time of the last reading, seconds.
    pub(crate) seen: f64,
    /// Since when the condition of an alert has held, Unix seconds.
    pub(crate) since: BTreeMap<String, f64>,
}

/// Nobody looked for this long: whether the condition held meanwhile is not known.
const FORGOTTEN: Duration = Duration::from_secs(900);

impl Remembered {
    /// Since when an alert has held, as far as the last run is recent.
    pub(super) fn since(&self, name: &str, now: Duration) -> Option<Duration> {
        let seen = Duration::try_from_secs_f64(self.seen).ok()?;
        let since = Duration::try_from_secs_f64(*self.since.get(name)?).ok()?;
        (since <= now && seen <= now && now - seen <= FORGOTTEN).then_some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::{Alert, Level, Observation, Phase, Remembered};
    use std::time::Duration;

    fn run(hold: u64, readings: &[(u64, Level)]) -> Vec<Phase> {
        let mut alert = Alert::new(Duration::from_secs(hold), None);
        let observe = |&(at, level): &(u64, Level)| {
            alert.observe(Duration::from_secs(at), &Observation { level, value: None, reason: String::new() })
        };
        readings.iter().map(observe).collect()
    }

    #[test]
    fn phases() {
        use Level::{Above, Below, Between};
        use Phase::{Firing, Pending, Quiet};
        let left = |seconds| Pending(Duration::from_secs(seconds));
        for (label, hold, readings, phases) in [
            ("at once", 0, vec![(5, Above)], vec![Firing]),
            ("between does not begin", 0, vec![(5, Between)], vec![Quiet]),
            ("held", 10, vec![(0, Above), (4, Above), (10, Above)], vec![left(10), left(6), Firing]),
            ("dips are ridden out", 10, vec![(0, Above), (4, Between), (10, Above)], vec![left(10), left(6), Firing]),
            ("below starts anew", 10, vec![(0, Above), (4, Below), (10, Above)], vec![left(10), Quiet, left(10)]),
            (
                "firing ends below, not between",
                5,
                vec![(0, Above), (5, Above), (6, Between), (7, Below), (8, Between)],
                vec![left(5), Firing, Firing, Quiet, Quiet],
            ),
            (
                "not measured is not held",
                5,
                vec![(0, Above), (4, Level::Unknown), (5, Above)],
                vec![left(5), Phase::Unknown, left(5)],
            ),
        ] {
            assert_eq!(run(hold, &readings), phases, "{label}");
        }
    }

    #[test]
    fn old_memories_and_those_of_the_future_do_not_count() {
        let memory = |seen, since| Remembered { seen, since: [("a".to_owned(), since)].into() };
        let now = Duration::from_secs(10_000);
        assert_eq!(memory(9_990.0, 9_000.0).since("a", now), Some(Duration::from_secs(9_000)));
        assert_eq!(memory(9_990.0, 9_000.0).since("b", now), None);
        assert_eq!(memory(8_000.0, 7_000.0).since("a", now), None);
        assert_eq!(memory(10_001.0, 9_000.0).since("a", now), None);
        assert_eq!(memory(f64::NAN, -1.0).since("a", now), None);
    }
}
