//! `offheap frag TARGET|STATS`

use crate::analysis::fragmentation::{self, Class, Fragmentation, Limits, Verdict};
use crate::exit::Outcome;
use crate::output;
use crate::reading::Reading;
use crate::view::amount::{bytes_or_na, count_or_na, percent_or_na, size_or_na};
use crate::view::json;
use crate::view::screen::{Screen, Style};
use crate::view::table::{Cell, Table};
use serde::Serialize;
use std::fmt::Write;

/// Arguments of `frag`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, a process name, or a file with the text or JSON of `malloc_stats_print` (`-` for standard input)
    #[arg(value_name = "TARGET|STATS")]
    source: String,
    /// Index above which the heap is called fragmented
    #[arg(long, default_value_t = Limits::default().index, value_name = "RATIO")]
    index: f64,
    /// Size classes to show
    #[arg(short, long, default_value_t = 12, value_name = "COUNT")]
    n: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// End with 0 although a damaged report was read in part
    #[arg(long)]
    lenient: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    parts: &'a Fragmentation,
    classes: &'a [Class],
}

/// Measure the fragmentation of one reading.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let reading = Reading::of(&args.source)?.lenient(args.lenient);
    reading.notes.iter().for_each(|note| output::note(note));
    let limits = Limits { index: args.index, ..Limits::default() };
    let parts = fragmentation::assess(&reading.stats, limits);
    let classes = fragmentation::classes(&reading.stats.bins);
    if args.json {
        output::print(&json::document("frag", &Document { parts: &parts, classes: &classes })?)?;
    } else {
        output::print(&text(&parts, &classes, args.n, &output::screen()))?;
    }
    Ok(reading.outcome())
}

fn text(parts: &Fragmentation, classes: &[Class], shown: usize, screen: &Screen) -> String {
    let style = match parts.verdict {
        Verdict::Ok => Style::Good,
        Verdict::Fragmented => Style::Bad,
        Verdict::Unreliable | Verdict::Unknown => Style::Warning,
    };
    let index = parts.index.map_or_else(|| "n/a".to_owned(), |index| format!("{index:.3}"));
    let mut out = format!("fragmentation index {index}: {}\n", screen.paint(style, parts.verdict.name()));
    for reason in &parts.reasons {
        let _ = writeln!(out, "  {reason}");
    }
    out.push('\n');
    out.push_str(&named_numbers(parts, screen));
    if !classes.is_empty() {
        out.push('\n');
        out.push_str(&class_table(classes, shown, screen));
    }
    out
}

fn named_numbers(parts: &Fragmentation, screen: &Screen) -> String {
    let mut table = Table::new().name("").number("bytes").number("").name("");
    let mut row = |name: &str, bytes: Option<i128>, meaning: &str| {
        table.row([name, &bytes_or_na(bytes), &size_or_na(bytes), meaning].map(Cell::from));
    };
    row("allocated", parts.allocated.map(i128::from), "asked for and not freed, thread caches included");
    row("active", parts.active.map(i128::from), "pages that hold them; index = 1 - allocated/active");
    row(
        "slab waste",
        parts.slab_waste.map(i128::from),
        "free regions between live objects; only code changes it: lifetimes, pools, fewer size classes",
    );
    row(
        "large padding",
        parts.large_padding.map(i128::from),
        "large allocations rounded up to pages; MALLOC_CONF=cache_oblivious:false saves a page each",
    );
    row(
        "cached",
        parts.cached.map(i128::from),
        "freed, kept by thread caches; fewer threads, or MALLOC_CONF=tcache_max:4096",
    );
    row(
        "unreturned",
        parts.unreturned.map(i128::from),
        "unused dirty and muzzy pages; `offheap purge`, shorter decay times, background_thread:true",
    );
    row("metadata", parts.metadata.map(i128::from), "the allocator's own; grows with arenas (narenas) and extents");
    row("retained", parts.retained.map(i128::from), "address space only: no memory, part of no index");
    row("outside", parts.outside.map(i128::from), "RSS - resident: Go, libraries, stacks, mmap; see `offheap ledger`");
    table.render(screen)
}

fn class_table(classes: &[Class], shown: usize, screen: &Screen) -> String {
    let mut table = Table::new();
    for heading in ["waste", "share", "size", "used", "regions", "slabs", "not full"] {
        table = table.number(heading);
    }
    for class in classes.iter().take(shown) {
        table.row(
            [
                size_or_na(Some(class.waste)),
                percent_or_na(class.share),
                class.size.to_string(),
                percent_or_na(class.utilization),
                class.curregs.to_string(),
                class.curslabs.to_string(),
                count_or_na(class.nonfull_slabs),
            ]
            .map(Cell::from),
        );
    }
    let mut out = format!("Small size classes by waste\n{}", table.render(screen));
    if classes.len() > shown {
        let rest: i128 = classes.iter().skip(shown).map(|class| i128::from(class.waste)).sum();
        let _ = writeln!(out, "and {} more with {}", classes.len() - shown, size_or_na(Some(rest)));
    }
    out
}
