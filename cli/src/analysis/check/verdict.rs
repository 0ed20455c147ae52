//! What a check says.

use super::measure::Sample;
use super::thresholds::Thresholds;
use serde::Serialize;
use std::fmt::Write;

/// State by the convention of monitoring plugins, whose exit codes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Ok,
    Warning,
    Critical,
    /// It could not be measured: never OK.
    Unknown,
}

impl State {
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The graver first. What is known to be wrong counts more than what is not known, which counts more than OK.
    const fn gravity(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unknown => 1,
            Self::Warning => 2,
            Self::Critical => 3,
        }
    }
}

/// One alert.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AlertVerdict {
    pub(crate) name: &'static str,
    pub(crate) state: State,
    pub(crate) value: Option<f64>,
    pub(crate) threshold: f64,
    pub(crate) reason: String,
}

/// All alerts of one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) state: State,
    pub(crate) alerts: Vec<AlertVerdict>,
    /// The measurement itself failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) index: Option<f64>,
    pub(crate) rss: Option<u64>,
    pub(crate) allocated: Option<u64>,
    pub(crate) active: Option<u64>,
    pub(crate) resident: Option<u64>,
    pub(crate) go_heap_in_use: Option<u64>,
    pub(crate) go_ratio: Option<f64>,
    pub(crate) cgroup_working_set: Option<u64>,
}

impl Verdict {
    pub(super) fn of(sample: &Sample, alerts: Vec<AlertVerdict>) -> Self {
        let state =
            alerts.iter().map(|alert| alert.state).max_by_key(|state| state.gravity()).unwrap_or(State::Unknown);
        Self {
            state,
            alerts,
            error: None,
            index: sample.index(),
            rss: sample.stats.rss,
            allocated: sample.stats.allocated,
            active: sample.stats.active,
            resident: sample.stats.resident,
            go_heap_in_use: sample.go_in_use.as_ref().and_then(|heap| heap.as_ref().ok()).copied(),
            go_ratio: sample.go_ratio(),
            cgroup_working_set: sample.working_set,
        }
    }

    /// Nothing could be measured.
    pub(crate) fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::of(&Sample::default(), Vec::new()) }
    }

    /// One line: state, reasons, performance data behind `|` (`label=value[unit];warning;critical;least;most`).
    pub(crate) fn line(&self, thresholds: &Thresholds) -> String {
        let mut line = format!("{}: ", self.state.name());
        let reasons = self.alerts.iter().map(|alert| match alert.state {
            State::Ok => alert.reason.clone(),
            _ => format!("{}: {}", alert.name, alert.reason),
        });
        let text = self.error.iter().cloned().chain(reasons).collect::<Vec<_>>().join("; ");
        // A second line or a second bar would be read as something else.
        line.extend(text.chars().map(|c| match c {
            '|' => '/',
            c if c.is_control() => ' ',
            c => c,
        }));
        let data = self.performance_data(thresholds);
        if !data.is_empty() {
            let _ = write!(line, " |{data}");
        }
        line.push('\n');
        line
    }

    fn performance_data(&self, thresholds: &Thresholds) -> String {
        let mut data = String::new();
        // Writing to a String does not fail.
        if let Some(index) = self.index {
            let _ = write!(data, " index={index:.4};{};;;1", thresholds.index);
        }
        if let Some(ratio) = self.go_ratio {
            let _ = write!(data, " go_ratio={ratio:.4};;{};0", thresholds.go_ratio);
        }
        for (label, bytes) in [
            ("rss", self.rss),
            ("allocated", self.allocated),
            ("active", self.active),
            ("resident", self.resident),
            ("go_heap_in_use", self.go_heap_in_use),
            ("cgroup_working_set", self.cgroup_working_set),
        ] {
            if let Some(bytes) = bytes {
                let _ = write!(data, " {label}={bytes}B;;;0");
            }
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::{AlertVerdict, Sample, State, Thresholds, Verdict};
    use offheap_wire::Stats;

    fn verdict(states: &[State]) -> Verdict {
        let stats = Stats { allocated: Some(1), active: Some(4), rss: Some(9), ..Stats::default() };
        let sample = Sample { stats, go_in_use: Some(Ok(3)), working_set: None };
        let alert = |&state: &State| AlertVerdict {
            name: "Name",
            state,
            value: Some(0.75),
            threshold: 0.35,
            reason: "a|b\nc".into(),
        };
        Verdict::of(&sample, states.iter().map(alert).collect())
    }

    #[test]
    fn the_gravest_state_wins_and_unknown_is_never_ok() {
        use State::{Critical, Ok, Unknown, Warning};
        for (states, expected, code) in [
            (vec![Ok, Ok], Ok, 0),
            (vec![Ok, Warning], Warning, 1),
            (vec![Warning, Critical], Critical, 2),
            (vec![Ok, Unknown], Unknown, 3),
            (vec![Unknown, Critical], Critical, 2),
            (vec![], Unknown, 3),
        ] {
            let found = verdict(&states).state;
            assert_eq!((found, found.exit_code()), (expected, code), "{states:?}");
        }
        assert_eq!(Verdict::failed("gone".into()).state, Unknown);
    }

    #[test]
    fn one_line_with_performance_data() {
        assert_eq!(
            verdict(&[State::Warning]).line(&Thresholds::default()),
            "WARNING: Name: a/b c | index=0.7500;0.35;;;1 go_ratio=3.0000;;3;0 rss=9B;;;0 allocated=1B;;;0 active=4B;;;0 \
             go_heap_in_use=3B;;;0\n"
        );
        assert_eq!(Verdict::failed("no\nagent".into()).line(&Thresholds::default()), "UNKNOWN: no agent\n");
    }
}
