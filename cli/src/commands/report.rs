//! `offheap report FILE|TARGET -o X.html`

use crate::analysis::fragmentation::classes;
use crate::client::Agent;
use crate::exit::Outcome;
use crate::input::{self, Purpose};
use crate::load::{Options, Source, load, load_bytes, usual_value};
use crate::observe::{Header, Observation, Observer, Recording};
use crate::output;
use crate::reading::is_file;
use crate::view::amount::{percent_or_na, size_or_na};
use crate::view::flame::{self, Picture, Side, Tree};
use crate::view::page::{Chart, Line, Page, Rows};
use crate::view::value::Unit;
use crate::words::duration;
use crate::words::size::human;
use crate::words::text::counted;
use anyhow::bail;
use flate2::read::MultiGzDecoder;
use offheap_symbolizer::profile::{GroupBy, NO_GO, Profile};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Rows of each table.
const ROWS: usize = 20;
/// Functions whose bytes are recorded when a live process is asked.
const SITES: usize = 40;

/// Enough of a recording to know it by.
const START_OF_RECORDING: u64 = 256;
/// What a gzip file may unpack to: a few bytes can stand for any number.
const LARGEST_RECORDING: u64 = 1 << 30;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A recording of `offheap record`, a profile, or a live process (pid, socket or name)
    #[arg(value_name = "FILE|TARGET")]
    source: OsString,
    /// HTML file to write; `-` for standard output
    #[arg(short, long, value_name = "X.html")]
    output: PathBuf,
    /// Profile for the flame graph of a recording
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Source>,
    #[command(flatten)]
    options: Options,
}

/// What the page shows.
#[derive(Default)]
struct Material {
    title: String,
    facts: Vec<String>,
    observations: Vec<Observation>,
    profile: Option<Profile>,
    partial: bool,
}

/// Gather, write.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut material = gather(args)?;
    if let Some(source) = &args.profile {
        let loaded = load(source, &args.options)?;
        material.partial |= loaded.partial;
        material.profile = Some(loaded.profile);
    }
    let empty = material.observations.is_empty() && material.profile.as_ref().is_none_or(|p| p.samples.is_empty());
    if empty {
        output::note(&format!(
            "{}: there is no observation and no sample in it; the page is empty",
            shown(&args.source)
        ));
    }
    output::write(&args.output, page(&material)?.as_bytes())?;
    Ok(match (material.partial, empty) {
        (true, _) => Outcome::Partial,
        (false, true) => Outcome::Nothing,
        (false, false) => Outcome::Done,
    })
}

fn gather(args: &Args) -> anyhow::Result<Material> {
    if !is_file(&args.source, Purpose::Report)? {
        return live(&args.source, &args.options);
    }
    // Read once: a pipe gives its bytes a single time.
    let source = Source::from(args.source.clone());
    let bytes = match &source {
        Source::Stdin => input::read_stdin(Purpose::Report)?,
        _ => input::read_file(Path::new(&args.source), Purpose::Report)?,
    };
    if Recording::looks_like(&bytes) {
        return recorded(&shown(&args.source), &bytes, &args.options);
    }
    if let Some((bytes, whole)) = packed_recording(&bytes) {
        let mut material = recorded(&shown(&args.source), &bytes, &args.options)?;
        if !whole {
            output::note(&format!(
                "{}: the gzip stream is cut or damaged; what is whole is shown",
                shown(&args.source)
            ));
            material.partial |= !args.options.lenient;
        }
        return Ok(material);
    }
    let loaded = load_bytes(&source, bytes, &args.options)?;
    let facts = vec![format!("{} as {}{}", loaded.name(), loaded.format, loaded.taken())];
    let title = source.short();
    Ok(Material { title, facts, profile: Some(loaded.profile), partial: loaded.partial, ..Material::default() })
}

/// The recording in a gzip file, as far as it can be unpacked, and whether that was to its end.
fn packed_recording(bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut unpacked = Vec::new();
    // Damage shows below: it leaves too little to look like a recording.
    let _ = MultiGzDecoder::new(bytes).take(START_OF_RECORDING).read_to_end(&mut unpacked);
    if !Recording::looks_like(&unpacked) {
        return None;
    }
    unpacked.clear();
    let read = MultiGzDecoder::new(bytes).take(LARGEST_RECORDING).read_to_end(&mut unpacked);
    let whole = read.is_ok_and(|length| (length as u64) < LARGEST_RECORDING);
    Some((unpacked, whole))
}

/// In messages.
fn shown(source: &OsStr) -> String {
    source.display().to_string()
}

fn live(target: &OsStr, options: &Options) -> anyhow::Result<Material> {
    let observer = Observer::new(Agent::of(target)?, None);
    let info = observer.agent().info()?;
    let mut observation = observer.observe()?;
    let mut profile = None;
    if info.profile.recording_since.is_some() {
        observation.sites = observer.sites(SITES)?;
        profile = Some(load(&Source::Process(observer.agent().pid()?.to_string().into()), options)?.profile);
    }
    let exe = info.exe.unwrap_or_else(|| "unknown".to_owned());
    let facts = vec![
        format!("pid {}, {exe}", info.pid),
        format!("read {}", duration::moment(observation.taken_at)),
        format!("offheap agent {}", info.agent_version),
    ];
    Ok(Material { title: name_of(&exe, info.pid), facts, observations: vec![observation], profile, partial: false })
}

fn recorded(name: &str, bytes: &[u8], options: &Options) -> anyhow::Result<Material> {
    let Some(recording) = Recording::read(bytes) else {
        bail!("{name}: the first line of this recording is damaged, and without it nothing is known of the process");
    };
    let Recording { header, observations, end, damaged } = recording;
    for line in &damaged {
        output::note(&format!("{name}: line {line} is damaged and left out"));
    }
    let exe = header.exe.clone().unwrap_or_else(|| "unknown".to_owned());
    let ended = match &end {
        Some(end) => format!("ended {}: {}", duration::moment(end.taken_at), end.reason),
        None => "cut short: the recording has no end".to_owned(),
    };
    let facts = vec![format!("pid {}, {exe}", header.pid), span(&header, &observations), ended];
    let partial = !damaged.is_empty() && !options.lenient;
    Ok(Material { title: name_of(&exe, header.pid), facts, observations, profile: None, partial })
}

fn span(header: &Header, observations: &[Observation]) -> String {
    let moment = |observation: Option<&Observation>| duration::moment(observation.map_or(0.0, |o| o.taken_at));
    let (first, last) = (moment(observations.first()), moment(observations.last()));
    format!("{}, one every {} s, {first} to {last}", counted(observations.len() as u64, "observation"), header.every)
}

fn name_of(exe: &str, pid: u32) -> String {
    format!("{} ({pid})", exe.rsplit('/').next().unwrap_or(exe))
}

fn page(material: &Material) -> anyhow::Result<String> {
    let mut page = Page::new(&format!("offheap: {}", material.title), &material.facts);
    if let Some(last) = material.observations.last() {
        verdict(&mut page, last);
        ledger(&mut page, &material.observations);
        allocator(&mut page, &material.observations);
        size_classes(&mut page, last);
        sites(&mut page, &material.observations);
    }
    if let Some(profile) = &material.profile {
        holders(&mut page, profile);
        flame_graph(&mut page, profile, &material.title)?;
    }
    Ok(page.finish())
}

fn verdict(page: &mut Page, last: &Observation) {
    let parts = last.fragmentation();
    page.section("Fragmentation");
    let index = parts.index.map_or_else(|| "n/a".to_owned(), |index| format!("{index:.3}"));
    page.text(&format!("{}: index {index} (1 − allocated/active).", parts.verdict.name()));
    parts.reasons.iter().for_each(|reason| page.text(reason));
    let rows: Rows = [
        ("rss", parts.rss.map(i128::from)),
        ("allocated", parts.allocated.map(i128::from)),
        ("active", parts.active.map(i128::from)),
        ("resident", parts.resident.map(i128::from)),
        ("slab waste", parts.slab_waste.map(i128::from)),
        ("cached by threads", parts.cached.map(i128::from)),
        ("unreturned", parts.unreturned.map(i128::from)),
        ("metadata", parts.metadata.map(i128::from)),
        ("outside of jemalloc", parts.outside.map(i128::from)),
    ]
    .into_iter()
    .map(|(name, bytes)| vec![size_or_na(bytes), name.to_owned()])
    .collect();
    page.table(&["bytes", "part"], &rows);
}

fn ledger(page: &mut Page, observations: &[Observation]) {
    let Some(last) = observations.last().filter(|last| !last.ledger.is_empty()) else { return };
    page.section("RSS by owner");
    let mut owners: Vec<&str> = Vec::new();
    for row in observations.iter().flat_map(|o| &o.ledger) {
        if !owners.contains(&row.owner.as_str()) {
            owners.push(&row.owner);
        }
    }
    let bytes =
        |o: &Observation, owner: &str| o.ledger.iter().find(|row| row.owner == owner).map(|row| row.bytes as f64);
    let lines: Vec<Line> = owners
        .iter()
        .map(|owner| Line {
            name: (*owner).to_owned(),
            values: observations.iter().map(|o| Some(bytes(o, owner).unwrap_or(0.0))).collect(),
        })
        .collect();
    let times: Vec<f64> = observations.iter().map(|o| o.taken_at).collect();
    page.markup(&Chart { times: &times, lines: &lines, stacked: true, bytes: true }.render());
    let total: u64 = last.ledger.iter().map(|row| row.bytes).sum();
    let mut rows: Rows = last
        .ledger
        .iter()
        .map(|row| {
            let share = (total > 0).then(|| row.bytes as f64 / total as f64);
            vec![human(row.bytes.into()), percent_or_na(share), row.owner.clone()]
        })
        .collect();
    rows.push(vec![human(total.into()), "100.0%".into(), "RSS".into()]);
    page.table(&["bytes", "share", "owner"], &rows);
}

fn allocator(page: &mut Page, observations: &[Observation]) {
    if observations.len() < 2 {
        return;
    }
    let times: Vec<f64> = observations.iter().map(|o| o.taken_at).collect();
    let line = |name: &str, value: fn(&Observation) -> Option<f64>| Line {
        name: name.to_owned(),
        values: observations.iter().map(value).collect(),
    };
    page.section("The allocator over time");
    let lines = [
        line("resident", |o| o.stats.resident.map(|v| v as f64)),
        line("active", |o| o.stats.active.map(|v| v as f64)),
        line("allocated", |o| o.stats.allocated.map(|v| v as f64)),
        line("rss", |o| o.rss().map(|v| v as f64)),
    ];
    page.markup(&Chart { times: &times, lines: &lines, stacked: false, bytes: true }.render());
    let lines = [line("fragmentation index", |o| o.fragmentation().index)];
    page.markup(&Chart { times: &times, lines: &lines, stacked: false, bytes: false }.render());
}

fn size_classes(page: &mut Page, last: &Observation) {
    let rows: Rows = classes(&last.stats.bins)
        .iter()
        .filter(|class| class.waste > 0)
        .take(ROWS)
        .map(|class| {
            let parts = [human(class.waste.into()), percent_or_na(class.share), percent_or_na(class.utilization)];
            parts.into_iter().chain([class.curslabs.to_string(), human(class.size.into())]).collect()
        })
        .collect();
    if !rows.is_empty() {
        page.section("Size classes by stranded bytes");
        page.table(&["waste", "of all waste", "in use", "slabs", "size class"], &rows);
    }
}

fn sites(page: &mut Page, observations: &[Observation]) {
    let with_sites: Vec<&Observation> = observations.iter().filter(|o| !o.sites.is_empty()).collect();
    let [first, .., last] = with_sites[..] else { return };
    page.section("Growth between the first and the last profile");
    let before = |name: &str| first.sites.iter().find(|site| site.name == name).map_or(0, |site| site.bytes);
    let mut grown: Vec<(i64, i64, &str)> =
        last.sites.iter().map(|site| (site.bytes - before(&site.name), site.bytes, &*site.name)).collect();
    grown.sort_by_key(|(delta, ..)| std::cmp::Reverse(delta.unsigned_abs()));
    let row = |&(delta, bytes, name): &(i64, i64, &str)| {
        vec![Unit::Bytes.change(delta.into()), human(bytes.into()), name.to_owned()]
    };
    page.table(&["change", "bytes", "function"], &grown.iter().take(ROWS).map(row).collect());
}

fn holders(page: &mut Page, profile: &Profile) {
    if profile.value_types.is_empty() {
        return;
    }
    let value = usual_value(profile);
    let unit = Unit::of(profile.value_types.get(value));
    for (heading, by) in
        [("What functions hold", GroupBy::Function), ("What Go functions hold outside of Go", GroupBy::Go)]
    {
        let ranking = profile.rank(value, by);
        let is_told = by == GroupBy::Function || ranking.rows.iter().any(|row| &*row.node.name != NO_GO);
        let rows: Rows = ranking
            .rows
            .iter()
            .filter(|row| row.flat != 0)
            .take(ROWS)
            .map(|row| {
                let share = (ranking.total != 0).then(|| row.flat as f64 / ranking.total as f64);
                let amounts = [unit.amount(row.flat.into()), percent_or_na(share), unit.amount(row.cum.into())];
                amounts.into_iter().chain([row.node.name.to_string()]).collect()
            })
            .collect();
        if is_told && !rows.is_empty() {
            page.section(heading);
            page.table(&["flat", "flat%", "cum", "function"], &rows);
        }
    }
}

fn flame_graph(page: &mut Page, profile: &Profile, title: &str) -> anyhow::Result<()> {
    let value = usual_value(profile);
    let mut tree = Tree::default();
    if !profile.value_types.is_empty() {
        tree.add_profile(profile, value, Side::New);
    }
    page.section("Flame graph");
    if tree.total() == 0 {
        page.text("The profile has no samples.");
        return Ok(());
    }
    let unit = Unit::of(profile.value_types.get(value));
    let title = format!("{} · {title}", unit.named(tree.total().into()));
    let svg = flame::render(&tree, &Picture { title: &title, unit: &unit, differential: false })?;
    page.picture(&svg, 620);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::packed_recording;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_recording_in_a_gzip_file_is_one() {
        let mut text = br#"{"kind":"header","schema":"offheap.record/1","pid":17}"#.to_vec();
        text.push(b'\n');
        for moment in 0..2000 {
            writeln!(text, r#"{{"kind":"observation","taken_at":{moment}}}"#).unwrap();
        }
        let whole = packed(&text);
        assert_eq!(packed_recording(&whole), Some((text.clone(), true)));
        let (rest, is_whole) = packed_recording(&whole[..whole.len() - 9]).unwrap();
        assert!(!is_whole && text.starts_with(&rest));
        for other in [&text, &packed(b"heap_v2/524288\n"), &whole[..11].to_vec(), &Vec::new()] {
            assert_eq!(packed_recording(other), None);
        }
    }
}
