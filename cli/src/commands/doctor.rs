//! `offheap doctor [TARGET]`

use crate::analysis::doctor::{AgentFacts, Facts, Finding, Obstacle, Severity, Unreachable, examine};
use crate::analysis::smaps::{self, Mapping};
use crate::cgroup;
use crate::client::Agent;
use crate::elf;
use crate::exit::Outcome;
use crate::output;
use crate::preload;
use crate::target::{Host, Target, hosts, is_stopped, living_thread};
use crate::view::json;
use crate::view::screen::{Screen, Style};
use crate::words::text::{counted, printable};
use anyhow::{Context, bail};
use offheap_wire::AGENT_FILE_NAME;
use procfs::process::Process;
use serde::Serialize;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::PathBuf;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, or a process name, with or without the agent; without it: what a process started here would get
    target: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    findings: &'a [Finding],
}

/// Look for configuration faults.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let facts = match &args.target {
        Some(target) => facts_of(&host(target)?),
        None => facts_of(&Host::of(std::process::id())?),
    };
    let findings = examine(&facts);
    if args.json {
        output::print(&json::document("doctor", &Document { findings: &findings })?)?;
    } else {
        output::print(&text(&findings, &facts, &output::screen()))?;
    }
    Ok(Outcome::Done)
}

/// The process that is meant; unlike other commands, one without the agent will do.
fn host(text: &str) -> anyhow::Result<Host> {
    match Target::resolve(text.as_ref()) {
        Ok(target) => Host::of(Agent::new(target).pid()?),
        Err(error) => {
            let number = text.strip_prefix("pid:").unwrap_or(text);
            if let Ok(pid) = number.parse() {
                return Host::of(pid);
            }
            let mut called: Vec<Host> = hosts()?.into_iter().filter(|host| host.is_called(text)).collect();
            match (called.pop(), called.len()) {
                (Some(host), 0) => Ok(host),
                (Some(_), more) => bail!("{} processes are called `{text}`; give a pid", more + 1),
                (None, _) => Err(error),
            }
        }
    }
}

fn facts_of(host: &Host) -> Facts {
    let executable =
        File::open(format!("/proc/{}/exe", living_thread(host.pid))).and_then(|file| elf::read(&file)).ok().flatten();
    let executable = executable.unwrap_or_default();
    let process = i32::try_from(living_thread(host.pid)).ok().and_then(|pid| Process::new(pid).ok());
    let status = process.as_ref().and_then(|process| process.status().ok());
    let mappings = mappings(host);
    let loaded = mappings.iter().any(|mapping| mapping.name.contains(AGENT_FILE_NAME));
    let kib = |value: Option<u64>| value.map(|kib| kib << 10);
    let affinity = status.as_ref().and_then(|status| status.cpus_allowed.as_ref());
    Facts {
        // Without build information it is still known to be one.
        go: executable.go.or_else(|| executable.is_go.then(elf::GoBuild::default)),
        environment: host.environment_all(),
        cgroup: cgroup::of(living_thread(host.pid)),
        affinity: affinity.map(|words| words.iter().map(|word| u64::from(word.count_ones())).sum()),
        machine_cpus: std::thread::available_parallelism().ok().map(|cpus| cpus.get() as u64),
        rss: kib(status.as_ref().and_then(|status| status.vmrss)),
        peak_rss: kib(status.as_ref().and_then(|status| status.vmhwm)),
        thp: fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok().and_then(|text| chosen(&text)),
        has_own_jemalloc: executable.has_jemalloc,
        agent: loaded.then(|| agent_facts(host)),
        preload_refusal: preload_refusal(host),
        mappings,
    }
}

fn agent_facts(host: &Host) -> Result<AgentFacts, Unreachable> {
    let unreachable = |obstacle, error: &anyhow::Error| {
        let reason = format!("{error:#}");
        let obstacle = if reason.starts_with("Permission denied") { Obstacle::Denied } else { obstacle };
        Unreachable { reason, obstacle }
    };
    let agent = Agent::new(Target::of_host(host).map_err(|error| unreachable(Obstacle::NoSocket, &error))?);
    let silent = |error: anyhow::Error| {
        let obstacle = if is_stopped(host.pid) { Obstacle::Stopped(host.pid) } else { Obstacle::Silent };
        unreachable(obstacle, &error)
    };
    // A host that is stopped costs seconds a question: the others wait until it has answered the first.
    let info = agent.info().map_err(silent)?;
    let background_thread = agent.mallctl("background_thread").ok().and_then(|value| value.as_bool());
    Ok(AgentFacts { info, stats: agent.stats().map_err(silent)?, background_thread })
}

fn preload_refusal(host: &Host) -> Option<String> {
    let preload = host.environment("LD_PRELOAD")?.to_string_lossy().into_owned();
    let agent = preload.split([':', ' ']).find(|path| path.contains(AGENT_FILE_NAME))?;
    let here = host.path_from_here(&PathBuf::from(agent));
    if !here.exists() {
        return Some(format!("{agent} does not exist in the process's file system"));
    }
    let exe = host.exe().context("no executable").ok()?;
    preload::refusal(&host.path_from_here(&exe), &here).ok().flatten()
}

/// Its mappings with their sizes; without the right to read sizes the mappings alone still tell what is loaded.
fn mappings(host: &Host) -> Vec<Mapping> {
    let read =
        |file: &str| fs::read(format!("/proc/{}/{file}", living_thread(host.pid))).ok().filter(|text| !text.is_empty());
    let text = read("smaps").or_else(|| read("maps")).unwrap_or_default();
    smaps::parse(&text).unwrap_or_default()
}

/// `always [madvise] never`
fn chosen(text: &str) -> Option<String> {
    text.split_whitespace().find_map(|word| Some(word.strip_prefix('[')?.strip_suffix(']')?.to_owned()))
}

fn text(findings: &[Finding], facts: &Facts, screen: &Screen) -> String {
    let mut out = String::new();
    for finding in findings {
        let style = match finding.severity {
            Severity::Info => Style::Strong,
            Severity::Warning => Style::Warning,
            Severity::Critical => Style::Bad,
        };
        let _ = writeln!(out, "{}: {}", screen.paint(style, finding.severity.name()), finding.id);
        for (name, text) in [("found", &finding.evidence), ("why", &finding.why), ("change", &finding.remedy)] {
            let _ = writeln!(out, "  {name:<7} {}", printable(text));
        }
        out.push('\n');
    }
    let looked = |known: bool, name: &'static str| if known { name } else { "" };
    let known: Vec<&str> = [
        looked(facts.cgroup.memory.is_some(), "memory limits"),
        looked(facts.cgroup.cpu.is_some(), "CPU limits"),
        looked(facts.go.is_some(), "Go's settings"),
        looked(!facts.mappings.is_empty(), "mappings"),
        looked(facts.agent_facts().is_some(), "the agent"),
    ]
    .into_iter()
    .filter(|name| !name.is_empty())
    .collect();
    let unread =
        if facts.mappings.is_empty() { "; not examined: allocators, whose mappings cannot be read" } else { "" };
    let count = match findings.len() {
        0 => "no fault".to_owned(),
        more => counted(more as u64, "finding"),
    };
    let _ = writeln!(
        out,
        "{count}; examined: {}{unread}",
        if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
    );
    out
}

#[cfg(test)]
mod tests {
    use super::{chosen, facts_of};
    use crate::target::Host;

    #[test]
    fn the_chosen_mode_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("always madvise never"), None);
    }

    #[test]
    fn facts_of_a_real_process() {
        let facts = facts_of(&Host::of(std::process::id()).unwrap());
        assert!(facts.go.is_none() && facts.agent.is_none());
        assert!(facts.rss.unwrap() > 1 << 20 && facts.affinity.unwrap() >= 1);
        let resident: u64 = facts.mappings.iter().map(|mapping| mapping.rss).sum();
        assert!(resident > 1 << 20, "sizes are bytes: {resident}");
        assert!(facts.has_library("libc.so").is_some());
    }
}
