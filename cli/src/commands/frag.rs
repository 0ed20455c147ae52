//! `offheap frag TARGET|STATS [PROFILE]`

use crate::analysis::fragmentation::{self, Arena, Class, Fragmentation, Large, Limits};
use crate::analysis::tenants::{Tenant, tenants};
use crate::exit::Outcome;
use crate::load::{Options, Source, load_last};
use crate::output;
use crate::reading::Reading;
use crate::view::fragmentation::Report;
use crate::view::json;
use offheap_wire::BinStats;
use serde::Serialize;

/// Arguments of `frag`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, a process name, or a file with the text or JSON of `malloc_stats_print` (`-` for standard input)
    #[arg(value_name = "TARGET|STATS")]
    source: String,
    /// Profile of the same process, to name the sites that live in the size classes; a live target with profiling is
    /// asked itself
    #[arg(value_name = "PROFILE")]
    profiles: Vec<Source>,
    /// Do not ask a live target for its samples
    #[arg(long, conflicts_with = "profiles")]
    no_sites: bool,
    /// Index above which the heap is called fragmented
    #[arg(long, default_value_t = Limits::default().index, value_name = "RATIO")]
    index: f64,
    /// Rows of each table
    #[arg(short, long, default_value_t = 12, value_name = "COUNT")]
    n: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    parts: &'a Fragmentation,
    classes: &'a [Class],
    large: &'a [Large],
    arenas: &'a [Arena],
    /// Null without a profile; an estimate that adds up to the slab waste.
    sites: Option<&'a [Tenant]>,
}

/// Measure the fragmentation of one reading.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let reading = Reading::of(&args.source)?.lenient(args.options.lenient);
    reading.notes.iter().for_each(|note| output::note(note));
    let limits = Limits { index: args.index, ..Limits::default() };
    let stats = &reading.stats;
    let parts = fragmentation::assess(stats, limits);
    let classes = fragmentation::classes(&stats.bins);
    let large = fragmentation::large(&stats.large);
    let arenas = fragmentation::arenas(&stats.arenas);
    let (tenants, partial) = sites(args, &reading, &stats.bins)?;
    let tenants = tenants.as_deref();
    let (classes, large, arenas) = (&classes[..], &large[..], &arenas[..]);
    let text = if args.json {
        json::document("frag", &Document { parts: &parts, classes, large, arenas, sites: tenants })?
    } else {
        let report = Report { parts: &parts, classes, large, arenas, tenants, shown: args.n };
        report.render(&output::screen())
    };
    output::print(&text)?;
    Ok(if partial { Outcome::Partial } else { reading.outcome() })
}

/// The sites, and whether their profile was damaged.
fn sites(args: &Args, reading: &Reading, bins: &[BinStats]) -> anyhow::Result<(Option<Vec<Tenant>>, bool)> {
    let live = reading.host.as_ref().filter(|_| args.profiles.is_empty() && !args.no_sites);
    let sources = match live {
        Some(host) if host.is_recorded() => vec![Source::Process(args.source.clone())],
        Some(_) => {
            output::note(
                "profiling is not recorded: `offheap profile start` first, to see who lives in the size classes",
            );
            return Ok((None, false));
        }
        None if args.profiles.is_empty() => return Ok((None, false)),
        None => args.profiles.clone(),
    };
    let mut options = args.options.clone();
    options.parse.by_size = true;
    let loaded = load_last(&sources, &options)?;
    let found = tenants(bins, &loaded.profile);
    if found.is_none() {
        output::note(&format!("{}: no profile of live objects, so it names nobody", loaded.source));
    }
    Ok((found, loaded.partial))
}
