//! `offheap merge IN… -o OUT`

use crate::exit::Outcome;
use crate::load::{Loaded, Options, Source, load_all, usual_value};
use crate::output;
use crate::view::value::Unit;
use anyhow::bail;
use offheap_symbolizer::formats::{Origin, pprof};
use offheap_symbolizer::profile::{Part, merge};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Arguments of `merge`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profiles to add up: of several processes, or Go and native ones of the same process
    #[arg(required = true, num_args = 2.., value_name = "IN")]
    inputs: Vec<Source>,
    /// pprof file to write; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// Read, add up, write.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.output.as_os_str() == "-" && std::io::stdout().is_terminal() {
        bail!("a pprof file is binary and standard output is a terminal; redirect it, or give a file with -o");
    }
    let loaded = load_all(&args.inputs, &args.options)?;
    let parts: Vec<Part<'_>> = loaded.iter().map(Loaded::part).collect();
    let merged = merge(&parts)?;
    for one in &loaded {
        let value = usual_value(&one.profile);
        let total = if one.profile.value_types.is_empty() { 0 } else { one.profile.total(value) };
        let unit = Unit::of(one.profile.value_types.get(value));
        let whose = match one.origin {
            Origin::Go => "on the Go heap, as of its last garbage collection",
            Origin::Native => "native",
            Origin::Unknown => "of unknown origin",
        };
        output::note(&format!("{}: {} {whose}{}", one.name(), unit.named(total.into()), one.taken()));
    }
    output::write(&args.output, &pprof::encode(&merged))?;
    let nothing = merged.samples.is_empty();
    if loaded.iter().any(|one| one.partial) {
        return Ok(Outcome::Partial);
    }
    Ok(if nothing { Outcome::Nothing } else { Outcome::Done })
}
