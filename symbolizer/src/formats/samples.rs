//! The agent's sample table, JSON of schema `offheap.samples/1`.
//!
//! ```text
//! {"schema":"offheap.samples/1","taken_at":…,"pid":4711,"lg_sample":19,"maps":"55f6…","modules":[…],"threads":{"12":"w"},
//!  "sites":[{"stack":[140366…],"alloc_objects":…,"live":[{"size":300,"usable":320,"age":12.5,"thread":12}]}]}
//! ```
//!
//! It has what a dump lost to rounding: every live sample with its size, so that each is weighted by itself,
//! k(z) = 1/(1 − e^(−z/R)), and its age.

use super::heap_v2::{Estimates, HeapSink, Part, heap_sink};
use super::{Origin, ParseOptions, Parsed, ProcessIdentity, maps};
use crate::address::RuntimeAddress;
use crate::error::{DamageLog, ReadError};
use crate::profile::hash::FastMap;
use crate::profile::{Label, LocationId, Mapping};
use crate::sampling::{Estimate, SamplingPeriod, round};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

const FORMAT: &str = "offheap sample table";
const SCHEMA: &str = "offheap.samples/1";

/// The document as it is written. Keys that a later agent adds are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document<'a> {
    #[serde(borrow)]
    schema: Cow<'a, str>,
    taken_at: f64,
    recording_since: Option<f64>,
    pid: Option<u32>,
    host: Option<String>,
    exe: Option<String>,
    started_at: Option<f64>,
    lg_sample: u32,
    dropped: u64,
    maps: String,
    modules: Vec<Module>,
    threads: BTreeMap<u64, String>,
    sites: Vec<Site>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Module {
    path: String,
    start: u64,
    end: u64,
    build_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Site {
    stack: Vec<u64>,
    alloc_objects: f64,
    alloc_bytes: f64,
    live: Vec<Live>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Live {
    size: u64,
    usable: u64,
    age: f64,
    thread: u64,
}

impl Live {
    /// The allocator samples by the size of the class and not by that asked for; its dumps show that size too.
    fn class(&self) -> u64 {
        if self.usable == 0 { self.size } else { self.usable }
    }
}

/// The input begins like the table: its schema is the first key.
#[must_use]
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(128)];
    bytes.trim_ascii_start().starts_with(b"{") && memchr::memmem::find(head, b"\"offheap.samples/").is_some()
}

/// Read the table.
pub(crate) fn read(bytes: &[u8], options: &ParseOptions) -> Result<Parsed, ReadError> {
    let document: Document<'_> = serde_json::from_slice(bytes).map_err(|error| ReadError::Damaged {
        format: FORMAT,
        what: if error.is_eof() { format!("it is cut at byte {}", bytes.len()) } else { error.to_string() },
    })?;
    if document.schema != SCHEMA {
        let what = format!("schema {} is not known, {SCHEMA} is; a newer offheap is needed", document.schema);
        return Err(ReadError::Damaged { format: FORMAT, what });
    }
    if document.lg_sample >= 63 {
        let what = format!("lg_sample of {} is no sampling period", document.lg_sample);
        return Err(ReadError::Damaged { format: FORMAT, what });
    }
    Ok(Reader::new(&document, options).read())
}

struct Reader<'a> {
    document: &'a Document<'a>,
    options: &'a ParseOptions,
    period: SamplingPeriod,
    sink: HeapSink,
    labels: FastMap<u64, Label>,
    left_out_by_age: u64,
}

impl<'a> Reader<'a> {
    fn new(document: &'a Document<'a>, options: &'a ParseOptions) -> Self {
        let period = SamplingPeriod(1 << document.lg_sample);
        let sink = heap_sink(period, Some("native"));
        Self { document, options, period, sink, labels: FastMap::default(), left_out_by_age: 0 }
    }

    fn read(mut self) -> Parsed {
        let document = self.document;
        let mut log = DamageLog::default();
        let mut mappings = maps::parse(document.maps.as_bytes(), 0, &mut log);
        name_build_ids(&mut mappings, &document.modules);
        maps::main_first(&mut mappings, document.exe.as_deref());
        let header = self.sink.builder.header();
        header.mappings = mappings;
        header.time_nanos = nanos(document.taken_at);
        header.duration_nanos = document.recording_since.map_or(0, |since| nanos((document.taken_at - since).max(0.0)));
        document.sites.iter().for_each(|site| self.site(site));
        self.sink.builder.assign_mappings();
        let notes = self.notes();
        let profile = self.sink.builder.finish();
        Parsed {
            profile,
            format: FORMAT,
            damage: log.into_entries(),
            notes,
            origin: Origin::Native,
            process: ProcessIdentity {
                pid: document.pid,
                host: document.host.clone(),
                exe: document.exe.clone(),
                started_at: document.started_at,
                recording_since: document.recording_since,
                taken_at: Some(document.taken_at),
            },
            ..Parsed::default()
        }
    }

    fn site(&mut self, site: &Site) {
        let address = |&address: &u64| RuntimeAddress(address).of_call();
        let locations: Vec<LocationId> =
            site.stack.iter().map(address).map(|a| self.sink.builder.location_at(a)).collect();
        let of_age = self.options.min_age.is_some() || self.options.max_age.is_some();
        // What was allocated and freed has no age and no thread.
        let allocated = match of_age {
            true => Estimate::default(),
            false => Estimate { objects: positive(site.alloc_objects), bytes: positive(site.alloc_bytes) },
        };
        if self.options.by_size {
            self.site_by_size(site, &locations);
            self.sink.sample(locations, Estimates { allocated, live: Estimate::default() }, Some(0), None);
            return;
        }
        if !self.options.by_thread {
            let (live, picked) = self.live(site, |_| true);
            self.sink.sample(locations, Estimates { allocated, live }, Some(picked), None);
            return;
        }
        let mut threads: Vec<u64> = site.live.iter().map(|sample| sample.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut parts = Vec::with_capacity(threads.len());
        for thread in threads {
            let (live, picked) = self.live(site, |sample| sample.thread == thread);
            parts.push(part(live, picked, self.label(thread)));
        }
        self.sink.parts(&locations, sum(&parts), parts);
        self.sink.sample(locations, Estimates { allocated, live: Estimate::default() }, Some(0), None);
    }

    fn site_by_size(&mut self, site: &Site, locations: &[LocationId]) {
        let mut sizes: Vec<u64> = site.live.iter().map(Live::class).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut parts = Vec::with_capacity(sizes.len());
        for size in sizes {
            let (live, picked) = self.live(site, |sample| sample.class() == size);
            // Samples of one class have one weight, so their plain mean is the mean over what they stand for.
            let of_class = || site.live.iter().filter(|sample| sample.class() == size);
            let age = of_class().map(|sample| positive(sample.age)).sum::<f64>() / of_class().count() as f64;
            let label = Label::number("age", age.round() as i64, Some("seconds".into()));
            parts.push(part(live, picked, label));
        }
        self.sink.parts(locations, sum(&parts), parts);
    }

    /// Estimate of the live samples, and their number.
    fn live(&mut self, site: &Site, wanted: impl Fn(&Live) -> bool) -> (Estimate, u64) {
        let (mut estimate, mut picked) = (Estimate::default(), 0);
        for sample in site.live.iter().filter(|sample| wanted(sample)) {
            if !self.is_of_age(sample.age) {
                self.left_out_by_age += 1;
                continue;
            }
            let size = sample.class() as f64;
            let weight = self.period.weight(size);
            estimate += Estimate { objects: weight, bytes: size * weight };
            picked += 1;
        }
        (estimate, picked)
    }

    fn is_of_age(&self, age_seconds: f64) -> bool {
        let age = Duration::try_from_secs_f64(positive(age_seconds)).unwrap_or(Duration::MAX);
        self.options.min_age.is_none_or(|min| age >= min) && self.options.max_age.is_none_or(|max| age <= max)
    }

    /// `worker (4711)`, or `4711` for a thread without a name.
    fn label(&mut self, id: u64) -> Label {
        let names = &self.document.threads;
        let make = || match names.get(&id).filter(|name| !name.is_empty()) {
            Some(name) => Label::text("thread", format!("{name} ({id})")),
            None => Label::text("thread", id.to_string()),
        };
        self.labels.entry(id).or_insert_with(make).clone()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let document = self.document;
        if document.dropped > 0 {
            let live: usize = document.sites.iter().map(|site| site.live.len()).sum();
            notes.push(format!(
                "{} samples did not fit into the agent's table and are missing beside the {live} that did",
                document.dropped
            ));
        }
        if self.left_out_by_age > 0 {
            notes.push(format!("{} live samples are left out by their age", self.left_out_by_age));
        }
        if document.sites.is_empty() {
            notes.push("no allocation was sampled: profiling was not started, or nothing large enough happened".into());
        }
        notes
    }
}

/// Give the mappings the build ids of the modules that hold them.
fn name_build_ids(mappings: &mut [Mapping], modules: &[Module]) {
    let mut by_start: Vec<&Module> = modules.iter().filter(|m| !m.build_id.is_empty()).collect();
    by_start.sort_by_key(|module| module.start);
    for mapping in mappings {
        let after = by_start.partition_point(|module| module.start <= mapping.start.0);
        if let Some(module) = after.checked_sub(1).map(|i| by_start[i])
            && mapping.start.0 < module.end
            && (*mapping.path == *module.path
                || module.path.is_empty()
                || !mapping.is_file()
                || same_name(mapping, module))
        {
            mapping.build_id = module.build_id.as_str().into();
        }
    }
}

/// The loader may know a file by another path than the kernel: through a link, or relative to a container's root.
fn same_name(mapping: &Mapping, module: &Module) -> bool {
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let stem = |name: String| name.split(".so").next().map(str::to_owned);
    name(&mapping.path).and_then(stem) == name(&module.path).and_then(stem)
}

fn part(live: Estimate, picked: u64, label: Label) -> Part {
    Part { estimates: Estimates { allocated: Estimate::default(), live }, picked: Some(picked), label: Some(label) }
}

fn sum(parts: &[Part]) -> Estimates {
    let mut sum = Estimates::default();
    parts.iter().for_each(|part| sum += part.estimates);
    sum
}

fn positive(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

fn nanos(seconds: f64) -> i64 {
    round(positive(seconds) * 1e9)
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::formats::{ParseOptions, parse};
    use std::time::Duration;

    const TABLE: &str = r#"{"schema":"offheap.samples/1","taken_at":1700000100.5,"recording_since":1700000000.5,
        "pid":4711,"exe":"/srv/app","lg_sample":19,"dropped":3,"a_later_key":[1],
        "maps":"1000-2000 r-xp 00000000 fd:01 1 /lib/libz.so.1.2\n5000-6000 r-xp 00001000 fd:01 2 /srv/app\n",
        "modules":[{"path":"/lib/libz.so.1","start":4096,"end":8192,"build_id":"ab12"},
                   {"path":"/srv/app","start":16384,"end":24576,"build_id":"cd34"}],
        "threads":{"12":"writer"},
        "sites":[{"stack":[4112,20496],"end":"root","alloc_objects":100000.4,"alloc_bytes":1600006.0,"alloc_samples":3,
                  "live":[{"size":10,"usable":16,"age":5.0,"thread":12},{"size":16,"usable":16,"age":700.0,"thread":13},
                          {"size":8388608,"usable":8388608,"age":700.0,"thread":12}]}]}"#;

    #[test]
    fn samples_are_weighted_one_by_one() {
        let parsed = parse(TABLE.as_bytes()).expect("valid");
        let sample = &parsed.profile.samples[0];
        // k is 32,768.5 for sixteen bytes and 1.0000001 for eight megabytes.
        assert_eq!(sample.values, [100_000, 1_600_006, 65_538, 9_437_201]);
        assert_eq!((sample.picked, sample.label_text("origin")), (Some(3), Some("native")));
        assert_eq!(parsed.profile.time_nanos, 1_700_000_100_500_000_000);
        assert_eq!(parsed.profile.duration_nanos, 100_000_000_000);
        assert_eq!(parsed.process.pid, Some(4711));
        assert!(parsed.notes[0].starts_with("3 samples"), "{:?}", parsed.notes);
        let build_ids: Vec<_> = parsed.profile.mappings.iter().map(|m| (&*m.path, &*m.build_id)).collect();
        assert_eq!(build_ids, [("/srv/app", "cd34"), ("/lib/libz.so.1.2", "ab12")]);
        let addresses: Vec<u64> = parsed.profile.locations.iter().map(|l| l.address.0).collect();
        assert_eq!(addresses, [4111, 20495]);
        assert!(parsed.profile.locations.iter().all(|l| l.mapping.is_some()));
    }

    #[test]
    fn ages_and_threads_are_kept_apart_when_asked() {
        let young = ParseOptions { max_age: Some(Duration::from_secs(600)), ..ParseOptions::default() };
        let parsed = read(TABLE.as_bytes(), &young).expect("valid");
        assert_eq!(parsed.profile.samples[0].values, [0, 0, 32_769, 524_296]);
        assert!(parsed.notes.iter().any(|n| n.starts_with("2 live samples")), "{:?}", parsed.notes);

        let by_thread = ParseOptions { by_thread: true, ..ParseOptions::default() };
        let parsed = read(TABLE.as_bytes(), &by_thread).expect("valid");
        let rows: Vec<_> =
            parsed.profile.samples.iter().map(|s| (s.label_text("thread"), s.values[3], s.values[1])).collect();
        assert_eq!(rows, [(Some("writer (12)"), 8_912_905, 0), (Some("13"), 524_296, 0), (None, 0, 1_600_006)]);
    }

    #[test]
    fn size_classes_are_kept_apart_when_asked() {
        let by_size = ParseOptions { by_size: true, ..ParseOptions::default() };
        let parsed = read(TABLE.as_bytes(), &by_size).expect("valid");
        let number = |sample: &crate::profile::Sample, key| sample.label_number(key);
        let rows: Vec<_> = parsed
            .profile
            .samples
            .iter()
            .map(|s| (number(s, "bytes"), number(s, "age"), s.values[2], s.values[1]))
            .collect();
        assert_eq!(
            rows,
            [(Some(16), Some(353), 65_537, 0), (Some(8_388_608), Some(700), 1, 0), (Some(16), None, 0, 1_600_006)]
        );
    }

    #[test]
    fn damaged_tables_are_refused_with_a_reason() {
        for (table, reason) in [
            (&TABLE[..300], "cut"),
            (&TABLE.replace("samples/1", "samples/2"), "schema"),
            (&TABLE.replace("\"lg_sample\":19", "\"lg_sample\":64"), "lg_sample"),
            (&TABLE.replace("4711", "\"x\""), "line"),
        ] {
            let message = parse(table.as_bytes()).expect_err(reason).to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
