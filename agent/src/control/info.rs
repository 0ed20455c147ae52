//! `GET /v1/info`.

use super::jobs::Agent;
use super::{mallctl, process, stats};
use crate::boundary::contained;
use crate::hot::{self, COUNTERS};
use offheap_wire::{AgentCounters, Info, JemallocConfig, StackEnd};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

impl Agent {
    /// Who and what serves this socket.
    pub(crate) fn info(&self) -> Info {
        Info {
            schema: "offheap.info/1".into(),
            agent_version: env!("CARGO_PKG_VERSION").into(),
            jemalloc_version: mallctl::version().unwrap_or_default(),
            pid: std::process::id(),
            exe: process::exe(),
            started_at: process::started_at(),
            socket: self.socket_path().to_owned(),
            malloc_is_ours: self.malloc_is_ours,
            jemalloc: jemalloc_config(),
            profile: self.profiler.state(),
            agent: self.counters(),
        }
    }

    /// Counters of the agent itself.
    pub(crate) fn counters(&self) -> AgentCounters {
        let _ = mallctl::advance_epoch();
        let hook = COUNTERS.view();
        let (samples_live, samples_dropped) = hot::sample_counts();
        AgentCounters {
            own_bytes: stats::own_bytes(),
            stacks: hook.stacks,
            stacks_with_go: hook.stacks_with_go,
            stack_ends: hook.ends.iter().map(|&(end, count)| (end_name(end).to_owned(), count)).collect(),
            requests: self.requests.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            dumps: self.dumps.load(Relaxed),
            more: BTreeMap::from([("stacks_busy".to_owned(), hook.busy), ("panics".to_owned(), contained())]),
            samples_live,
            samples_dropped,
        }
    }
}

/// The name that serde gives the variant.
fn end_name(end: StackEnd) -> &'static str {
    match end {
        StackEnd::Root => "root",
        StackEnd::TooDeep => "too_deep",
        StackEnd::UnknownImage => "unknown_image",
        StackEnd::NoUnwindInfo => "no_unwind_info",
        StackEnd::Unreadable => "unreadable",
        StackEnd::NoProgress => "no_progress",
    }
}

/// `config.*` and `opt.*`, from jemalloc's own JSON report with everything else left out:
///
/// ```text
/// {"jemalloc":{"version":"5.3.1-…","config":{"cache_oblivious":true,…},"opt":{"abort":false,"dss":"secondary",…},…}}
/// ```
fn jemalloc_config() -> JemallocConfig {
    let report: Value = serde_json::from_slice(&mallctl::stats_print(c"Jmdablxeh")).unwrap_or_default();
    let table = |name: &str| {
        let entries = report["jemalloc"][name].as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.clone(), text_of(value))).collect::<BTreeMap<_, _>>()
    };
    JemallocConfig { config: table("config"), opt: table("opt") }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_read() {
        let config = jemalloc_config();
        assert_eq!(config.config["prof"], "true");
        assert!(config.opt.contains_key("narenas"));
    }

    #[test]
    fn names_of_ends_are_those_on_the_wire() {
        for end in [StackEnd::Root, StackEnd::TooDeep, StackEnd::NoUnwindInfo, StackEnd::NoProgress] {
            assert_eq!(serde_json::to_value(end).unwrap(), end_name(end));
        }
    }
}
