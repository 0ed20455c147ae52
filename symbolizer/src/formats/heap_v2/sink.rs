//! From the counts of a stack to samples of the profile.

use super::record::Counts;
use crate::error::DamageLog;
use crate::profile::{Label, LocationId, ProfileBuilder, Sample, ValueType};
use crate::sampling::{Estimate, SamplingPeriod, round};
use std::sync::Arc;

/// Turns corrected counts of stacks into samples with Go's four values.
#[derive(Debug)]
pub(crate) struct HeapSink {
    pub(crate) builder: ProfileBuilder,
    origin: Option<Label>,
    bytes_key: Arc<str>,
    /// First line that had bytes but no objects, and how many there were.
    pub(crate) without_objects: Option<(u64, u64)>,
    /// Line that was checked last.
    line: u64,
    /// First line whose numbers cannot be, and how many there were.
    impossible: Option<(u64, u64)>,
}

/// What no process holds: an exbibyte, or as many objects. A number beyond is a counter that ran below zero, or a damaged
/// one; it would drown all others, and sums of such do not fit.
const IMPOSSIBLE: f64 = (1_u64 << 60) as f64;

/// Estimates of the live and of all allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimates {
    pub(crate) allocated: Estimate,
    pub(crate) live: Estimate,
}

/// A part of a sample.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) estimates: Estimates,
    pub(crate) picked: Option<u64>,
    pub(crate) label: Option<Label>,
}

impl std::ops::AddAssign for Estimates {
    fn add_assign(&mut self, other: Self) {
        self.allocated += other.allocated;
        self.live += other.live;
    }
}

impl Estimates {
    fn is_possible(&self) -> bool {
        self.numbers().iter().all(|n| n.abs() <= IMPOSSIBLE)
    }

    /// In the order of Go's values.
    fn numbers(&self) -> [f64; 4] {
        let Self { allocated, live } = self;
        [allocated.objects, allocated.bytes, live.objects, live.bytes]
    }
}

impl Counts {
    /// Each half of a printed line corrected by its own mean.
    pub(crate) fn correct(self, period: SamplingPeriod) -> Estimates {
        Estimates {
            allocated: period.correct(self.allocated_objects, self.allocated_bytes),
            live: period.correct(self.live_objects, self.live_bytes),
        }
    }
}

/// A sink whose profile has the header of a heap profile; each sample says whose it is, if this is given.
pub(crate) fn heap_sink(period: SamplingPeriod, origin: Option<&str>) -> HeapSink {
    let mut builder = ProfileBuilder::new(ValueType::go_heap());
    let header = builder.header();
    header.period_type = Some(ValueType::new("space", "bytes"));
    header.period = i64::try_from(period.0.max(1)).unwrap_or(i64::MAX);
    let origin = origin.map(|origin| Label::text("origin", origin));
    HeapSink { builder, origin, bytes_key: "bytes".into(), without_objects: None, line: 0, impossible: None }
}

impl HeapSink {
    /// Remember a line with bytes and no objects: it cannot be corrected.
    pub(crate) fn check(&mut self, line: u64, counts: Counts) {
        self.line = line;
        let odd = |objects: i64, bytes: i64| objects == 0 && bytes != 0;
        if odd(counts.live_objects, counts.live_bytes) || odd(counts.allocated_objects, counts.allocated_bytes) {
            let (first, n) = self.without_objects.unwrap_or((line, 0));
            self.without_objects = Some((first, n + 1));
        }
    }

    /// Tell of lines whose numbers cannot be. They were left out.
    pub(crate) fn report_impossible(&mut self, damage: &mut DamageLog) {
        if let Some((line, n)) = self.impossible {
            let period = self.builder.header().period;
            let what = format!(
                "numbers that cannot be (above 2^60 when corrected for a sampling period of {period} bytes), left out; \
                 stacks of this kind: {n}"
            );
            if line > 0 { damage.at_line(line, what) } else { damage.whole(what) }
        }
    }

    /// Add a sample. One without any value says nothing and is left out.
    pub(crate) fn sample(
        &mut self,
        locations: Vec<LocationId>,
        estimates: Estimates,
        picked: Option<u64>,
        thread: Option<Label>,
    ) {
        if !estimates.is_possible() {
            let (first, n) = self.impossible.unwrap_or((self.line, 0));
            self.impossible = Some((first, n + 1));
            return;
        }
        self.add(locations, estimates.numbers().map(round), estimates, picked, thread);
    }

    /// Add samples that are parts of one, by thread for example. Each of them is corrected by its own mean size and
    /// rounded by itself, so that their sum is not quite the whole; they are scaled to add up to it.
    pub(crate) fn parts(&mut self, locations: &[LocationId], whole: Estimates, parts: Vec<Part>) {
        if !whole.is_possible() || parts.iter().any(|part| !part.estimates.is_possible()) {
            let (first, n) = self.impossible.unwrap_or((self.line, 0));
            self.impossible = Some((first, n + 1));
            return;
        }
        let wanted = whole.numbers().map(round);
        let mut sums = [0.0; 4];
        for part in &parts {
            sums = pairwise(sums, part.estimates.numbers(), |sum, number| sum + number);
        }
        let (mut reached, mut given) = ([0.0; 4], [0; 4]);
        for Part { estimates, picked, label } in parts {
            reached = pairwise(reached, estimates.numbers(), |sum, number| sum + number);
            let mut values = [0; 4];
            for index in 0..4 {
                if sums[index] > 0.0 {
                    // The last part reaches the sum itself, and so gets the rest.
                    let upto = round(wanted[index] as f64 * (reached[index] / sums[index]));
                    values[index] = upto - given[index];
                    given[index] = upto;
                }
            }
            self.add(locations.to_vec(), values, estimates, picked, label);
        }
        let rest = std::array::from_fn(|index| wanted[index] - given[index]);
        self.add(locations.to_vec(), rest, whole, Some(0), None);
    }

    fn add(
        &mut self,
        locations: Vec<LocationId>,
        values: [i64; 4],
        Estimates { allocated, live }: Estimates,
        picked: Option<u64>,
        thread: Option<Label>,
    ) {
        if values == [0; 4] {
            return;
        }
        let mut labels = Vec::with_capacity(2 + usize::from(thread.is_some()));
        labels.extend(self.origin.clone());
        labels.extend(mean_size(allocated).or_else(|| mean_size(live)).map(|size| {
            // Without a unit, as Go writes it: tools know that `bytes` is in bytes, and equal labels merge.
            Label::number(Arc::clone(&self.bytes_key), size, None)
        }));
        labels.extend(thread);
        self.builder.sample(Sample { locations, values: values.to_vec(), labels, picked });
    }
}

fn pairwise(a: [f64; 4], b: [f64; 4], of: impl Fn(f64, f64) -> f64) -> [f64; 4] {
    std::array::from_fn(|index| of(a[index], b[index]))
}

/// Average size of an object. Go takes that of all allocations, which are more than the live ones.
fn mean_size(estimate: Estimate) -> Option<i64> {
    (estimate.objects > 0.0).then(|| round(estimate.bytes / estimate.objects))
}
