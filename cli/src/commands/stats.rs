//! `offheap stats TARGET|FILE`

use crate::exit::Outcome;
use crate::output;
use crate::reading::Reading;
use crate::view::amount::{bytes_or_na, count_or_na, percent_or_na, size_or_na};
use crate::view::screen::Screen;
use crate::view::table::{Cell, Table};
use offheap_wire::Stats;
use std::ffi::OsString;
use std::fmt::Write;

/// Arguments of `stats`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, a process name, or a file with the text or JSON of `malloc_stats_print` (`-` for standard input)
    #[arg(value_name = "TARGET|FILE")]
    source: OsString,
    /// Show the size classes
    #[arg(long)]
    bins: bool,
    /// Show the arenas
    #[arg(long)]
    arenas: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// End with 0 although a damaged report was read in part
    #[arg(long)]
    lenient: bool,
}

/// One reading.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut reading = Reading::of(&args.source)?.lenient(args.lenient);
    reading.notes.iter().for_each(|note| output::note(note));
    if args.json {
        reading.stats.schema = "offheap.stats/1".into();
        let mut text = serde_json::to_string_pretty(&reading.stats)?;
        text.push('\n');
        output::print(&text)?;
    } else {
        output::print(&text(&reading.stats, args, &output::screen()))?;
    }
    Ok(reading.outcome())
}

fn text(stats: &Stats, args: &Args, screen: &Screen) -> String {
    let mut table = Table::new().name("").number("bytes").number("").name("");
    for (name, value, meaning) in [
        ("allocated", stats.allocated, "asked for by the program and not freed; thread caches included"),
        ("active", stats.active, "pages that hold allocations"),
        ("metadata", stats.metadata, "the allocator's own structures"),
        ("resident", stats.resident, "pages of the allocator in memory"),
        ("mapped", stats.mapped, "active extents in the address space"),
        ("retained", stats.retained, "address space kept after unmapping; no memory"),
        ("tcache", stats.tcache, "freed by the program, held by thread caches"),
        ("dirty", stats.dirty, "unused pages, not yet given back"),
        ("muzzy", stats.muzzy, "unused pages, given back lazily"),
        ("rss", stats.rss, "resident set of the process"),
    ] {
        table.row([name, &bytes_or_na(value), &size_or_na(value), meaning].map(Cell::from));
    }
    let mut out = table.render(screen);
    let version = stats.jemalloc_version.as_deref().unwrap_or("unknown");
    let _ = writeln!(
        out,
        "\njemalloc {version}, {} arenas, pages of {} bytes",
        count_or_na(stats.narenas),
        count_or_na(stats.page_size)
    );
    if args.bins {
        out.push_str(&bins(stats, screen));
    }
    if args.arenas {
        out.push_str(&arenas(stats, screen));
    }
    out
}

fn bins(stats: &Stats, screen: &Screen) -> String {
    let mut table = Table::new();
    for heading in ["size", "regions", "slabs", "not full", "per slab", "slab size", "in use", "free", "used"] {
        table = table.number(heading);
    }
    for bin in &stats.bins {
        let regions = bin.curslabs.saturating_mul(bin.nregs);
        table.row(
            [
                bin.size.to_string(),
                bin.curregs.to_string(),
                bin.curslabs.to_string(),
                count_or_na(bin.nonfull_slabs),
                bin.nregs.to_string(),
                bin.slab_size.to_string(),
                size_or_na(Some(i128::from(bin.curregs) * i128::from(bin.size))),
                size_or_na(Some(crate::analysis::fragmentation::waste(bin))),
                percent_or_na((regions > 0).then(|| bin.curregs as f64 / regions as f64)),
            ]
            .map(Cell::from),
        );
    }
    let mut out = format!("\nSmall size classes\n{}", table.render(screen));
    if !stats.large.is_empty() {
        let mut table = Table::new().number("size").number("extents").number("in use");
        for class in &stats.large {
            let bytes = i128::from(class.size) * i128::from(class.curlextents);
            table.row([class.size.to_string(), class.curlextents.to_string(), size_or_na(Some(bytes))].map(Cell::from));
        }
        let _ = write!(out, "\nLarge size classes\n{}", table.render(screen));
    }
    out
}

fn arenas(stats: &Stats, screen: &Screen) -> String {
    let mut table = Table::new();
    for heading in
        ["arena", "threads", "small", "large", "active", "slab waste", "dirty", "muzzy", "resident", "retained"]
    {
        table = table.number(heading);
    }
    let mut table = table.name("");
    for arena in &stats.arenas {
        table.row(
            [
                arena.index.to_string(),
                count_or_na(arena.nthreads),
                size_or_na(arena.small_allocated),
                size_or_na(arena.large_allocated),
                size_or_na(arena.active),
                size_or_na(arena.slab_waste),
                size_or_na(arena.dirty),
                size_or_na(arena.muzzy),
                size_or_na(arena.resident),
                size_or_na(arena.retained),
                if arena.agent { "the agent's own".into() } else { String::new() },
            ]
            .map(Cell::from),
        );
    }
    format!("\nArenas\n{}", table.render(screen))
}

#[cfg(test)]
mod tests {
    use super::{Args, OsString, text};
    use crate::view::screen::Screen;
    use offheap_wire::{BinStats, Stats};

    #[test]
    fn what_is_unknown_is_not_zero() {
        let stats = Stats {
            allocated: Some(1536),
            bins: vec![BinStats {
                size: 64,
                nregs: 64,
                slab_size: 4096,
                curregs: 16,
                curslabs: 1,
                ..Default::default()
            }],
            ..Stats::default()
        };
        let args = Args { source: OsString::new(), bins: true, arenas: false, json: false, lenient: false };
        let text = text(&stats, &args, &Screen::default());
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("allocated").contains("1536  1.50 KiB"), "{text}");
        assert!(line("active").contains("n/a"), "{text}");
        assert!(text.contains("3.00 KiB  25.0%"), "{text}");
    }
}
