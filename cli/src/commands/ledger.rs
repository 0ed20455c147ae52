//! `offheap ledger TARGET`

use crate::analysis::ledger::Ledger;
use crate::analysis::verdict::{self, Verdict};
use crate::exit::Outcome;
use crate::go_endpoint::GoEndpoint;
use crate::interrupt::Interrupt;
use crate::output;
use crate::process_memory::{Reading, Skew, Subject, read_twice};
use crate::view::json;
use crate::view::ledger as view;
use crate::view::progress::Progress;
use crate::words::duration;
use crate::words::size::human;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Arguments of `ledger`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, or a process name; without the agent in it, native memory is not divided
    target: String,
    /// Statistics of the Go runtime: a URL (http://HOST:PORT/debug/pprof/heap, /debug/vars, /metrics), a saved page, or
    /// `auto` to ask the ports on which the target itself listens
    #[arg(long, value_name = "URL|FILE|auto")]
    go: Option<GoEndpoint>,
    /// Take a second reading after this time, to see what grows
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    interval: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    pid: u32,
    name: &'a str,
    #[serde(flatten)]
    ledger: &'a Ledger,
    /// The file or URL of the Go runtime's statistics.
    go_endpoint: Option<&'a str>,
    skew: Skew,
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// The reading before, with `--interval`.
    before: Option<&'a Ledger>,
}

/// Explain RSS.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let subject = Subject::of(&args.target, args.go.clone())?;
    let (before, now) = match args.interval {
        None => (None, subject.read()?),
        Some(interval) => {
            let _progress = Progress::start(format!("second reading after {}", duration::human(interval)));
            let interrupt = Interrupt::hold();
            read_twice(&subject, || interrupt.wait(interval))?
        }
    };
    let earlier = before.as_ref().map(|before| (before.evidence(), now.at.duration_since(before.at)));
    let verdict = verdict::judge(now.evidence(), earlier);
    if args.json {
        let document = Document {
            pid: subject.pid,
            name: &subject.name,
            ledger: &now.ledger,
            go_endpoint: now.go.as_ref().map(|go| go.from.as_str()),
            skew: now.skew,
            verdict: &verdict,
            before: before.as_ref().map(|before| &before.ledger),
        };
        output::print(&json::document("ledger", &document)?)?;
    } else {
        output::print(&text(&subject, before.as_ref(), &now, &verdict))?;
    }
    Ok(Outcome::Done)
}

fn text(subject: &Subject, before: Option<&Reading>, now: &Reading, verdict: &Verdict) -> String {
    let screen = output::screen();
    let mut out = format!("process {} ({}): RSS {}\n\n", subject.pid, subject.name, human(now.ledger.rss.into()));
    out.push_str(&view::table(&now.ledger, before.map(|before| &before.ledger), &screen));
    out.push('\n');
    out.push_str(&view::beside(&now.ledger));
    out.push_str(&readings(now));
    if let Some(why) = subject.without_agent() {
        let _ = writeln!(out, "no agent: {why}");
    }
    for note in &now.ledger.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out.push('\n');
    out.push_str(&view::verdict(verdict, &screen));
    out
}

/// When and where the readings were taken.
fn readings(now: &Reading) -> String {
    let mut out = String::from("readings:");
    let skew = &now.skew;
    if let Some(go) = &now.go {
        let _ = match skew.go_ms {
            Some(ms) => write!(out, " Go {ms:.0} ms before the mappings ({}),", go.from),
            None => write!(out, " Go from {}, of another time,", go.from),
        };
    }
    if let Some(ms) = skew.agent_ms {
        let _ = write!(out, " agent {ms:.0} ms before the mappings,");
    }
    let _ = writeln!(
        out,
        " mappings in {:.0} ms; RSS moved by {} meanwhile",
        skew.mappings_ms,
        human(skew.rss_moved.into())
    );
    out
}
