//! Reading one PROFILE, or several of one process.

use super::series::{self, Dump, OrderedBy, Sets};
use super::source::Input;
use super::{Options, Source, usual_value};
use crate::capture::place_in_host;
use crate::exit::Outcome;
use crate::input::{self, Purpose};
use crate::output;
use crate::view::progress::Progress;
use crate::view::value::Unit;
use crate::words::duration;
use crate::words::text::printable;
use anyhow::{Context, anyhow, bail};
use offheap_symbolizer::formats::{self, Origin, ParseOptions, Parsed};
use offheap_symbolizer::modules::{Place, Verdict, fixed_mappings, main_module, modules};
use offheap_symbolizer::profile::{Label, Matcher, Part, Profile, merge};
use offheap_symbolizer::{Report, symbolize};
use regex::Regex;
use std::borrow::Cow;

/// Above this share of bytes without a name, the user is told.
const UNNAMED_WORTH_SAYING: f64 = 0.05;
/// Above this share of bytes with a stack of at most one frame, unwinding was broken.
const SHALLOW_IS_BROKEN: f64 = 0.5;
/// Name of the format whose stacks may well be short.
const FOLDED: &str = "folded stacks";
/// Damaged parts that are listed one by one unless more are asked for.
const DAMAGE_LISTED: usize = 5;

/// A profile with names, ready to be shown.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Where it came from; several where profiles of several processes were added up.
    pub(crate) sources: Vec<Source>,
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

    /// Its sources as they were typed, fit to be printed.
    pub(crate) fn name(&self) -> String {
        join(&self.sources, |source| source.to_string().into())
    }

    /// Its sources without directories.
    pub(crate) fn short(&self) -> String {
        join(&self.sources, |source| source.short().into())
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

/// Take what was read from a source already.
///
/// # Errors
/// When nothing in it can be read.
pub(crate) fn load_bytes(source: &Source, bytes: Vec<u8>, options: &Options) -> anyhow::Result<Loaded> {
    options.check()?;
    Ok(parse(source, Input::of_file(bytes), options)?.finish(options))
}

fn join<'a>(sources: &'a [Source], name: impl Fn(&'a Source) -> Cow<'a, str>) -> String {
    printable(&sources.iter().map(name).collect::<Vec<_>>().join(" + ")).into_owned()
}

/// Read what is to be shown: of each process the last dump, and of several processes their sum.
///
/// # Errors
/// When one cannot be read, when nothing tells whether two are of one process, or when they measure different things.
pub(crate) fn load_last(sources: &[Source], options: &Options) -> anyhow::Result<Loaded> {
    let raw: Vec<Raw> = sources.iter().map(|source| read(source, options)).collect::<anyhow::Result<_>>()?;
    let names: Vec<String> = sources.iter().map(Source::short).collect();
    let sets = match series::sets(&dumps(&raw, &names)) {
        Sets::Told(sets) => sets,
        Sets::Untold(first, second) => bail!(
            "{} and {}: nothing in them tells whether they are of one process, where only the last counts, or of two, \
             which add up; name one of them, or add them up with `offheap merge`",
            sources[first],
            sources[second]
        ),
    };
    let mut lasts = Vec::new();
    for set in &sets {
        let Some(&last) = set.dumps.last() else { continue };
        if set.dumps.len() > 1 {
            say_series(&names, &set.dumps, set.ordered_by, &[last]);
        }
        lasts.push(last);
    }
    lasts.sort_unstable();
    let mut raw: Vec<Option<Raw>> = raw.into_iter().map(Some).collect();
    let taken = lasts.iter().filter_map(|&last| raw[last].take());
    sum(taken.map(|raw| raw.finish(options)).collect())
}

/// Profiles of different processes added up, as `go tool pprof` adds several files.
fn sum(mut loaded: Vec<Loaded>) -> anyhow::Result<Loaded> {
    if loaded.len() == 1 {
        return Ok(loaded.remove(0));
    }
    let profile = merge(&loaded.iter().map(Loaded::part).collect::<Vec<_>>())?;
    output::note(&format!("the {} profiles are of different processes and are added up", loaded.len()));
    let mut sum = Loaded { profile, ..Loaded::default() };
    for (number, one) in loaded.into_iter().enumerate() {
        // What all have in common is true of the sum.
        let first = number == 0;
        sum.format = if first || sum.format == one.format { one.format } else { "several formats" };
        sum.origin = if first || sum.origin == one.origin { one.origin } else { Origin::Unknown };
        sum.partial |= one.partial;
        sum.sources.extend(one.sources);
        sum.report.add(one.report);
    }
    Ok(sum)
}

/// Read the two ends of a series, or two profiles as they were given.
///
/// # Errors
/// When one cannot be read, or there are more than two of different processes.
pub(crate) fn load_ends(sources: &[Source], options: &Options) -> anyhow::Result<[Loaded; 2]> {
    let raw: Vec<Raw> = sources.iter().map(|source| read(source, options)).collect::<anyhow::Result<_>>()?;
    let names: Vec<String> = sources.iter().map(Source::short).collect();
    if let [base, new] = &names[..] {
        if series::are_reversed(&dumps(&raw, &names)) {
            output::note(&format!(
                "{new} was written before {base}: what grew in between is shown as shrunk; give the older one first"
            ));
        }
        let mut sides = raw.into_iter().map(|raw| raw.finish(options));
        return sides.next().zip(sides.next()).map(|(base, new)| [base, new]).ok_or_else(|| no_two_ends(sources));
    }
    let Sets::Told(sets) = series::sets(&dumps(&raw, &names)) else { return Err(no_two_ends(sources)) };
    let [set] = &sets[..] else { return Err(no_two_ends(sources)) };
    let [base, .., new] = set.dumps[..] else { return Err(no_two_ends(sources)) };
    say_series(&names, &set.dumps, set.ordered_by, &[base, new]);
    let mut raw: Vec<Option<Raw>> = raw.into_iter().map(Some).collect();
    match (raw[base].take(), raw[new].take()) {
        (Some(base), Some(new)) => Ok([base.finish(options), new.finish(options)]),
        _ => Err(no_two_ends(sources)),
    }
}

fn no_two_ends(sources: &[Source]) -> anyhow::Error {
    anyhow!("the {} profiles are not dumps of one process; name two, BASE and NEW", sources.len())
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
    options.check()?;
    let progress = Progress::start(format!("reading {source}"));
    let input = source.read()?;
    drop(progress);
    parse(source, input, options)
}

fn parse(source: &Source, input: Input, options: &Options) -> anyhow::Result<Raw> {
    let progress = Progress::start(format!("reading {source}"));
    let asked = ParseOptions { folded_by_name: source.is_folded_by_name(), ..options.parse.clone() };
    let mut parsed = formats::parse_with(&input.bytes, &asked).with_context(|| source.to_string())?;
    drop(progress);
    place(&mut parsed, options)?;
    if let Some(pid) = input.pid {
        place_in_host(&mut parsed, pid);
    }
    for note in &input.notes {
        output::note(&format!("{source}: {note}"));
    }
    for note in &parsed.notes {
        output::note(&format!("{source}: {note}"));
    }
    say_damage(source, &parsed, options.verbose);
    let partial = !parsed.damage.is_empty() && !options.lenient;
    Ok(Raw { source: source.clone(), pid: input.pid, parsed, partial })
}

/// Give a dump without mappings those that the user has.
fn place(parsed: &mut Parsed, options: &Options) -> anyhow::Result<()> {
    if let Some(path) = &options.maps {
        let maps = input::read_file(path, Purpose::Maps).context("--maps")?;
        let (maps, _) = input::unpacked(&maps, "--maps")?;
        if parsed.use_maps(&maps) == 0 {
            bail!("--maps {}: no executable mapping in it; expected a copy of /proc/PID/maps", path.display());
        }
    } else if let Some(path) = &options.binary
        && parsed.profile.mappings.is_empty()
        && !parsed.profile.samples.is_empty()
        && parsed.format != FOLDED
    {
        match fixed_mappings(path) {
            Ok(mappings) => parsed.use_mappings(mappings),
            Err(why) => output::note(&format!("--binary {}: {why}", path.display())),
        }
    }
    Ok(())
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
        if shallow > SHALLOW_IS_BROKEN && profile.measures_memory() {
            output::note(&format!(
                "{source}: {:.0}% of bytes have a stack of at most one frame: unwinding was broken when this was recorded, \
                 and rankings say little; record again under the offheap agent, or with frame pointers",
                shallow * 100.0
            ));
        }
        let progress = Progress::start("looking up names");
        let mut report = symbolize(&mut profile, &options.symbolize(pid));
        parsed.input_names.apply(&mut profile);
        // Time spent in `malloc` is spent there; only its memory is somebody else's. Folded stacks do not say what they count.
        if !options.raw_frames && (profile.measures_memory() || parsed.format == FOLDED) {
            profile.prune_allocator();
        }
        if !options.raw_frames {
            drop_frames(&mut profile, &source);
        }
        drop(progress);
        say_refused(&report);
        if let Some(binary) = &options.binary
            && !profile.mappings.is_empty()
            && main_module(&modules(&profile), Some(binary)).is_none()
        {
            output::note(&format!(
                "--binary {}: not used: {source} speaks of libraries alone, and none has that file name",
                binary.display()
            ));
        }
        if !profile.value_types.is_empty() && i64::try_from(exact_total(&profile)).is_err() {
            output::note(&format!("{source}: its values add up beyond 2^63, where sums end here"));
        }
        let unnamed = profile.health(usual_value(&profile)).map_or(0.0, |health| health.unnamed_leaf);
        if unnamed > UNNAMED_WORTH_SAYING {
            // The report knows whom to blame, but not the names that came with the input.
            report.unnamed = (unnamed * report.total as f64) as i64;
            if let Some(warning) = report.warning(Unit::of(profile.value_types.get(usual_value(&profile))).counted()) {
                output::note(&format!("{source}: {warning}"));
            }
        }
        Loaded { sources: vec![source], profile, format: parsed.format, origin: parsed.origin, report, partial }
    }
}

/// Do what the profile asks of its readers: `go tool pprof` does, and two tables of one file should agree.
fn drop_frames(profile: &mut Profile, source: &Source) {
    let whole = |pattern: &str| Regex::new(&format!("^({pattern})$"));
    let Some(drop) = profile.drop_frames.as_deref().map(whole) else { return };
    match (drop, profile.keep_frames.as_deref().map(whole).transpose()) {
        (Ok(drop), Ok(keep)) => {
            let keep = keep.map(|keep| move |name: &str| keep.is_match(name));
            profile.drop_frames(&|name| drop.is_match(name), keep.as_ref().map(|keep| keep as Matcher<'_>));
        }
        _ => output::note(&format!(
            "{source}: the frames that it asks to be left out are no regular expression; all are shown"
        )),
    }
}

/// A file that the user named himself and that is not used is worth a line, however little it would have named.
fn say_refused(report: &Report) {
    for candidate in report.images.iter().flat_map(|image| &image.looked_at) {
        if candidate.place == Place::Binary && candidate.verdict != Verdict::Accepted {
            output::note(&format!("--binary {}: {}", candidate.path.display(), candidate.verdict));
        }
    }
}

fn exact_total(profile: &Profile) -> i128 {
    let value = usual_value(profile);
    profile.samples.iter().map(|sample| i128::from(sample.values[value])).sum()
}
