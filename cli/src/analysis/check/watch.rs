//! Reading until nothing is pending.

use super::alert::{Alert, Phase, Remembered};
use super::measure::{GO_MISMATCH, HIGH_FRAGMENTATION, Observation, Sample};
use super::thresholds::Thresholds;
use super::verdict::{AlertVerdict, State, Verdict};
use crate::words::duration::human;
use std::time::Duration;

/// Time, which tests make up.
pub(crate) trait Clock {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;
    /// Wait; `true` when the user ended it early.
    fn wait(&mut self, duration: Duration) -> bool;
}

/// The alerts of one target.
struct Alerts {
    fragmentation: Alert,
    go_mismatch: Alert,
}

/// An alert after a reading.
struct Seen {
    name: &'static str,
    grave: State,
    threshold: f64,
    hold: Duration,
    phase: Phase,
    observation: Observation,
}

impl Alerts {
    fn new(thresholds: &Thresholds, since: impl Fn(&str) -> Option<Duration>) -> Self {
        Self {
            fragmentation: Alert::new(thresholds.index_for, since(HIGH_FRAGMENTATION)),
            go_mismatch: Alert::new(thresholds.go_for, since(GO_MISMATCH)),
        }
    }

    fn observe(&mut self, now: Duration, sample: &Sample, thresholds: &Thresholds) -> Vec<Seen> {
        let observation = sample.fragmentation(thresholds);
        let mut seen = vec![Seen {
            name: HIGH_FRAGMENTATION,
            grave: State::Warning,
            threshold: thresholds.index,
            hold: thresholds.index_for,
            phase: self.fragmentation.observe(now, &observation),
            observation,
        }];
        if let Some(observation) = sample.go_mismatch(thresholds) {
            seen.push(Seen {
                name: GO_MISMATCH,
                grave: State::Critical,
                threshold: thresholds.go_ratio,
                hold: thresholds.go_for,
                phase: self.go_mismatch.observe(now, &observation),
                observation,
            });
        }
        seen
    }
}

impl Seen {
    fn verdict(self) -> AlertVerdict {
        let mut reason = self.observation.reason;
        let state = match self.phase {
            Phase::Quiet => State::Ok,
            Phase::Pending(left) => {
                let held = self.hold.saturating_sub(left);
                reason.push_str(&format!(", for {} of {}", human(held), human(self.hold)));
                State::Ok
            }
            Phase::Firing => {
                if !self.hold.is_zero() {
                    reason.push_str(&format!(", for {}", human(self.hold)));
                }
                self.grave
            }
            Phase::Unknown => State::Unknown,
        };
        AlertVerdict { name: self.name, state, value: self.observation.value, threshold: self.threshold, reason }
    }
}

/// Read every so often until each condition has held for its time, or does not hold. A reading that fails ends it: what
/// could not be measured is unknown.
pub(crate) fn watch(
    clock: &mut impl Clock,
    thresholds: &Thresholds,
    every: Duration,
    mut read: impl FnMut() -> Result<Sample, String>,
) -> Verdict {
    let mut alerts = Alerts::new(thresholds, |_| None);
    loop {
        let sample = match read() {
            Ok(sample) => sample,
            Err(error) => return Verdict::failed(error),
        };
        let seen = alerts.observe(clock.now(), &sample, thresholds);
        let unknown = seen.iter().any(|alert| alert.phase == Phase::Unknown);
        let left = seen
            .iter()
            .filter_map(|alert| if let Phase::Pending(left) = alert.phase { Some(left) } else { None })
            .min();
        match left {
            Some(left) if !unknown => {
                if clock.wait(left.min(every)) {
                    return Verdict::failed("interrupted while the condition was pending".into());
                }
            }
            _ => return Verdict::of(&sample, seen.into_iter().map(Seen::verdict).collect()),
        }
    }
}

/// One reading, with the memory of those before. What is pending is still OK.
pub(crate) fn judge_once(
    now: Duration,
    thresholds: &Thresholds,
    remembered: &mut Remembered,
    sample: &Sample,
) -> Verdict {
    let mut alerts = Alerts::new(thresholds, |name| remembered.since(name, now));
    let seen = alerts.observe(now, sample, thresholds);
    remembered.seen = now.as_secs_f64();
    remembered.since = [(HIGH_FRAGMENTATION, &alerts.fragmentation), (GO_MISMATCH, &alerts.go_mismatch)]
        .into_iter()
        .filter_map(|(name, alert)| Some((name.to_owned(), alert.since()?.as_secs_f64())))
        .collect();
    Verdict::of(sample, seen.into_iter().map(Seen::verdict).collect())
}

#[cfg(test)]
mod tests {
    use super::{Clock, Remembered, Sample, State, Thresholds, Verdict, judge_once, watch};
    use offheap_wire::Stats;
    use std::time::Duration;

    const GB: u64 = 1_000_000_000;

    #[derive(Default)]
    struct TestClock {
        now: Duration,
        waits: usize,
        interrupt_at: Option<usize>,
    }

    impl Clock for TestClock {
        fn now(&self) -> Duration {
            self.now
        }
        fn wait(&mut self, duration: Duration) -> bool {
            self.now += duration;
            self.waits += 1;
            self.interrupt_at == Some(self.waits)
        }
    }

    /// Index in hundredths.
    fn sample(index: u64, go_heap: Option<u64>) -> Sample {
        let stats =
            Stats { allocated: Some(GB - index * GB / 100), active: Some(GB), rss: Some(3 * GB), ..Stats::default() };
        Sample { stats, go_in_use: go_heap.map(Ok), working_set: None }
    }

    fn run(clock: &mut TestClock, mut reading: impl FnMut(u64) -> Result<Sample, String>) -> Verdict {
        let mut count = 0;
        watch(clock, &Thresholds::default(), Duration::from_secs(60), || {
            count += 1;
            reading(count)
        })
    }

    #[test]
    fn ok_is_told_at_once() {
        let mut clock = TestClock::default();
        assert_eq!(run(&mut clock, |_| Ok(sample(10, None))).state, State::Ok);
        assert_eq!(clock.now, Duration::ZERO);
    }

    #[test]
    fn a_condition_must_hold_for_its_time() {
        let mut clock = TestClock::default();
        let found = run(&mut clock, |_| Ok(sample(50, None)));
        assert_eq!((found.state, clock.now), (State::Warning, Duration::from_secs(300)));
        assert!(found.alerts[0].reason.ends_with("for 5 min"), "{}", found.alerts[0].reason);
    }

    #[test]
    fn one_that_ends_before_is_ok() {
        let mut clock = TestClock::default();
        let found = run(&mut clock, |count| Ok(sample(if count < 4 { 50 } else { 10 }, None)));
        assert_eq!((found.state, clock.now), (State::Ok, Duration::from_secs(180)));
    }

    #[test]
    fn the_graver_alert_is_waited_for() {
        let mut clock = TestClock::default();
        let found = run(&mut clock, |_| Ok(sample(50, Some(GB / 2))));
        assert_eq!((found.state, clock.now), (State::Critical, Duration::from_secs(600)));
        assert_eq!(found.alerts.iter().map(|alert| alert.state).collect::<Vec<_>>(), [State::Warning, State::Critical]);
    }

    #[test]
    fn what_cannot_be_measured_is_unknown_at_once() {
        let mut clock = TestClock::default();
        let found = run(&mut clock, |count| if count < 3 { Ok(sample(50, None)) } else { Err("gone".into()) });
        assert_eq!((found.state, found.error.as_deref()), (State::Unknown, Some("gone")));
        let found = run(&mut TestClock::default(), |_| Ok(Sample::default()));
        assert_eq!(found.state, State::Unknown);
        let unread = Sample { go_in_use: Some(Err("refused".into())), ..sample(50, None) };
        assert_eq!(run(&mut TestClock::default(), |_| Ok(unread.clone())).state, State::Unknown);
    }

    #[test]
    fn an_interrupted_check_is_not_ok() {
        let mut clock = TestClock { interrupt_at: Some(2), ..TestClock::default() };
        assert_eq!(run(&mut clock, |_| Ok(sample(50, None))).state, State::Unknown);
    }

    #[test]
    fn short_runs_remember() {
        let mut memory = Remembered::default();
        let mut judge = |at, index| {
            judge_once(Duration::from_secs(at), &Thresholds::default(), &mut memory, &sample(index, None)).state
        };
        assert_eq!(judge(1_000, 50), State::Ok);
        assert_eq!(judge(1_200, 34), State::Ok, "between: goes on");
        assert_eq!(judge(1_300, 50), State::Warning);
        assert_eq!(judge(1_360, 34), State::Warning, "between: does not flap");
        assert_eq!(judge(1_420, 20), State::Ok);
        assert_eq!(judge(1_480, 50), State::Ok, "anew");
        assert_eq!(judge(9_000, 50), State::Ok, "nobody looked for hours");
    }
}
