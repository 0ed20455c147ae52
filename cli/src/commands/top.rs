//! `offheap top PROFILE`

use crate::exit::Outcome;
use crate::load::{Query, Source};
use crate::output;
use crate::view::json;
use crate::view::ranking::{self, Document, RowJson};
use crate::view::screen::Style;
use crate::view::value::Unit;
use crate::words::duration;
use anyhow::bail;
use offheap_symbolizer::profile::{GroupBy, SortBy, Table};
use std::time::Duration;

/// Name of the one format that knows ages.
const SAMPLE_TABLE: &str = "offheap sample table";
/// Rows shown when nothing is said.
const USUAL_ROWS: usize = 20;

/// Arguments of `top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profiles: files, `-`, URLs, or pid:N; of each process the last one counts, several processes are added up
    #[arg(required = true, value_name = "PROFILE")]
    inputs: Vec<Source>,
    /// The same as --by filefunction
    #[arg(long, conflicts_with = "by")]
    filefunctions: bool,
    /// Sort by what a function and its callees hold together
    #[arg(long)]
    cum: bool,
    /// Rows to show, 0 for all [default: 20, all with --json]
    #[arg(short = 'n', long = "rows", value_name = "N")]
    rows: Option<usize>,
    /// Only what was allocated within this time before the reading and still lives, for example 10m; needs pid:N or a
    /// file of `offheap trigger`
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    age: Option<Duration>,
    #[command(flatten)]
    query: Query,
}

/// Read, select, rank, print.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut query = args.query;
    if args.filefunctions {
        query.by = GroupBy::FileFunction;
    }
    query.options.parse.max_age = args.age;
    let answer = query.ask(&args.inputs)?;
    let loaded = &answer.loaded;
    if args.age.is_some() && loaded.format != SAMPLE_TABLE {
        bail!(
            "{}: ages are known from the agent's sample table alone, and this is a {}; ask the live process, as pid:N, or a file that a trigger wrote",
            loaded.name(),
            loaded.format
        );
    }

    let value_type = answer.value_type();
    let mut ranking = value_type.map_or_else(Table::default, |_| loaded.profile.rank(answer.value, query.by));
    if args.cum {
        ranking.sort(SortBy::Cum);
    }
    ranking.rows.retain(|row| row.flat != 0 || row.cum != 0);
    let nothing = ranking.rows.is_empty();
    let (kind, unit) = value_type.map_or(("", ""), |value| (&*value.kind, &*value.unit));
    if nothing {
        output::note(&format!("{}: nothing to show: no sample has a value of {kind}", loaded.name()));
    }
    if query.json {
        let count = args.rows.filter(|&rows| rows > 0).unwrap_or(usize::MAX);
        let rows = ranking.rows.iter().take(count).map(RowJson::of).collect();
        output::print(&json::document("top", &Document { sample_type: kind, unit, total: ranking.total, rows })?)?;
    } else if !nothing {
        let count = match args.rows {
            Some(0) => usize::MAX,
            rows => rows.unwrap_or(USUAL_ROWS),
        };
        let screen = output::screen();
        let unit = Unit::of(value_type);
        let head = format!("{kind} {} · {}", unit.headed(ranking.total.into()), loaded.name());
        let mut text = format!("{}\n", screen.paint(Style::Strong, &head));
        text += &ranking::text(&ranking, count, &unit, query.by == GroupBy::Line, &screen);
        if let Some(more @ 1..) = ranking.rows.len().checked_sub(count) {
            text += &screen.paint(Style::Faint, &format!("{more} more rows; -n 0 shows all"));
            text.push('\n');
        }
        output::print(&text)?;
    }
    Ok(loaded.outcome(nothing))
}
