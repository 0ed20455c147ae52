//! `offheap record TARGET -o FILE`

use crate::client::Agent;
use crate::exit::Outcome;
use crate::go_endpoint::GoEndpoint;
use crate::interrupt::Interrupt;
use crate::observe::{End, Header, Line, Observer};
use crate::output;
use crate::target::has_ended;
use crate::words::duration;
use crate::words::text::counted;
use anyhow::{Context, anyhow};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Sites kept with each profile.
const SITES: usize = 40;

/// Arguments of `record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, or a process name
    target: OsString,
    /// Where to write the recording, one JSON document a line; `-` for standard output. A file that is there already is
    /// kept as FILE.1, FILE.2 …
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Time between two observations
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    every: Duration,
    /// Stop after this time; without it: when the process ends, or on Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    record_for: Option<Duration>,
    /// Statistics of the Go runtime: a URL, or `auto` to ask the ports on which the target itself listens
    #[arg(long, value_name = "URL|auto")]
    go: Option<GoEndpoint>,
    /// Time between two profiles, when profiling is on; 0 for none
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    profile_every: Duration,
}

/// Observe until told to stop.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let observer = Observer::new(Agent::of(&args.target)?, args.go.clone());
    let interrupt = Interrupt::hold();
    let header = header(&observer, args.every)?;
    keep_earlier(&args.output)?;
    let mut out = open(&args.output)?;
    let mut write = |line: Line| -> anyhow::Result<()> {
        out.write_all(&line.encode()?).and_then(|()| out.flush()).map_err(|error| explain(&args.output, error))
    };
    write(Line::Header(header))?;

    let started = Instant::now();
    let mut profiled: Option<Instant> = None;
    let mut count = 0_u64;
    let reason = loop {
        let due = started + args.every.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        let Ok(mut observation) = observer.observe() else {
            if count == 0 {
                // Nothing was seen yet: the reason is the result.
                return Err(observer.observe().err().context("the process ended before its first observation")?);
            }
            break ended(&observer);
        };
        let recorded = observation.profile.as_ref().is_some_and(|profile| profile.recording_since.is_some());
        let is_due = profiled.is_none_or(|last| last.elapsed() >= args.profile_every);
        if recorded && is_due && !args.profile_every.is_zero() {
            // Another dump may be under way; the next observation tries again.
            if let Ok(sites) = observer.sites(SITES) {
                observation.sites = sites;
                profiled = Some(Instant::now());
            }
        }
        write(Line::Observation(Box::new(observation)))?;
        count += 1;
        let until = args.record_for.map(|time| started + time);
        let next = due + args.every;
        if until.is_some_and(|until| next > until) {
            break "the time is over";
        }
        if interrupt.wait(next.saturating_duration_since(Instant::now())) {
            break "interrupted";
        }
    };
    let taken_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    write(Line::End(End { taken_at, reason: reason.to_owned() }))?;
    output::note(&format!("{}: {}, {reason}", args.output.display(), counted(count, "observation")));
    Ok(Outcome::Done)
}

fn ended(observer: &Observer) -> &'static str {
    // The threads of a process that is killed end one by one, the agent's perhaps long before the last.
    const PATIENCE: Duration = Duration::from_secs(2);
    let Ok(pid) = observer.agent().pid() else { return "the process ended" };
    let noticed = Instant::now();
    while !has_ended(pid) {
        if noticed.elapsed() > PATIENCE {
            return "the agent answers no more";
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    "the process ended"
}

fn header(observer: &Observer, every: Duration) -> anyhow::Result<Header> {
    let info = observer.agent().info()?;
    Ok(Header {
        schema: "offheap.record/1".into(),
        pid: info.pid,
        exe: info.exe,
        started_at: info.started_at,
        agent_version: info.agent_version,
        jemalloc_version: info.jemalloc_version,
        every: every.as_secs_f64(),
    })
}

/// An earlier recording under the same name is what one wants to compare with: it is renamed, and nothing is lost.
fn keep_earlier(path: &Path) -> anyhow::Result<()> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    if path.as_os_str() == "-" || !metadata.is_file() || metadata.len() == 0 {
        return Ok(());
    }
    let place = std::fs::canonicalize(path).map_err(|error| explain(path, error))?;
    let numbered = |number: u32| {
        let mut name = place.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    // A link that leads nowhere is in use, too.
    let free = (1..=u32::MAX).map(numbered).find(|kept| kept.symlink_metadata().is_err());
    let kept = free.with_context(|| format!("{}: no free name for the earlier recording", path.display()))?;
    std::fs::rename(&place, &kept).map_err(|error| explain(path, error))?;
    output::note(&format!("{}: what stood there is kept as {}", path.display(), kept.display()));
    Ok(())
}

/// Written in place: the recording of a process that is about to die is worth having up to its last line.
fn open(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdout()));
    }
    let file = File::create(path).map_err(|error| explain(path, error))?;
    Ok(Box::new(file))
}

/// As for other files, but what stands in a recording already is of use.
fn explain(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::StorageFull => {
            anyhow!("{}: the disk is full; `offheap report` reads what was recorded until then", path.display())
        }
        _ => output::explain(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::keep_earlier;
    use std::fs;

    #[test]
    fn earlier_recordings_are_kept_under_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
            let mut names: Vec<_> = entries.map(|e| (e.file_name(), fs::read_to_string(e.path()).unwrap())).collect();
            names.sort();
            names.into_iter().map(|(name, text)| format!("{}={text}", name.display())).collect::<Vec<_>>()
        };
        keep_earlier(&path("a.rec")).unwrap();
        for text in ["one", "two", "three"] {
            keep_earlier(&path("a.rec")).unwrap();
            fs::write(path("a.rec"), text).unwrap();
        }
        assert_eq!(names(), ["a.rec=three", "a.rec.1=one", "a.rec.2=two"]);
        // The link stays, what it leads to moves.
        std::os::unix::fs::symlink(path("a.rec"), path("link")).unwrap();
        keep_earlier(&path("link")).unwrap();
        assert!(path("a.rec.3").exists() && path("link").symlink_metadata().is_ok() && !path("a.rec").exists());
        // An empty file, as `mktemp` makes, and what is no file hold nothing.
        fs::write(path("empty"), "").unwrap();
        keep_earlier(&path("empty")).unwrap();
        keep_earlier(folder.path()).unwrap();
        assert!(path("empty").exists() && !path("empty.1").exists());
    }
}
