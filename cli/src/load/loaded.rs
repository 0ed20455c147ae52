//! Reading one PROFILE, or several of one process.

use super::series::{self, Dump, OrderedBy};
use super::{Options, Source, usual_value};
use crate::exit::Outcome;
use crate::output;
use crate::view::duration;
use crate::view::progress::Progress;
use anyhow::{Context, anyhow, bail};
use offheap_symbolizer::formats::{self, Origin, Parsed};
use offheap_symbolizer::profile::{Label, Part, Profile};
use offheap_symbolizer::{Report, symbolize};

/// Above this share of bytes without a name, the user is told.
const UNNAMED_WORTH_SAYING: f64 = 0.05;
/// Above this share of bytes with a stack of at most one frame, unwinding was broken.
const SHALLOW_IS_BROKEN: f64 = 0.5;
/// Name of the format whose stacks may well be short.
const FOLDED: &str = "folded stacks";
/// Damaged parts that are listed one by one unless more are asked for.
const DAMAGE_LISTED: usize = 5;

/// A profile with names, ready to be shown.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) source: Source,
    pub(crate) profile: Profile,
    /// Name of the format it was read from.
    pub(crate) format: &'static str,
    /// Whose memory it is.
    pub(crate) origin: Origin,
    /// What was named and what was not.
    pub(crate) report: Report,
    /// Parts were left out, and the user did not ask to overlook it.
    pub(crate) partial: bool,
}

impl Loaded {
    /// How a command ends that showed everything of this profile; `nothing` when that was nothing.
    pub(crate) fn outcome(&self, nothing: bool) -> Outcome {
        match (self.partial, nothing) {
            (true, _) => Outcome::Partial,
            (false, true) => Outcome::Nothing,
            (false, false) => Outcome::Done,
        }
    }

    /// As a part of a merged profile, labelled with its origin where that is known.
    pub(crate) fn part(&self) -> Part<'_> {
        let part = Part::new(&self.profile);
        match self.origin {
            Origin::Go => part.labelled(Label::text("origin", "go")),
            Origin::Native => part.labelled(Label::text("origin", "native")),
            Origin::Unknown => part,
        }
    }

    /// Time of the reading, to be put after the name of the profile.
    pub(crate) fn taken(&self) -> String {
        match self.profile.time_nanos {
            nanos @ 1.. => format!(", taken {}", duration::moment(nanos as f64 / 1e9)),
            _ => String::new(),
        }
    }
}

/// Read one profile, name its frames, and say what is to be said about it.
///
/// # Errors
/// When it cannot be read, or nothing in it can be.
pub(crate) fn load(source: &Source, options: &Options) -> anyhow::Result<Loaded> {
    let raw = read(source, options)?;
    Ok(raw.finish(options))
}

/// Read one profile, or several dumps of one process, of which the last is taken.
///
/// # Errors
/// When one cannot be read, or they are of different processes.
pub(crate) fn load_last(sources: &[Source], options: &Options) -> anyhow::Result<Loaded> {
    let mut loaded = load_series(sources, options, |count| vec![count - 1])?;
    match (loaded.len(), loaded.pop()) {
        (1, Some(only)) => Ok(only),
        (count, _) => bail!("the {count} profiles are of different processes; `offheap merge` adds them up"),
    }
}

/// Read the two ends of a series, or two profiles as they were given.
///
/// # Errors
/// When one cannot be read, or there are more than two of different processes.
pub(crate) fn load_ends(sources: &[Source], options: &Options) -> anyhow::Result<[Loaded; 2]> {
    if let [base, new] = sources {
        return Ok([load(base, options)?, load(new, options)?]);
    }
    let loaded = load_series(sources, options, |count| vec![0, count - 1])?;
    <[Loaded; 2]>::try_from(loaded).map_err(|several| {
        anyhow!("the {} profiles are not dumps of one process; name two, BASE and NEW", several.len())
    })
}

/// Read profiles that are to be added up.
///
/// # Errors
/// When one cannot be read, or two are of one process: those overlap.
pub(crate) fn load_all(sources: &[Source], options: &Options) -> anyhow::Result<Vec<Loaded>> {
    let raw: Vec<Raw> = sources.iter().map(|source| read(source, options)).collect::<anyhow::Result<_>>()?;
    let names: Vec<String> = sources.iter().map(Source::short).collect();
    if let Some((first, second)) = series::pair(&dumps(&raw, &names)) {
        bail!(
            "{} and {} are readings of one process: a series, not a sum, in which what lives on would count twice; \
             `offheap diff` compares them, and `offheap top` shows the last",
            sources[first],
            sources[second]
        );
    }
    Ok(raw.into_iter().map(|raw| raw.finish(options)).collect())
}

fn dumps<'a>(raw: &'a [Raw], names: &'a [String]) -> Vec<Dump<'a>> {
    let dump =
        |(raw, name): (&'a Raw, &'a String)| Dump { name, profile: &raw.parsed.profile, origin: raw.parsed.origin };
    raw.iter().zip(names).map(dump).collect()
}

/// Read several profiles. Dumps of one process are a series, of which `pick` says which are wanted, given how many
/// there are, oldest first; profiles of several processes are returned all, as they were given.
///
/// # Errors
/// When one cannot be read.
fn load_series(
    sources: &[Source],
    options: &Options,
    pick: impl FnOnce(usize) -> Vec<usize>,
) -> anyhow::Result<Vec<Loaded>> {
    let raw: Vec<Raw> = sources.iter().map(|source| read(source, options)).collect::<anyhow::Result<_>>()?;
    let names: Vec<String> = sources.iter().map(Source::short).collect();
    let Some((order, ordered_by)) = series::order(&dumps(&raw, &names)) else {
        return Ok(raw.into_iter().map(|raw| raw.finish(options)).collect());
    };
    let picked: Vec<usize> = pick(order.len()).into_iter().map(|position| order[position]).collect();
    say_series(&names, &order, ordered_by, &picked);
    let mut raw: Vec<Option<Raw>> = raw.into_iter().map(Some).collect();
    Ok(picked.into_iter().filter_map(|index| raw[index].take()).map(|raw| raw.finish(options)).collect())
}

/// Tell that dumps were taken for a series, in which order, and which of them are shown.
fn say_series(names: &[String], order: &[usize], ordered_by: OrderedBy, picked: &[usize]) {
    let by = match ordered_by {
        OrderedBy::Sequence => "by the sequence numbers in their names",
        OrderedBy::Time => "by the times inside",
        OrderedBy::Position => "in the order given",
    };
    let shown: Vec<&str> = picked.iter().map(|&index| names[index].as_str()).collect();
    let what = match shown[..] {
        [base, new] => format!("{base} is the base and {new} the new one"),
        _ => format!("{} is shown", shown.join(", ")),
    };
    output::note(&format!(
        "the {} dumps are of one process and are taken as a series, {by}: {what}; they are not added up",
        order.len()
    ));
}

/// What was read, before names are looked up.
struct Raw {
    source: Source,
    pid: Option<u32>,
    parsed: Parsed,
    partial: bool,
}

fn read(source: &Source, options: &Options) -> anyhow::Result<Raw> {
    let progress = Progress::start(format!("reading {source}"));
    let input = source.read()?;
    let mut parsed = if input.bytes.is_empty() && source.is_folded_by_name() {
        // An empty file of folded stacks is what every collapser writes when there was nothing.
        let notes = vec!["the file is empty: no stacks".to_owned()];
        Parsed { format: FOLDED, notes, ..Parsed::default() }
    } else {
        formats::parse_with(&input.bytes, &options.parse).with_context(|| source.to_string())?
    };
    drop(progress);
    if let Some(path) = &options.maps {
        parsed.use_maps(&std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?);
    }
    for note in &parsed.notes {
        output::note(&format!("{source}: {note}"));
    }
    say_damage(source, &parsed, options.verbose);
    let partial = !parsed.damage.is_empty() && !options.lenient;
    Ok(Raw { source: source.clone(), pid: input.pid, parsed, partial })
}

fn say_damage(source: &Source, parsed: &Parsed, all: bool) {
    let listed = if all { parsed.damage.len() } else { DAMAGE_LISTED };
    for damage in parsed.damage.iter().take(listed) {
        output::note(&format!("{source}: {damage}"));
    }
    if let Some(more @ 1..) = parsed.damage.len().checked_sub(listed) {
        output::note(&format!("{source}: {more} more damaged parts; -v lists them"));
    }
}

impl Raw {
    fn finish(self, options: &Options) -> Loaded {
        let Self { source, pid, parsed, partial } = self;
        let mut profile = parsed.profile;
        // Before allocator frames are cut off: what they leave may be one frame deep and quite all right.
        let shallow = profile.health(usual_value(&profile)).map_or(0.0, |health| health.shallow);
        if shallow > SHALLOW_IS_BROKEN && parsed.format != FOLDED {
            output::note(&format!(
                "{source}: {:.0}% of bytes have a stack of at most one frame: unwinding was broken when this was recorded, \
                 and rankings say little; record again under the offheap agent, or with frame pointers",
                shallow * 100.0
            ));
        }
        let progress = Progress::start("looking up names");
        let mut report = symbolize(&mut profile, &options.symbolize(pid));
        parsed.input_names.apply(&mut profile);
        if !options.raw_frames {
            profile.prune_allocator();
        }
        drop(progress);
        let unnamed = profile.health(usual_value(&profile)).map_or(0.0, |health| health.unnamed_leaf);
        if unnamed > UNNAMED_WORTH_SAYING {
            // The report knows whom to blame, but not the names that came with the input.
            report.unnamed = (unnamed * report.total as f64) as i64;
            if let Some(warning) = report.warning() {
                output::note(&format!("{source}: {warning}"));
            }
        }
        Loaded { source, profile, format: parsed.format, origin: parsed.origin, report, partial }
    }
}
