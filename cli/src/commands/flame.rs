//! `offheap flame PROFILE -o X.svg [--base P]`

use crate::exit::Outcome;
use crate::load::{Loaded, Options, Select, Source, load, load_last};
use crate::output;
use crate::view::flame::{self, Kind, Picture, Tree};
use crate::view::value::Unit;
use offheap_symbolizer::profile::go_name::{is_cgo_stub, is_go, is_runtime};
use offheap_symbolizer::profile::{Profile, StackFrame};
use std::borrow::Cow;
use std::path::PathBuf;

/// Arguments of `flame`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profile: a file, `-`, a URL, or pid:N; of several dumps of one process the last is drawn
    #[arg(required = true, value_name = "PROFILE")]
    inputs: Vec<Source>,
    /// SVG file to write; `-` for standard output
    #[arg(short, long, value_name = "X.svg")]
    output: PathBuf,
    /// Draw the change against this profile: red grew, blue shrank
    #[arg(long, value_name = "PROFILE")]
    base: Option<Source>,
    /// What the width of a frame means
    #[arg(long, value_enum, conflicts_with = "sample")]
    by: Option<By>,
    /// Heading of the picture
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    options: Options,
}

/// What the width of a frame means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Live bytes
    Space,
    /// Live objects
    Objects,
}

/// Read, select, draw.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut select = args.select;
    if let Some(by) = args.by {
        select.sample = Some(if by == By::Space { "inuse_space" } else { "inuse_objects" }.into());
    }
    let mut loaded = load_last(&args.inputs, &args.options)?;
    let base = args.base.as_ref().map(|base| load(base, &args.options)).transpose()?;

    let value = select.value(&loaded.profile)?;
    let mut tree = Tree::default();
    select.apply(&mut loaded.profile);
    add(&mut tree, &loaded.profile, value, Side::New);
    let partial = loaded.partial || base.as_ref().is_some_and(|base| base.partial);
    let differential = base.is_some();
    if let Some(mut base) = base {
        let value = select.value(&base.profile)?;
        select.apply(&mut base.profile);
        add(&mut tree, &base.profile, value, Side::Base);
    }

    let unit = Unit::of(loaded.profile.value_types.get(value));
    let title = args.title.unwrap_or_else(|| title(&loaded, value, &tree, differential, &unit));
    let nothing = tree.total() == 0;
    let svg = if nothing {
        let reason = "the profile has no samples with this value";
        output::note(&format!("{}: nothing to draw: {reason}", loaded.source));
        flame::empty(&title, reason)
    } else {
        flame::render(&tree, &Picture { title: &title, unit: &unit, differential })?
    };
    output::write(&args.output, &svg)?;
    loaded.partial = partial;
    Ok(loaded.outcome(nothing))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    New,
    Base,
}

fn add(tree: &mut Tree, profile: &Profile, value: usize, side: Side) {
    let mut negative: i128 = 0;
    for sample in &profile.samples {
        let amount = sample.values[value];
        negative += i128::from(amount.min(0));
        let Ok(amount @ 1..) = u64::try_from(amount) else { continue };
        let stack: Vec<(Cow<'_, str>, Kind)> =
            profile.frames(sample).map(|frame| (frame.name(), kind(profile, &frame))).collect();
        match side {
            Side::New => tree.add(&stack, amount, 0),
            Side::Base => tree.add(&stack, 0, amount),
        }
    }
    if negative < 0 {
        output::note(&format!("negative values ({negative} in all) cannot be drawn and are left out"));
    }
}

fn kind(profile: &Profile, frame: &StackFrame<'_>) -> Kind {
    if profile.is_unnamed(frame.location) {
        return Kind::Unknown;
    }
    let Some(function) = frame.function() else { return Kind::Unknown };
    if is_cgo_stub(&function.name) || (is_go(function) && is_runtime(&function.name)) {
        Kind::GoRuntime
    } else if is_go(function) {
        Kind::Go
    } else {
        Kind::Native
    }
}

/// `inuse_space 163.1 MiB (+12.0 MiB) · svc.heap`
fn title(loaded: &Loaded, value: usize, tree: &Tree, differential: bool, unit: &Unit) -> String {
    let kind = loaded.profile.value_types.get(value).map_or("", |value| &*value.kind);
    let (total, base) = (i128::from(tree.total()), i128::from(tree.base_total()));
    let change = if differential {
        format!(" ({} against the base's {})", unit.change(total - base), unit.amount(base))
    } else {
        String::new()
    };
    format!("{kind} {}{change} · {}", unit.named(total), loaded.source.short())
}
