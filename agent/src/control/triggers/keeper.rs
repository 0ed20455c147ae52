//! The rules that are in force.

use super::rule::{Condition, Rule};
use super::{cgroup, file};
use crate::boundary::Finally;
use crate::control::jobs::Agent;
use crate::control::log::say;
use crate::control::{process, thread};
use offheap_wire::{Trigger, Triggers};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// RSS and the control group are looked at this often: a leak of 1 GB/s fills a tenth of a gigabyte meanwhile.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Below this many active bytes an index says nothing.
const INDEX_FLOOR: u64 = 64 << 20;

/// See the module.
#[derive(Default)]
pub(crate) struct Keeper {
    /// Guards: the rules and what came of them.
    active: Mutex<State>,
    /// A file is being written.
    writing: AtomicBool,
}

#[derive(Default)]
struct State {
    triggers: Vec<Active>,
    next_id: u64,
    sequence: u64,
}

struct Active {
    rule: Rule,
    seen: Trigger,
    /// RSS from which growth counts.
    baseline: Option<f64>,
    quiet_until: Option<Instant>,
}

impl Keeper {
    fn state(&self) -> MutexGuard<'_, State> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts rules in force.
    pub(crate) fn add(&self, rules: Vec<Rule>) {
        let mut state = self.state();
        for rule in rules {
            state.next_id += 1;
            let seen = Trigger {
                id: state.next_id,
                when: rule.when.to_string(),
                every: rule.every.as_secs_f64(),
                directory: rule.directory.to_string_lossy().into_owned(),
                keep_files: rule.keep_files,
                keep_bytes: rule.keep_bytes,
                ..Default::default()
            };
            state.triggers.push(Active { rule, seen, baseline: None, quiet_until: None });
        }
    }

    /// Takes a rule out of force; false when there is none of this number.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut state = self.state();
        let before = state.triggers.len();
        state.triggers.retain(|active| active.seen.id != id);
        state.triggers.len() < before
    }

    /// The rules and what came of them.
    pub(crate) fn list(&self) -> Triggers {
        let triggers = self.state().triggers.iter().map(|active| active.seen.clone()).collect();
        Triggers { schema: "offheap.triggers/1".into(), triggers }
    }

    /// Whether there is anything to look at.
    pub(crate) fn is_idle(&self) -> bool {
        self.state().triggers.is_empty()
    }

    /// Whether a file is being written now.
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.load(Acquire)
    }

    /// Looks at the values, and writes a file for the first rule that holds.
    pub(crate) fn look(&self, agent: &Arc<Agent>) {
        if self.writing.load(Acquire) {
            return;
        }
        let now = Instant::now();
        let mut state = self.state();
        let holding = state.triggers.iter_mut().find_map(|active| {
            if active.quiet_until.is_some_and(|until| now < until) {
                return None;
            }
            active.seen.value = value(agent, active.rule.when);
            let threshold = active.threshold();
            active.seen.threshold = threshold;
            active.seen.value.is_some_and(|value| value > threshold).then(|| {
                active.quiet_until = Some(now + active.rule.every);
                active.baseline = active.seen.value;
                (active.seen.id, active.rule.clone())
            })
        });
        let Some((id, rule)) = holding else { return };
        state.sequence += 1;
        let sequence = state.sequence;
        drop(state);
        self.writing.store(true, Release);
        let agent = Arc::clone(agent);
        let spawned = thread::spawn_quietly(c"offheap-trigger", {
            let agent = Arc::clone(&agent);
            move || agent.triggers.write(&agent, id, &rule, sequence)
        });
        if spawned.is_err() {
            self.writing.store(false, Release);
        }
    }

    fn write(&self, agent: &Agent, id: u64, rule: &Rule, sequence: u64) {
        let _idle = Finally(|| self.writing.store(false, Release));
        let host = process::host_name().unwrap_or_else(|| "host".into());
        let started_at = process::started_at().unwrap_or(0.0) as u64;
        let name = file::name(&host, std::process::id(), started_at, sequence, rule.when.reason());
        let written = file::write(&rule.directory, &name, |out| Ok(serde_json::to_writer(out, &agent.sample_table())?));
        file::retain(&rule.directory, rule.keep_files, rule.keep_bytes);
        let mut state = self.state();
        if let Some(active) = state.triggers.iter_mut().find(|active| active.seen.id == id) {
            match written {
                Ok(path) => {
                    active.seen.fired += 1;
                    active.seen.last_fired_at = Some(process::now());
                    active.seen.last_file = Some(path.to_string_lossy().into_owned());
                    active.seen.last_error = None;
                }
                Err(error) => {
                    let message = format!("no file could be written in {}: {error}", rule.directory.display());
                    say(&message);
                    active.seen.last_error = Some(message);
                }
            }
        }
    }
}

impl Active {
    /// Value above which the rule holds. Growth counts from the first value that was read.
    fn threshold(&mut self) -> f64 {
        match self.rule.when {
            Condition::RssAbove(limit)
            | Condition::AllocatedAbove(limit)
            | Condition::CgroupShareAbove(limit)
            | Condition::IndexAbove(limit) => limit,
            Condition::RssGrownBy(share) => {
                if self.baseline.is_none() {
                    self.baseline = self.seen.value;
                }
                self.baseline.map_or(f64::INFINITY, |baseline| baseline * (1.0 + share))
            }
        }
    }
}

fn value(agent: &Agent, condition: Condition) -> Option<f64> {
    match condition {
        Condition::RssAbove(_) | Condition::RssGrownBy(_) => process::rss().map(|bytes| bytes as f64),
        Condition::CgroupShareAbove(_) => cgroup::share(),
        Condition::AllocatedAbove(_) => agent.stats.read().ok()?.allocated.map(|bytes| bytes as f64),
        Condition::IndexAbove(_) => {
            let stats = agent.stats.read().ok()?;
            let active = stats.active.filter(|&active| active >= INDEX_FLOOR)?;
            Some(1.0 - stats.allocated? as f64 / active as f64)
        }
    }
}
