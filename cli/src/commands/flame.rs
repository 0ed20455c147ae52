//! `offheap flame PROFILE -o X.svg [--base P]`

use crate::analysis::tenants::waste_profile;
use crate::exit::{Outcome, WrongUsage};
use crate::load::{Loaded, Options, Select, Source, load, load_last};
use crate::output;
use crate::reading::Reading;
use crate::view::flame::{self, Picture, Side, Tree};
use crate::view::value::Unit;
use crate::words::size::human;
use anyhow::bail;
use offheap_symbolizer::profile::Profile;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `flame`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profiles: files, `-`, URLs, or pid:N; of each process the last one counts, several processes are added up
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
    /// With --by waste: a live target or a saved report of the allocator's statistics; pid:N is asked itself
    #[arg(long, value_name = "TARGET|STATS")]
    stats: Option<OsString>,
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
    /// Slab waste of the size classes that they live in, an estimate
    Waste,
}

/// Read, select, draw.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut select = args.select;
    if let Some(by) = args.by {
        let value = match by {
            By::Space => "inuse_space",
            By::Objects => "inuse_objects",
            By::Waste => "slab_waste",
        };
        select.sample = Some(value.into());
    }
    if args.by == Some(By::Waste) && args.base.is_some() {
        bail!(WrongUsage(
            "--by waste draws one reading; the waste of --base would need statistics of its own time".into()
        ));
    }
    let mut options = args.options;
    options.parse.by_size = args.by == Some(By::Waste);
    let mut loaded = load_last(&args.inputs, &options)?;
    let base = args.base.as_ref().map(|base| load(base, &options)).transpose()?;
    if args.by == Some(By::Waste) {
        loaded.profile = waste_of(&loaded, args.stats)?;
    }

    let value = select.value(&loaded.profile)?;
    let mut tree = Tree::default();
    select.apply(&mut loaded.profile);
    add(&mut tree, &loaded.profile, value, Side::New);
    let partial = loaded.partial || base.as_ref().is_some_and(|base| base.partial);
    let differential = base.is_some();
    if let Some(mut base) = base {
        let base_value = select.value(&base.profile)?;
        let types = [(&loaded, value), (&base, base_value)].map(|(side, at)| side.profile.value_types.get(at));
        if let [Some(new), Some(old)] = types
            && new != old
        {
            bail!(
                "{} shows {}/{} and {} {}/{}, which cannot be compared; pick a value that both have with --sample",
                loaded.name(),
                new.kind,
                new.unit,
                base.name(),
                old.kind,
                old.unit
            );
        }
        select.apply(&mut base.profile);
        add(&mut tree, &base.profile, base_value, Side::Base);
    }

    let unit = Unit::of(loaded.profile.value_types.get(value));
    let title = args.title.unwrap_or_else(|| title(&loaded, value, &tree, differential, &unit));
    let nothing = tree.total() == 0;
    let svg = if nothing {
        let reason = "the profile has no samples with this value";
        output::note(&format!("{}: nothing to draw: {reason}", loaded.name()));
        flame::empty(&title, reason)
    } else {
        flame::render(&tree, &Picture { title: &title, unit: &unit, differential })?
    };
    output::write(&args.output, &svg)?;
    loaded.partial = partial;
    Ok(loaded.outcome(nothing))
}

/// The profile with the slab waste of each sample as its only value.
fn waste_of(loaded: &Loaded, stats: Option<OsString>) -> anyhow::Result<Profile> {
    let asked = match (&loaded.sources[..], stats) {
        (_, Some(stats)) => stats,
        ([Source::Process(target)], None) => target.clone(),
        _ => {
            let source = loaded.name();
            bail!(WrongUsage(format!(
                "{source}: --by waste needs the statistics of the same process: add --stats TARGET|FILE"
            )))
        }
    };
    let reading = Reading::of(&asked)?;
    reading.notes.iter().for_each(|note| output::note(note));
    if reading.stats.bins.is_empty() {
        bail!("{}: no size classes in it, so their waste is not known", asked.display());
    }
    let Some((profile, unsampled)) = waste_profile(&reading.stats.bins, loaded.profile.clone()) else {
        bail!("{}: not a profile of live objects, so nobody lives in the size classes", loaded.name());
    };
    output::note("the waste of each size class is shared among its sites by their live objects and ages: an estimate");
    if unsampled != 0 {
        output::note(&format!("{} are in classes without a sampled object and not drawn", human(unsampled.into())));
    }
    Ok(profile)
}

fn add(tree: &mut Tree, profile: &Profile, value: usize, side: Side) {
    let negative = tree.add_profile(profile, value, side);
    if negative < 0 {
        output::note(&format!("negative values ({negative} in all) cannot be drawn and are left out"));
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
    format!("{kind} {}{change} · {}", unit.headed(total), loaded.short())
}
