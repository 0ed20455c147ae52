//! Flat and cumulative tables.

use super::group::{GroupBy, Grouping, Node, NodeId};
use super::{Profile, Sample};
use crate::sampling::SamplingPeriod;

/// A table of the values of one type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Sum over all samples.
    pub total: i64,
    /// The rows, by [`SortBy::Flat`].
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What the row is.
    pub node: Node,
    /// Value of the samples whose leaf is here.
    pub flat: i64,
    /// Value of the samples that have this anywhere in their stack.
    pub cum: i64,
    /// Standard error of `flat` that sampling leaves, where the number of picked allocations is known.
    pub flat_error: Option<f64>,
    /// Standard error of `cum` that sampling leaves, where the number of picked allocations is known.
    pub cum_error: Option<f64>,
}

/// Order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Largest flat value first.
    #[default]
    Flat,
    /// Largest cumulative value first.
    Cum,
}

impl Table {
    /// Sort the rows: by size whatever the sign, then by the other value, then by name.
    pub fn sort(&mut self, by: SortBy) {
        self.rows.sort_by(|a, b| {
            let key = |row: &Row| match by {
                SortBy::Flat => (row.flat.unsigned_abs(), row.cum.unsigned_abs()),
                SortBy::Cum => (row.cum.unsigned_abs(), row.flat.unsigned_abs()),
            };
            let names = || (&a.node.name, &a.node.file, a.node.line).cmp(&(&b.node.name, &b.node.file, b.node.line));
            key(b).cmp(&key(a)).then_with(names)
        });
    }
}

impl Profile {
    /// Rank what holds the values of this index.
    ///
    /// As in `go tool pprof`, a sample counts once for a row however often its stack comes back to it.
    #[must_use]
    pub fn rank(&self, value: usize, by: GroupBy) -> Table {
        let mut grouping = Grouping::new(self, by);
        let mut sums: Vec<Sum> = Vec::new();
        let mut total = 0_i64;
        let mut stack = Vec::new();
        for (number, sample) in (1_u64..).zip(&self.samples) {
            let weight = sample.values[value];
            total = total.saturating_add(weight);
            grouping.stack(sample, &mut stack);
            let variance = self.variance(sample, value);
            for (depth, &node) in stack.iter().enumerate() {
                let sum = sum_of(&mut sums, node);
                if depth == 0 {
                    sum.flat = sum.flat.saturating_add(weight);
                    add(&mut sum.flat_variance, variance);
                }
                if sum.last_sample != number {
                    sum.last_sample = number;
                    sum.cum = sum.cum.saturating_add(weight);
                    add(&mut sum.cum_variance, variance);
                }
            }
        }
        let rows = grouping.into_nodes().into_iter().zip(sums).map(|(node, sum)| sum.row(node)).collect();
        let mut table = Table { total, rows };
        table.sort(SortBy::Flat);
        table
    }

    /// Variance that sampling leaves in a sample's value; `None` when the number of picked allocations is not known.
    ///
    /// Memory is sampled by bytes. What else is measured is picked by an event that counts itself (`samples/count` of a
    /// CPU profile), n times with a variance of n, or in a way that the profile does not tell.
    pub(crate) fn variance(&self, sample: &Sample, value: usize) -> Option<f64> {
        if !self.measures_memory() {
            let picked = sample.values[self.period_type.as_ref().and_then(|_| self.value_index("samples"))?];
            let amount = sample.values[value] as f64;
            return Some(if amount == 0.0 { 0.0 } else { amount * amount / picked.unsigned_abs().max(1) as f64 });
        }
        let period = SamplingPeriod(u64::try_from(self.period).unwrap_or(0));
        let bytes = sample.values[value] as f64;
        if period.is_everything() || bytes == 0.0 {
            return Some(0.0);
        }
        let (picked, size) = self.picked(sample, value, period)?;
        let error = period.relative_error(picked, size) * bytes;
        Some(error * error)
    }

    /// How many allocations were picked for a sample's value, and their mean size.
    ///
    /// A file does not say, but an estimate of N objects of size z rests on N·p(z) of them.
    fn picked(&self, sample: &Sample, value: usize, period: SamplingPeriod) -> Option<(u64, f64)> {
        let kind = &self.value_types[value].kind;
        let place = |suffix: &str| self.value_index(&kind.replace("_objects", suffix).replace("_space", suffix));
        let (objects, bytes) = (place("_objects")?, place("_space")?);
        let (objects, bytes) =
            (sample.values[objects].unsigned_abs() as f64, sample.values[bytes].unsigned_abs() as f64);
        let size = if objects > 0.0 { bytes / objects } else { sample.label_number("bytes")? as f64 };
        let estimated = (objects * period.probability(size)).round() as u64;
        let is_live = kind.starts_with("inuse");
        Some((sample.picked.filter(|_| is_live).unwrap_or(estimated).max(1), size))
    }
}

struct Sum {
    flat: i64,
    cum: i64,
    flat_variance: Option<f64>,
    cum_variance: Option<f64>,
    /// Number of the sample that was last added to `cum`.
    last_sample: u64,
}

impl Sum {
    const ZERO: Self = Self { flat: 0, cum: 0, flat_variance: Some(0.0), cum_variance: Some(0.0), last_sample: 0 };

    fn row(self, node: Node) -> Row {
        Row {
            node,
            flat: self.flat,
            cum: self.cum,
            flat_error: self.flat_variance.map(f64::sqrt),
            cum_error: self.cum_variance.map(f64::sqrt),
        }
    }
}

fn sum_of(sums: &mut Vec<Sum>, node: NodeId) -> &mut Sum {
    let index = node as usize;
    while sums.len() <= index {
        sums.push(Sum::ZERO);
    }
    &mut sums[index]
}

/// One unknown part makes the sum unknown.
fn add(sum: &mut Option<f64>, part: Option<f64>) {
    *sum = sum.zip(part).map(|(a, b)| a + b);
}
