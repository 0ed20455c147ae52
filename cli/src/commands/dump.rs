//! `offheap dump TARGET -o FILE`

use crate::capture::{capture, capture_raw_frames};
use crate::client::Agent;
use crate::exit::Outcome;
use crate::interrupt::Interrupt;
use crate::output;
use crate::view::amount::percent_or_na;
use crate::view::progress::Progress;
use crate::words::text::counted;
use crate::words::{duration, size};
use offheap_symbolizer::profile::Profile;
use offheap_symbolizer::{SymbolizeOptions, formats};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `dump`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, or a process name
    target: OsString,
    /// Where to write the profile; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write jemalloc's own `heap_v2` text instead of a pprof protobuf
    #[arg(long)]
    raw: bool,
    /// Record for this long first: start, wait (Ctrl-C ends the wait, not the dump), dump, stop
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    record_for: Option<Duration>,
    /// With --for: mean bytes between samples, as a power of two
    #[arg(long, value_name = "LG", requires = "record_for", value_parser = clap::value_parser!(u32).range(0..=40))]
    lg_sample: Option<u32>,
    /// Folder with debug files or images; may be repeated
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
    /// Keep the allocator's own frames at the leaf
    #[arg(long)]
    raw_frames: bool,
}

/// Dump, and name the frames.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let agent = Agent::of(&args.target)?;
    let Some(time) = args.record_for else { return write(&agent, args) };

    let was_active = agent.info()?.profile.active;
    let interrupt = Interrupt::hold();
    agent.profile_start(args.lg_sample)?;
    let progress = Progress::start(format!("recording for {} (Ctrl-C dumps now)", duration::human(time)));
    if interrupt.wait(time) {
        progress.say("dumping what was recorded so far");
    }
    drop(progress);
    let written = write(&agent, args);
    // Profiling that somebody else had started goes on.
    let stopped = if was_active { Ok(()) } else { agent.profile_stop().map(drop) };
    drop(interrupt);
    let outcome = written?;
    stopped?;
    Ok(outcome)
}

fn write(agent: &Agent, args: &Args) -> anyhow::Result<Outcome> {
    if args.raw {
        let mut dump = Vec::new();
        agent.heap(&mut dump)?;
        output::write(&args.output, &dump)?;
        return Ok(Outcome::Done);
    }
    let progress = Progress::start("dumping and naming frames");
    let options = SymbolizeOptions { symbols: args.symbols.clone(), ..SymbolizeOptions::default() };
    let take = if args.raw_frames { capture_raw_frames } else { capture };
    let parsed = take(agent, options)?;
    output::write(&args.output, &formats::pprof::encode(&parsed.profile))?;
    drop(progress);
    parsed.notes.iter().for_each(|note| output::note(note));
    parsed.damage.iter().for_each(|damage| output::note(&damage.what));
    if parsed.profile.samples.is_empty() {
        output::note(&why_empty(agent));
        return Ok(Outcome::Nothing);
    }
    output::note(&format!("{}: {}", args.output.display(), summary(&parsed.profile)));
    Ok(if parsed.damage.is_empty() { Outcome::Done } else { Outcome::Partial })
}

fn why_empty(agent: &Agent) -> String {
    let Ok(info) = agent.info() else { return "no samples".into() };
    let state = info.profile;
    let rate = 1_u64.checked_shl(state.lg_sample).unwrap_or(u64::MAX);
    if !state.available {
        "no samples: jemalloc runs with prof:false; start the process with MALLOC_CONF=prof:true".into()
    } else if state.active || state.recording_since.is_some() {
        format!(
            "no samples: nothing that is still allocated was sampled, at one sample in {} on average",
            size::human(rate.into())
        )
    } else {
        "no samples: profiling was never started; run `offheap profile start`, or dump with --for 30s".into()
    }
}

/// `16.0 MiB in 34 stacks, 99.8% of the bytes with a name`
fn summary(profile: &Profile) -> String {
    let index = profile.value_index("inuse_space").unwrap_or_default();
    let value = |sample: &offheap_symbolizer::profile::Sample| sample.values.get(index).copied().unwrap_or_default();
    let total: i64 = profile.samples.iter().map(value).sum();
    // Not the lines of the leaf: an address that nothing is known of has one too, with the address as its name.
    let unnamed = profile.health(index).map(|health| health.unnamed_leaf);
    format!(
        "{} in {}, {} of the bytes with a name",
        size::human(total.into()),
        counted(profile.samples.len() as u64, "stack"),
        percent_or_na(unnamed.map(|unnamed| 1.0 - unnamed))
    )
}

#[cfg(test)]
mod tests {
    use super::{Args, run, summary};
    use crate::client::test_server::TestServer;
    use crate::exit::Outcome;
    use offheap_symbolizer::formats;
    use offheap_symbolizer::profile::{Function, FunctionId, Line, Location, LocationId, Profile, Sample, ValueType};

    #[test]
    fn a_stack_counts_as_named_by_its_leaf() {
        let sample = |location, bytes| Sample {
            locations: vec![LocationId(location)],
            values: vec![1, bytes],
            ..Sample::default()
        };
        let kind = |kind: &str| ValueType { kind: kind.into(), unit: "bytes".into() };
        let profile = Profile {
            value_types: vec![kind("inuse_objects"), kind("inuse_space")],
            samples: vec![sample(0, 3072), sample(1, 1024)],
            functions: vec![Function { name: "main.handle".into(), ..Function::default() }],
            locations: vec![
                Location { lines: vec![Line { function: FunctionId(0), line: 0, column: 0 }], ..Location::default() },
                Location::default(),
            ],
            ..Profile::default()
        };
        assert_eq!(summary(&profile), "4.00 KiB in 2 stacks, 75.0% of the bytes with a name");
    }

    const INFO: &str = r#"{"schema":"offheap.info/1","agent_version":"0","jemalloc_version":"5.3.1","pid":1,"exe":"/x",
        "started_at":null,"socket":"s","malloc_is_ours":true,"jemalloc":{"config":{},"opt":{}},
        "profile":{"available":true,"active":false,"lg_sample":19,"recording_since":null,"prof_unbias":false},
        "agent":{"own_bytes":0,"stacks":0,"stacks_with_go":0,"stack_ends":{},"samples_dropped":0,"samples_live":0,
        "requests":0,"rejected":0,"dumps":0}}"#;
    const STATE: &str = r#"{"available":true,"active":true,"lg_sample":19,"recording_since":1.0,"prof_unbias":false}"#;

    /// A host that answers with this dump, and the requests it saw that change something or dump.
    fn host(dump: &'static str) -> (TestServer, std::sync::mpsc::Receiver<String>) {
        let (sender, requests) = std::sync::mpsc::channel();
        let server = TestServer::start(move |method, path| {
            let answer = match path {
                "/v1/info" => return (200, INFO.into()),
                "/v1/profile/samples" => return (404, String::new()),
                "/v1/profile/heap" => dump,
                _ => STATE,
            };
            let _ = sender.send(format!("{method} {path}"));
            (200, answer.into())
        });
        (server, requests)
    }

    fn args(server: &TestServer, output: &std::path::Path, words: &[&str]) -> Args {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let target = server.path();
        let line = ["dump", &target, "-o", output.to_str().unwrap()].into_iter().chain(words.iter().copied());
        <Line as clap::Parser>::parse_from(line).args
    }

    #[test]
    fn a_dump_for_a_while_starts_dumps_and_stops() {
        let (server, requests) = host(include_str!("../../../testdata/field/h01-plain.heap"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.pb.gz");
        let args = args(&server, &file, &["--for", "1ms", "--lg-sample", "12"]);
        assert_eq!(run(&args).unwrap(), Outcome::Done);
        let profile = formats::parse(&std::fs::read(&file).unwrap()).unwrap().profile;
        assert!(!profile.samples.is_empty() && profile.time_nanos > 0);
        assert_eq!(
            requests.try_iter().collect::<Vec<_>>(),
            ["POST /v1/profile/start?lg_sample=12", "GET /v1/profile/heap", "POST /v1/profile/stop"]
        );
    }

    #[test]
    fn a_raw_dump_is_the_agent_s_text() {
        let text = include_str!("../../../testdata/field/h01-plain.heap");
        let (server, _requests) = host(text);
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(run(&args(&server, file.path(), &["--raw"])).unwrap(), Outcome::Done);
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
    }

    #[test]
    fn a_dump_without_samples_is_written_and_says_so() {
        let (server, _requests) = host(include_str!("../../../testdata/field/h03-no-stacks.heap"));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(run(&args(&server, file.path(), &[])).unwrap(), Outcome::Nothing);
        assert!(formats::parse(&std::fs::read(file.path()).unwrap()).unwrap().profile.samples.is_empty());
    }
}
