//! One reading of everything that can be known of a process's memory, taken as close together as possible.
//!
//! The order is the Go endpoint, then the agent, then the mappings: each reading disturbs the ones before it less than
//! those after (a heap profile as text allocates in the Go heap, an epoch touches the allocator), and the mappings,
//! which are the sum that the rows must add up to, are the freshest.

use crate::analysis::ledger::{self, Ledger, Readings};
use crate::analysis::smaps::{self, Mapping};
use crate::analysis::verdict::Evidence;
use crate::client::Agent;
use crate::elf;
use crate::go_endpoint::{Answer, GoEndpoint};
use crate::target::{Host, hosts, living_thread};
use anyhow::{Context, anyhow, bail};
use offheap_wire::Stats;
use serde::Serialize;
use std::fs::{self, File};
use std::time::Instant;

/// A process whose memory is to be explained.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) pid: u32,
    pub(crate) name: String,
    agent: Result<Agent, String>,
    is_go: bool,
    go: Option<GoEndpoint>,
}

/// How far apart the readings are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Skew {
    /// Milliseconds from the Go endpoint's answer to the mappings; null when it was not asked, or is a file.
    pub(crate) go_ms: Option<f64>,
    /// Milliseconds from the agent's answer to the mappings.
    pub(crate) agent_ms: Option<f64>,
    /// Milliseconds that reading the mappings took.
    pub(crate) mappings_ms: f64,
    /// Change of RSS from before the first reading to after the last, by the kernel's own counters.
    pub(crate) rss_moved: i64,
}

/// One reading.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) ledger: Ledger,
    pub(crate) native: Option<Stats>,
    pub(crate) go: Option<Answer>,
    pub(crate) skew: Skew,
    /// When the mappings had been read.
    pub(crate) at: Instant,
}

impl Reading {
    /// What a verdict looks at.
    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence { ledger: &self.ledger, native: self.native.as_ref(), go: self.go.as_ref().map(|go| &go.memory) }
    }
}

impl Subject {
    /// From a pid, a socket or a process name; a process without the agent will do, or one whose agent does not answer.
    ///
    /// # Errors
    /// When there is no such process, or several.
    pub(crate) fn of(text: &str, go: Option<GoEndpoint>) -> anyhow::Result<Self> {
        let (host, agent) = match Agent::of(text) {
            // The kernel tells of a process that is stopped or stuck as well: less, but when it is needed most.
            Ok(agent) => (Host::of(agent.pid()?)?, agent.info().map(|_| agent).map_err(|why| format!("{why:#}"))),
            Err(why) => (without_agent(text).ok_or_else(|| anyhow!("{why:#}"))?, Err(format!("{why:#}"))),
        };
        let executable = File::open(format!("/proc/{}/exe", living_thread(host.pid))).and_then(|file| elf::read(&file));
        let is_go = executable.ok().flatten().is_some_and(|executable| executable.is_go);
        Ok(Self { pid: host.pid, name: host.name, agent, is_go, go })
    }

    /// Why the agent is not asked, when it is not.
    pub(crate) fn without_agent(&self) -> Option<&str> {
        self.agent.as_ref().err().map(String::as_str)
    }

    /// Take one reading.
    ///
    /// # Errors
    /// When the mappings cannot be read, or a Go endpoint or an agent that is there does not answer.
    pub(crate) fn read(&self) -> anyhow::Result<Reading> {
        let rss_before = rss(self.pid);
        let go = self.go.as_ref().map(|go| go.read(self.pid)).transpose()?;
        let native = self.agent.as_ref().ok().map(Agent::stats).transpose()?;
        let native_at = Instant::now();
        let mappings = self.mappings()?;
        let at = Instant::now();
        let rss_after = rss(self.pid);

        let ledger = ledger::of(Readings {
            mappings: &mappings,
            is_go: self.is_go || go.is_some(),
            native: native.as_ref(),
            go: go.as_ref().map(|go| (&go.memory, go.source)),
        });
        let milliseconds = |since: Instant| at.duration_since(since).as_secs_f64() * 1e3;
        let skew = Skew {
            go_ms: go.as_ref().and_then(|go| go.at).map(milliseconds),
            agent_ms: native.as_ref().map(|_| milliseconds(native_at)),
            mappings_ms: milliseconds(native_at),
            rss_moved: rss_before.zip(rss_after).map_or(0, |(before, after)| after - before),
        };
        Ok(Reading { ledger, native, go, skew, at })
    }

    fn mappings(&self) -> anyhow::Result<Vec<Mapping>> {
        let path = format!("/proc/{}/smaps", living_thread(self.pid));
        let who = format!("process {} ({})", self.pid, self.name);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => anyhow!(
                "Permission denied: the mappings of {who} may be read by its own user and by root; run as one of them"
            ),
            std::io::ErrorKind::NotFound => anyhow!("{who} has ended"),
            _ => anyhow!(error).context(format!("{path}: cannot be read")),
        })?;
        let mappings = smaps::parse(&text).map_err(|damaged| anyhow!("{path}: {damaged}"))?;
        if mappings.is_empty() {
            bail!("{who} has no memory: it has ended, or is a thread of the kernel");
        }
        Ok(mappings)
    }
}

/// The process of a pid or of a name that one process alone has.
fn without_agent(text: &str) -> Option<Host> {
    let number = text.strip_prefix("pid:").unwrap_or(text);
    if let Ok(pid) = number.parse() {
        return Host::of(pid).ok();
    }
    let mut called = hosts().ok()?.into_iter().filter(|host| host.is_called(text));
    let host = called.next()?;
    called.next().is_none().then_some(host)
}

/// RSS by the kernel's counters, whose error is some pages a CPU: good for differences, not for the ledger's sum.
fn rss(pid: u32) -> Option<i64> {
    let statm = fs::read_to_string(format!("/proc/{}/statm", living_thread(pid))).ok()?;
    let pages: i64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    i64::try_from(procfs::page_size()).ok()?.checked_mul(pages)
}

/// Take one reading, or two.
///
/// # Errors
/// As [`Subject::read`].
pub(crate) fn read_twice(subject: &Subject, wait: impl FnOnce() -> bool) -> anyhow::Result<(Option<Reading>, Reading)> {
    let first = subject.read()?;
    if wait() {
        // Interrupted: one reading is better than none.
        return Ok((None, first));
    }
    let second = subject.read().context("the second reading")?;
    Ok((Some(first), second))
}

#[cfg(test)]
mod tests {
    use super::Subject;
    use crate::client::test_server::TestServer;

    #[test]
    fn an_agent_that_does_not_answer_leaves_what_the_kernel_tells() {
        let server = TestServer::start(|_, _| (503, r#"{"error":"stuck"}"#.into()));
        let subject = Subject::of(&server.path(), None).unwrap();
        assert!(subject.without_agent().unwrap().contains("stuck"));
        let reading = subject.read().unwrap();
        assert!(reading.native.is_none() && reading.ledger.rss > 0);
    }
}
