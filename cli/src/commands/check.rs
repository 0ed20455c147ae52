//! `offheap check TARGET|STATS`

use crate::analysis::check::{Clock, Memory, Remembered, Sample, Thresholds, Verdict, judge_once, watch};
use crate::cgroup;
use crate::client::Agent;
use crate::exit::Outcome;
use crate::go_endpoint::GoEndpoint;
use crate::input::Purpose;
use crate::interrupt::Interrupt;
use crate::output;
use crate::reading::{self, Reading};
use crate::view::json;
use crate::words::{duration, size};
use anyhow::Context;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes, as monitoring plugins have them: 0 OK, 1 WARNING (HighMemoryFragmentation), \
    2 CRITICAL (GoHeapToRssMismatch), 3 UNKNOWN (could not be measured, wrong usage).")]
pub(crate) struct Args {
    /// A pid, a socket, a process name, or a file with the text or JSON of `malloc_stats_print` (`-` for standard input)
    #[arg(value_name = "TARGET|STATS")]
    source: OsString,
    /// WARNING when the fragmentation index is above
    #[arg(long, default_value_t = Thresholds::default().index, value_parser = Thresholds::parse_index, value_name = "RATIO")]
    index: f64,
    /// … and RSS is above
    #[arg(long, value_parser = size::parse, default_value = "1.5GB", value_name = "SIZE")]
    min_rss: u64,
    /// Go heap of the process, for GoHeapToRssMismatch: a saved page, a URL (http://HOST:PORT), or `auto` to ask the ports
    /// that the process listens on
    #[arg(long, value_name = "FILE|URL|auto")]
    go: Option<GoEndpoint>,
    /// CRITICAL when RSS / Go heap in use is above
    #[arg(long, default_value_t = Thresholds::default().go_ratio, value_parser = Thresholds::parse_ratio, value_name = "RATIO")]
    go_ratio: f64,
    /// … and RSS is above
    #[arg(long, value_parser = size::parse, default_value = "2GB", value_name = "SIZE")]
    go_min_rss: u64,
    /// Both for this long; by default 5m, and 10m for the Go heap. 0 judges one reading
    #[arg(long = "for", value_parser = duration::parse, value_name = "TIME")]
    hold: Option<Duration>,
    /// Pause between readings while a condition holds
    #[arg(long, value_parser = duration::parse, default_value = "15s", value_name = "TIME")]
    every: Duration,
    /// Make one reading and remember in this file since when a condition holds, instead of waiting
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Judge, print one line, end with the code of the state. Whatever goes wrong is UNKNOWN.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let thresholds = args.thresholds();
    let verdict = args.verdict(&thresholds).unwrap_or_else(|error| Verdict::failed(format!("{error:#}")));
    let text = if args.json { json::document("check", &verdict)? } else { verdict.line(&thresholds) };
    output::print(&text)?;
    Ok(Outcome::Code(verdict.state.exit_code()))
}

impl Args {
    fn thresholds(&self) -> Thresholds {
        let default = Thresholds::default();
        Thresholds {
            index: self.index,
            min_rss: self.min_rss,
            go_ratio: self.go_ratio,
            go_min_rss: self.go_min_rss,
            index_for: self.hold.unwrap_or(default.index_for),
            go_for: self.hold.unwrap_or(default.go_for),
            ..default
        }
    }

    fn verdict(&self, thresholds: &Thresholds) -> anyhow::Result<Verdict> {
        if reading::is_file(&self.source, Purpose::Statistics)? {
            // A report is one moment: nothing will change by waiting.
            let reading = Reading::of(&self.source)?;
            reading.notes.iter().for_each(|note| output::note(note));
            let go_in_use = self.go_in_use(None);
            let sample = Sample { stats: reading.stats, go_in_use, ..Sample::default() };
            let now = Thresholds { index_for: Duration::ZERO, go_for: Duration::ZERO, ..*thresholds };
            return Ok(judge_once(Duration::ZERO, &now, &mut Remembered::default(), &sample));
        }
        if let Some(path) = &self.state {
            return self.remembering(path, thresholds);
        }
        let mut clock = Wall { interrupt: Interrupt::hold(), begin: Instant::now() };
        Ok(watch(&mut clock, thresholds, self.every, || self.sample().map_err(|error| format!("{error:#}"))))
    }

    fn remembering(&self, path: &Path, thresholds: &Thresholds) -> anyhow::Result<Verdict> {
        let agent = Agent::of(&self.source)?;
        let key = format!("{} {}", self.source.display(), agent.pid()?);
        let mut memory = load(path)?;
        // Only this process: the memories of those that have ended go.
        let mine =
            |other: &String| other.rsplit_once(' ').is_some_and(|(source, _)| source == self.source.to_string_lossy());
        let mut remembered = memory.targets.remove(&key).unwrap_or_default();
        memory.targets.retain(|other, _| !mine(other));
        let verdict = judge_once(unix_time(), thresholds, &mut remembered, &self.sample()?);
        memory.targets.insert(key, remembered);
        output::write(path, &serde_json::to_vec(&memory)?)?;
        Ok(verdict)
    }

    fn sample(&self) -> anyhow::Result<Sample> {
        let agent = Agent::of(&self.source)?;
        let stats = agent.stats()?;
        let pid = agent.pid().ok();
        let working_set = pid.and_then(|pid| cgroup::of(pid).memory?.working_set());
        Ok(Sample { stats, go_in_use: self.go_in_use(pid), working_set })
    }

    /// What was asked for and cannot be read is unknown, which is told apart from what nobody asked for.
    fn go_in_use(&self, pid: Option<u32>) -> Option<Result<u64, String>> {
        let endpoint = self.go.as_ref()?;
        if pid.is_none() && *endpoint == GoEndpoint::Auto {
            return Some(Err("`auto` asks the ports of a live process; give a file or a URL".into()));
        }
        let answer = endpoint.read(pid.unwrap_or_default());
        Some(answer.map(|answer| answer.memory.heap_inuse).map_err(|error| format!("{error:#}")))
    }
}

fn load(path: &Path) -> anyhow::Result<Memory> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: not a state file of `offheap check`; remove it", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Memory::default()),
        Err(error) => Err(error).with_context(|| format!("{}: cannot be read", path.display())),
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Real time, which Ctrl-C cuts short.
struct Wall {
    interrupt: Interrupt,
    begin: Instant,
}

impl Clock for Wall {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn wait(&mut self, duration: Duration) -> bool {
        self.interrupt.wait(duration)
    }
}
