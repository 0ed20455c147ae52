//! `offheap convert IN… -o OUT`

use crate::exit::{Outcome, WrongUsage};
use crate::load::{Options, Select, Source, load_last};
use crate::output;
use crate::view::{folded, profile_json};
use anyhow::bail;
use offheap_symbolizer::formats::pprof;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Arguments of `convert`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profiles to read: files, `-`, URLs, or pid:N; of each process the last one counts, several processes are added up
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<Source>,
    /// File to write; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Format to write; without it, told from the name of OUT (.folded, .json; else pprof)
    #[arg(long, value_enum)]
    to: Option<Format>,
    /// Value of folded stacks and of the JSON total
    #[arg(long, value_name = "TYPE")]
    sample: Option<String>,
    /// Keep the threads of a dump apart: a label, in folded stacks the outermost frame
    #[arg(long)]
    by_thread: bool,
    #[command(flatten)]
    options: Options,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// gzip-compressed protobuf, as `go tool pprof` reads it
    Pprof,
    /// One line a stack, as flame graph tools read it
    Folded,
    /// Every sample with its frames spelled out
    Json,
}

impl Format {
    fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("folded" | "collapsed" | "txt") => Self::Folded,
            Some("json") => Self::Json,
            _ => Self::Pprof,
        }
    }
}

/// The command that writes what the name of the output promises, where it is another one.
fn drawing(output: &Path) -> Option<&'static str> {
    match output.extension()?.to_str()? {
        "svg" => Some("flame"),
        "html" => Some("report"),
        _ => None,
    }
}

/// Read, name, write.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    if args.to.is_none()
        && let Some(command) = drawing(&args.output)
    {
        bail!(WrongUsage(format!(
            "{}: convert draws nothing; `offheap {command} … -o` does, or say --to for what the file is to be",
            args.output.display()
        )));
    }
    let format = args.to.unwrap_or_else(|| Format::of_name(&args.output));
    if format == Format::Pprof && args.output.as_os_str() == "-" && std::io::stdout().is_terminal() {
        bail!("a pprof file is binary and standard output is a terminal; redirect it, or give a file with -o");
    }
    let mut options = args.options;
    options.parse.by_thread = args.by_thread;
    let loaded = load_last(&args.inputs, &options)?;
    if options.verbose {
        output::report(&loaded.report.to_string());
    }
    let profile = &loaded.profile;
    let value = Select { sample: args.sample, ..Default::default() }.value(profile)?;
    match format {
        Format::Pprof => output::write(&args.output, &pprof::encode(profile))?,
        Format::Folded => output::write(&args.output, folded::lines(profile, value, args.by_thread).as_bytes())?,
        Format::Json => {
            output::write_with(&args.output, |mut to: &mut dyn Write| profile_json::write(profile, value, &mut to))?;
        }
    }
    Ok(loaded.outcome(loaded.profile.samples.is_empty()))
}
