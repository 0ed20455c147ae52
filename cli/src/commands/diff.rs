//! `offheap diff BASE NEW`, `offheap diff --go GO NATIVE`

use crate::exit::{Outcome, WrongUsage};
use crate::load::{Loaded, Options, Select, Source, load, load_ends, load_last};
use crate::output;
use crate::view::difference::{self, Document};
use crate::view::screen::Style;
use crate::view::value::Unit;
use crate::view::{go_table, json};
use crate::words::text::counted;
use anyhow::{anyhow, bail};
use offheap_symbolizer::formats::{Origin, pprof};
use offheap_symbolizer::profile::{GroupBy, Label, Part, Profile, SortBy, State, diff, diff_profile, go_table, merge};
use std::path::PathBuf;

/// Rows shown when nothing is said.
const USUAL_ROWS: usize = 20;

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// BASE and NEW, or several dumps of one process of which the last is compared with the first; with --go the native
    /// profile alone
    #[arg(required = true, value_name = "PROFILE")]
    inputs: Vec<Source>,
    /// Compare with this Go heap profile instead: what each Go function holds on the Go heap and outside of it; `auto` asks
    /// the ports on which the process of the native profile (pid:N) itself listens
    #[arg(long, value_name = "GO")]
    go: Option<Source>,
    /// What a row is: function, filefunction, line, file, module, thread, go
    #[arg(long, value_name = "WHAT", default_value = "function", conflicts_with = "go")]
    by: GroupBy,
    /// Compare what a function and its callees hold together
    #[arg(long)]
    cum: bool,
    /// Rows to show, 0 for all [default: 20, all with --json]
    #[arg(short = 'n', long = "rows", value_name = "N")]
    rows: Option<usize>,
    /// Show also the rows whose change is within the sampling error
    #[arg(long)]
    all: bool,
    /// Write the difference as a pprof file; its values are those of `go tool pprof -diff_base`, or with --go the native
    /// values minus those of Go under the label `origin`
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    options: Options,
}

/// Read, compare, print.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    match &args.go {
        Some(go) => against_go(&args, go),
        None => over_time(&args),
    }
}

fn over_time(args: &Args) -> anyhow::Result<Outcome> {
    if args.inputs.len() < 2 {
        bail!(WrongUsage(
            "diff needs two profiles, BASE and NEW; or a Go heap profile with --go to compare one native profile with"
                .into()
        ));
    }
    let mut options = args.options.clone();
    options.parse.by_thread = args.by == GroupBy::Thread;
    let [mut base, mut new] = load_ends(&args.inputs, &options)?;
    for side in [&mut base, &mut new] {
        args.select.apply(&mut side.profile);
    }
    let outcome = outcome(&[&base, &new]);
    // Of an empty profile nothing is known but that it holds nothing.
    let known = if new.profile.value_types.is_empty() { &base.profile } else { &new.profile };
    let value_type = known.value_types.get(args.select.value(known)?).cloned();
    let Some(value_type) = value_type else { return Ok(outcome) };
    let types = known.value_types.clone();
    for side in [&mut base, &mut new] {
        if side.profile.value_types.is_empty() {
            side.profile.value_types.clone_from(&types);
        }
    }
    write(args, || Ok(diff_profile(&base.profile, &new.profile)?))?;

    let measure = if args.cum { SortBy::Cum } else { SortBy::Flat };
    let mut diff = diff(&base.profile, &new.profile, &value_type.kind, args.by, measure)?;
    let quiet = diff.rows.iter().filter(|row| row.state == State::Same).count();
    if args.json {
        let count = args.rows.filter(|&rows| rows > 0).unwrap_or(usize::MAX);
        let document = Document::of(&diff, &value_type, count);
        output::print(&json::document("diff", &document)?)?;
        return Ok(outcome);
    }
    if !args.all {
        diff.rows.retain(|row| row.state != State::Same);
    }
    let (screen, unit) = (output::screen(), Unit::of(Some(&value_type)));
    let names = format!("{} → {}", base.short(), new.short());
    let mut text = difference::head(&diff, &value_type.kind, &unit, &names, &screen);
    let count = shown(args.rows);
    text += &difference::text(&diff, count, &unit, args.by == GroupBy::Line, &screen);
    if let Some(more @ 1..) = diff.rows.len().checked_sub(count) {
        text += &screen.paint(Style::Faint, &format!("{more} more rows; -n 0 shows all\n"));
    }
    if quiet > 0 && !args.all {
        let are = if quiet == 1 { "is" } else { "are" };
        let rows = counted(quiet as u64, "row");
        let note = format!("{rows} {are} the same within the sampling error; --all shows them\n");
        text += &screen.paint(Style::Faint, &note);
    }
    output::print(&text)?;
    Ok(outcome)
}

fn against_go(args: &Args, go: &Source) -> anyhow::Result<Outcome> {
    if let Some(kind) = args.select.sample.as_deref().filter(|&kind| kind != "inuse_space") {
        bail!(WrongUsage(format!(
            "--sample {kind}: with --go both sides are bytes in use (inuse_space), and nothing else"
        )));
    }
    let mut go = load(&go.or_auto(&args.inputs[0])?, &args.options)?;
    let mut native = load_last(&args.inputs, &args.options)?;
    if go.origin == Origin::Native {
        bail!(
            "--go {}: a profile of native memory ({}); expected the Go heap profile, as /debug/pprof/heap serves it. The \
             native one stands alone: `offheap diff --go GO NATIVE`",
            go.name(),
            go.format
        );
    }
    for side in [&mut go, &mut native] {
        args.select.apply(&mut side.profile);
    }
    write(args, || {
        let go = Part::new(&go.profile).labelled(Label::text("origin", "go")).negated();
        Ok(merge(&[go, Part::new(&native.profile).labelled(Label::text("origin", "native"))])?)
    })?;
    let table = go_table(&go.profile, &native.profile).ok_or_else(|| {
        anyhow!(
            "{} or {} is no heap profile: bytes in use (inuse_space) were expected in both",
            go.name(),
            native.name()
        )
    })?;
    if args.json {
        let count = args.rows.filter(|&rows| rows > 0).unwrap_or(usize::MAX);
        output::print(&json::document("diff", &go_table::Document::of(&table, count))?)?;
    } else {
        let heads = [&go, &native].map(|side| format!("{}{}", side.short(), side.taken()));
        output::print(&go_table::text(&table, &heads, shown(args.rows), args.cum, &output::screen()))?;
    }
    Ok(outcome(&[&go, &native]))
}

fn shown(rows: Option<usize>) -> usize {
    match rows {
        Some(0) => usize::MAX,
        rows => rows.unwrap_or(USUAL_ROWS),
    }
}

fn write(args: &Args, make: impl FnOnce() -> anyhow::Result<Profile>) -> anyhow::Result<()> {
    match &args.output {
        Some(path) => output::write(path, &pprof::encode(&make()?)),
        None => Ok(()),
    }
}

fn outcome(sides: &[&Loaded]) -> Outcome {
    if sides.iter().any(|side| side.partial) {
        Outcome::Partial
    } else if sides.iter().all(|side| side.profile.samples.is_empty()) {
        Outcome::Nothing
    } else {
        Outcome::Done
    }
}
