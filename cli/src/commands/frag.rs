//! `offheap frag TARGET|STATS [PROFILE]`

use crate::analysis::fragmentation::{self, Arena, Class, Fragmentation, Large, Limits};
use crate::analysis::occupancy::{Occupancy, occupancy};
use crate::analysis::tenants::{Tenant, tenants};
use crate::exit::{Outcome, WrongUsage};
use crate::load::{Options, Source, load_last};
use crate::output;
use crate::reading::Reading;
use crate::view::fragmentation::Report;
use crate::view::progress::Progress;
use crate::view::{heap_map, json};
use anyhow::bail;
use offheap_wire::BinStats;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Arguments of `frag`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, a process name, or a file with the text or JSON of `malloc_stats_print` (`-` for standard input)
    #[arg(value_name = "TARGET|STATS")]
    source: OsString,
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
    /// Rows of each table, 0 for all
    #[arg(short = 'n', long, alias = "n", default_value_t = 12, value_name = "N")]
    rows: usize,
    /// Draw the occupancy of every slab of a live target, one cell a slab; with --json the histogram stands there too
    #[arg(long, value_name = "X.svg")]
    map: Option<PathBuf>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    heap_map: Option<&'a Occupancy>,
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
    let map = args.map.as_deref().map(|path| draw_map(path, args, &reading)).transpose()?;
    let (classes, large, arenas) = (&classes[..], &large[..], &arenas[..]);
    let text = if args.json {
        json::document(
            "frag",
            &Document { parts: &parts, classes, large, arenas, sites: tenants, heap_map: map.as_ref() },
        )?
    } else {
        let report = Report {
            parts: &parts,
            classes,
            large,
            arenas,
            tenants,
            shown: if args.rows == 0 { usize::MAX } else { args.rows },
        };
        report.render(&output::screen())
    };
    output::print(&text)?;
    Ok(if partial { Outcome::Partial } else { reading.outcome() })
}

/// Scan, draw, sum up.
fn draw_map(path: &Path, args: &Args, reading: &Reading) -> anyhow::Result<Occupancy> {
    let Some(host) = &reading.host else {
        bail!(WrongUsage(format!("{}: a saved report; --map asks a live target for its slabs", args.source.display())));
    };
    let progress = Progress::start("looking at every slab");
    let map = host.agent().heap_map()?;
    drop(progress);
    let sum = occupancy(&map);
    output::write(path, heap_map::render(&map, &sum, &format!("Slabs of {}", args.source.display())).as_bytes())?;
    if path.as_os_str() != "-" {
        output::note(&format!("{}: {} slabs", path.display(), sum.slabs));
    }
    if sum.truncated {
        output::note("the heap map is not whole: the scan reached its bound of time or slabs");
    }
    Ok(sum)
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
        output::note(&format!("{}: no profile of live objects, so it names nobody", loaded.name()));
    }
    Ok((found, loaded.partial))
}
