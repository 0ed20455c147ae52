use super::observation::{Observation, OwnerBytes, SiteBytes, VerdictLine};
use crate::analysis::go_runtime::GoMemory;
use crate::analysis::ledger::{self, Ledger, Readings};
use crate::analysis::smaps;
use crate::analysis::verdict::{Evidence, judge};
use crate::capture::capture;
use crate::client::Agent;
use crate::elf;
use crate::go_endpoint::{Answer, GoEndpoint};
use crate::target::living_thread;
use offheap_symbolizer::SymbolizeOptions;
use offheap_symbolizer::profile::GroupBy;
use offheap_wire::Stats;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A verdict compares with the oldest reading of this time.
const VERDICT_WINDOW: Duration = Duration::from_secs(60);

/// Looks at one host again and again.
#[derive(Debug)]
pub(crate) struct Observer {
    agent: Agent,
    is_go: bool,
    go: Option<GoEndpoint>,
    /// Guards the readings of the last minute, oldest first; held for no I/O.
    recent: Mutex<VecDeque<Kept>>,
}

/// What a later verdict compares with.
#[derive(Debug)]
struct Kept {
    at: Instant,
    ledger: Ledger,
    stats: Stats,
    go: Option<GoMemory>,
}

impl Kept {
    fn evidence(&self) -> Evidence<'_> {
        Evidence { ledger: &self.ledger, native: Some(&self.stats), go: self.go.as_ref() }
    }
}

impl Observer {
    /// `go`: where the statistics of the Go runtime are read, for a ledger that divides the Go heap.
    pub(crate) fn new(agent: Agent, go: Option<GoEndpoint>) -> Self {
        let executable = agent
            .pid()
            .ok()
            .and_then(|pid| File::open(format!("/proc/{}/exe", living_thread(pid))).ok())
            .and_then(|file| elf::read(&file).ok().flatten());
        let is_go = executable.is_some_and(|executable| executable.is_go);
        Self { agent, is_go, go, recent: Mutex::default() }
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Read everything but the profile.
    ///
    /// # Errors
    /// When the agent does not answer, or a Go endpoint that was named does not.
    pub(crate) fn observe(&self) -> anyhow::Result<Observation> {
        // From what disturbs most to what disturbs least; the mappings, the sum that all must add up to, come last.
        let pid = self.agent.pid();
        let go = match (&self.go, &pid) {
            (Some(go), Ok(pid)) => Some(go.read(*pid)?),
            _ => None,
        };
        let profile = self.agent.info()?.profile;
        let mut stats = self.agent.stats()?;
        let taken_at = stats.taken_at.unwrap_or_else(now);
        let ledger = pid.ok().and_then(|pid| self.ledger(pid, &stats, go.as_ref()));
        // A series of many readings does not need each arena of each.
        stats.arenas.clear();
        let rows = ledger.iter().flat_map(|ledger| &ledger.rows).filter(|row| row.bytes > 0);
        let rows = rows.map(|row| OwnerBytes { owner: row.owner.name().to_owned(), bytes: row.bytes }).collect();
        let verdict = ledger.map(|ledger| self.verdict(ledger, &stats, go));
        Ok(Observation { taken_at, stats, profile: Some(profile), ledger: rows, verdict, sites: Vec::new() })
    }

    /// `None` when the mappings cannot be read; everything else can still be shown.
    fn ledger(&self, pid: u32, stats: &Stats, go: Option<&Answer>) -> Option<Ledger> {
        let text = fs::read(format!("/proc/{}/smaps", living_thread(pid))).ok()?;
        let mappings = smaps::parse(&text).ok().filter(|mappings| !mappings.is_empty())?;
        Some(ledger::of(Readings {
            mappings: &mappings,
            is_go: self.is_go || go.is_some(),
            native: Some(stats),
            go: go.map(|go| (&go.memory, go.source)),
        }))
    }

    fn verdict(&self, ledger: Ledger, stats: &Stats, go: Option<Answer>) -> VerdictLine {
        let now = Kept { at: Instant::now(), ledger, stats: stats.clone(), go: go.map(|go| go.memory) };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|kept| now.at.duration_since(kept.at) > VERDICT_WINDOW) {
            recent.pop_front();
        }
        let before = recent.front().map(|kept| (kept.evidence(), now.at.duration_since(kept.at)));
        let verdict = judge(now.evidence(), before);
        recent.push_back(now);
        VerdictLine { cause: verdict.cause.name().to_owned(), growing: verdict.growing, reasons: verdict.reasons }
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
