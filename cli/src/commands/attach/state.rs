//! What the screen shows, without the screen.

use crate::analysis::growth;
use crate::observe::{Observation, SiteBytes};
use std::collections::VecDeque;

/// Readings that are kept: ten minutes at two seconds.
const KEPT: usize = 300;
/// Seconds over which growth is measured.
const WINDOW: f64 = 60.0;
/// Seconds that must have been seen: growth of a shorter time is noise, written per minute it is large noise.
const LEAST: f64 = 5.0;

/// The last readings.
#[derive(Debug, Default)]
pub(super) struct History {
    observations: VecDeque<Observation>,
}

impl History {
    pub(super) fn push(&mut self, observation: Observation) {
        if self.observations.len() == KEPT {
            self.observations.pop_front();
        }
        self.observations.push_back(observation);
    }

    pub(super) fn last(&self) -> Option<&Observation> {
        self.observations.back()
    }

    /// Growth of a figure over the last minute, bytes per second.
    pub(super) fn growth(&self, figure: impl Fn(&Observation) -> Option<u64>) -> Option<f64> {
        let since = self.last()?.taken_at - WINDOW;
        let recent = self.observations.iter().filter(|observation| observation.taken_at >= since);
        let points: Vec<(f64, f64)> = recent.filter_map(|o| Some((o.taken_at, figure(o)? as f64))).collect();
        let seen = points.last()?.0 - points.first()?.0;
        if seen < LEAST {
            return None;
        }
        growth::per_second(points.iter().copied())
    }

    /// A figure over time, the oldest first; unknown values are left out.
    pub(super) fn series(&self, figure: impl Fn(&Observation) -> Option<u64>) -> Vec<u64> {
        self.observations.iter().filter_map(figure).collect()
    }
}

/// Who is watched.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) pid: u32,
    pub(super) jemalloc: String,
}

/// A site with its bytes in the profile before, for the difference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) bytes: i64,
    pub(super) before: Option<i64>,
}

/// How many readings a message stays.
const MESSAGE_READINGS: u64 = 5;

/// Everything the screen shows.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) subject: Subject,
    pub(super) history: History,
    pub(super) sites: Vec<Site>,
    /// What happened last, for the bottom line; empty when the keys stand there.
    pub(super) message: String,
    /// Number of the reading at which the message appeared.
    pub(super) said_at: u64,
    /// The host answers no more.
    pub(super) ended: bool,
    /// Readings so far.
    pub(super) readings: u64,
}

/// What the workers tell.
#[derive(Debug)]
pub(super) enum Event {
    Observed(Box<Observation>),
    Sites(Vec<SiteBytes>),
    Message(String),
    Ended(String),
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    StartOrStop,
    Reset,
    Dump,
    Purge,
    Sites,
}

impl State {
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Observed(observation) => {
                self.readings += 1;
                self.history.push(*observation);
                // The keys share the line with the message, and come back once it has been read.
                if !self.ended && self.readings - self.said_at >= MESSAGE_READINGS {
                    self.message.clear();
                }
            }
            Event::Sites(sites) => {
                let before = |name: &str| self.sites.iter().find(|site| site.name == name).map(|site| site.bytes);
                self.sites = sites
                    .into_iter()
                    .map(|site| Site { before: before(&site.name), name: site.name, bytes: site.bytes })
                    .collect();
            }
            Event::Message(text) => self.say(text),
            Event::Ended(text) => {
                self.message = text;
                self.ended = true;
            }
        }
    }

    /// Put a message on the bottom line.
    pub(super) fn say(&mut self, text: String) {
        self.message = text;
        self.said_at = self.readings;
    }

    /// Something was recorded and can be shown.
    pub(super) fn is_recorded(&self) -> bool {
        self.history
            .last()
            .and_then(|last| last.profile.as_ref())
            .is_some_and(|p| p.active || p.recording_since.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, History, KEPT, MESSAGE_READINGS, Site, State};
    use crate::observe::{Observation, SiteBytes};
    use offheap_wire::Stats;

    fn observation(taken_at: f64, allocated: Option<u64>) -> Observation {
        Observation { taken_at, stats: Stats { allocated, ..Stats::default() }, ..Observation::default() }
    }

    #[test]
    fn growth_is_that_of_the_last_minute() {
        let mut history = History::default();
        assert_eq!(history.growth(|o| o.stats.allocated), None);
        history.push(observation(0.0, Some(1 << 40)));
        for second in 100..120 {
            history.push(observation(f64::from(second), Some(1000 + 5 * second as u64)));
        }
        assert!((history.growth(|o| o.stats.allocated).unwrap() - 5.0).abs() < 1e-6);
        assert_eq!(history.growth(|o| o.stats.resident), None);
    }

    #[test]
    fn history_is_bounded() {
        let mut history = History::default();
        (0..2 * KEPT).for_each(|second| history.push(observation(second as f64, Some(second as u64))));
        let series = history.series(|o| o.stats.allocated);
        assert_eq!((series.len(), series[0]), (KEPT, KEPT as u64));
    }

    #[test]
    fn a_message_gives_the_line_back_to_the_keys_but_the_end_stays() {
        let mut state = State::default();
        let read = |state: &mut State, times: u64| {
            (0..times).for_each(|_| state.apply(Event::Observed(Box::new(observation(0.0, None)))));
        };
        read(&mut state, 7);
        state.apply(Event::Message("written to x.pb.gz".into()));
        read(&mut state, MESSAGE_READINGS - 1);
        assert_eq!(state.message, "written to x.pb.gz");
        read(&mut state, 1);
        assert_eq!(state.message, "");
        state.apply(Event::Ended("the process has ended".into()));
        read(&mut state, 2 * MESSAGE_READINGS);
        assert_eq!(state.message, "the process has ended");
    }

    #[test]
    fn sites_remember_the_profile_before() {
        let mut state = State::default();
        let sites = |bytes| Event::Sites(vec![SiteBytes { name: "main.leak".into(), bytes }]);
        state.apply(sites(10));
        state.apply(sites(30));
        assert_eq!(state.sites, [Site { name: "main.leak".into(), bytes: 30, before: Some(10) }]);
    }
}
