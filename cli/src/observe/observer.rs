use super::observation::{Observation, OwnerBytes, SiteBytes};
use crate::analysis::ledger::{self, Readings};
use crate::analysis::smaps;
use crate::capture::capture;
use crate::client::Agent;
use crate::elf;
use offheap_symbolizer::SymbolizeOptions;
use offheap_symbolizer::profile::GroupBy;
use std::fs::{self, File};
use std::time::{SystemTime, UNIX_EPOCH};

/// Looks at one host again and again.
#[derive(Debug)]
pub(crate) struct Observer {
    agent: Agent,
    is_go: bool,
}

impl Observer {
    pub(crate) fn new(agent: Agent) -> Self {
        let executable = agent
            .pid()
            .ok()
            .and_then(|pid| File::open(format!("/proc/{pid}/exe")).ok())
            .and_then(|file| elf::read(&file).ok().flatten());
        Self { agent, is_go: executable.is_some_and(|executable| executable.is_go) }
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Read everything but the profile.
    pub(crate) fn observe(&self) -> anyhow::Result<Observation> {
        // The statistics first: they are the ones that can fail, and the ledger divides what it measures by them.
        let mut stats = self.agent.stats()?;
        let profile = self.agent.info()?.profile;
        let taken_at = stats.taken_at.unwrap_or_else(now);
        let ledger = self.ledger(&stats).unwrap_or_default();
        // A series of many readings does not need each arena of each.
        stats.arenas.clear();
        Ok(Observation { taken_at, stats, profile: Some(profile), ledger, sites: Vec::new() })
    }

    fn ledger(&self, stats: &offheap_wire::Stats) -> Option<Vec<OwnerBytes>> {
        let text = fs::read(format!("/proc/{}/smaps", self.agent.pid().ok()?)).ok()?;
        let mappings = smaps::parse(&text).ok()?;
        let ledger = ledger::of(Readings { mappings: &mappings, is_go: self.is_go, native: Some(stats), go: None });
        let rows = ledger.rows.iter().filter(|row| row.bytes > 0);
        Some(rows.map(|row| OwnerBytes { owner: row.owner.name().to_owned(), bytes: row.bytes }).collect())
    }

    /// The functions that hold most, by the Go function that called into C where there is one.
    pub(crate) fn sites(&self, count: usize) -> anyhow::Result<Vec<SiteBytes>> {
        let parsed = capture(&self.agent, SymbolizeOptions::default())?;
        let profile = &parsed.profile;
        let value = profile.value_index("inuse_space").unwrap_or_default();
        let by = if self.is_go { GroupBy::Go } else { GroupBy::Function };
        let rows = profile.rank(value, by).rows;
        let site =
            |row: &offheap_symbolizer::profile::Row| SiteBytes { name: row.node.name.to_string(), bytes: row.flat };
        Ok(rows.iter().filter(|row| row.flat != 0).take(count).map(site).collect())
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
