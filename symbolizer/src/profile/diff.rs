//! What changed between two readings.
//!
//! Rows are joined by what they are called. Named code keeps its name across restarts and releases; code without a name
//! is called `library+0x1234` by its offset in the file, which survives address space layout randomisation but not a
//! rebuild: of a library whose build id changed, such rows are not joined.

use super::group::{GroupBy, Node};
use super::hash::{FastMap, FastSet};
use super::merge::{MergeError, Part, merge};
use super::rank::{Row, SortBy};
use super::{Label, Profile};
use std::fmt;
use std::sync::Arc;

/// The change of one value, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    /// Sum of the base.
    pub base_total: i64,
    /// Sum of the new profile.
    pub new_total: i64,
    /// Standard error of the difference of the sums that sampling leaves, where it is known.
    pub total_error: Option<f64>,
    /// Seconds between the two readings, where both have a time.
    pub seconds: Option<f64>,
    /// The rows, largest change first.
    pub rows: Vec<DiffRow>,
}

/// The change of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiffRow {
    /// What the row is.
    pub node: Node,
    /// Value in the base.
    pub base: i64,
    /// Value in the new profile.
    pub new: i64,
    /// Standard error of the difference that sampling leaves, where it is known.
    pub error: Option<f64>,
    /// What became of it.
    pub state: State,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// It has nothing in the base.
    New,
    /// It has nothing in the new profile.
    Gone,
    /// It holds more.
    Grew,
    /// It holds less.
    Shrank,
    /// It holds the same, or the change is within the sampling error.
    #[default]
    Same,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Grew => "grew",
            Self::Shrank => "shrank",
            Self::Same => "same",
        })
    }
}

impl DiffRow {
    /// New minus base.
    #[must_use]
    pub fn delta(&self) -> i64 {
        self.new.saturating_sub(self.base)
    }

    /// The change is larger than sampling alone would make in 19 of 20 readings of an unchanged program. Without
    /// knowledge of the error every change counts.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        is_significant(self.delta(), self.error)
    }
}

impl Diff {
    /// New minus base.
    #[must_use]
    pub fn delta(&self) -> i64 {
        self.new_total.saturating_sub(self.base_total)
    }

    /// The same as [`DiffRow::is_significant`], of the totals.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        is_significant(self.delta(), self.total_error)
    }
}

/// Two standard errors: the 95 % interval of a sum of many samples.
fn is_significant(delta: i64, error: Option<f64>) -> bool {
    const STANDARD_ERRORS: f64 = 2.0;
    delta != 0 && error.is_none_or(|error| delta.unsigned_abs() as f64 > STANDARD_ERRORS * error)
}

/// Compare two profiles by the value of this name, row by row, flat or cumulative.
///
/// # Errors
/// When one of them has no such value.
pub fn diff(base: &Profile, new: &Profile, kind: &str, by: GroupBy, measure: SortBy) -> Result<Diff, MergeError> {
    let (base_value, new_value) = value_indexes(base, new, kind)?;
    let (base_table, new_table) = (base.rank(base_value, by), new.rank(new_value, by));
    let rebuilt = rebuilt_modules(base, new);
    let mut rows: Vec<DiffRow> = Vec::new();
    let mut joined = FastMap::<Key, usize>::default();
    for (side, table) in [(Side::Base, base_table.rows), (Side::New, new_table.rows)] {
        for row in table {
            let key = key(&row.node, by, side, &rebuilt);
            let index = *joined.entry(key).or_insert_with(|| {
                rows.push(DiffRow { node: row.node.clone(), error: Some(0.0), ..DiffRow::default() });
                rows.len() - 1
            });
            add(&mut rows[index], &row, side, measure);
        }
    }
    for row in &mut rows {
        row.error = row.error.map(f64::sqrt);
        row.state = state(row);
    }
    rows.retain(|row| row.base != 0 || row.new != 0);
    rows.sort_by(|a, b| {
        let size = |row: &DiffRow| row.delta().unsigned_abs();
        size(b).cmp(&size(a)).then_with(|| b.new.cmp(&a.new)).then_with(|| a.node.name.cmp(&b.node.name))
    });
    let total_error = total_variance(base, base_value).zip(total_variance(new, new_value));
    Ok(Diff {
        base_total: base_table.total,
        new_total: new_table.total,
        total_error: total_error.map(|(a, b)| (a + b).sqrt()),
        seconds: seconds(base, new),
        rows,
    })
}

/// The change as a profile, its values those of `go tool pprof -diff_base`: the samples of the base negated and marked
/// with the label by which stock tools take percentages of the base.
///
/// # Errors
/// When the profiles do not measure the same.
pub fn diff_profile(base: &Profile, new: &Profile) -> Result<Profile, MergeError> {
    let mark = Label::text("pprof::base", "true");
    let mut profile = merge(&[Part::new(base).negated().labelled(mark), Part::new(new)])?;
    profile.time_nanos = new.time_nanos;
    profile.duration_nanos = seconds(base, new).map_or(0, |s| (s * 1e9) as i64);
    Ok(profile)
}

fn value_indexes(base: &Profile, new: &Profile, kind: &str) -> Result<(usize, usize), MergeError> {
    base.value_index(kind).zip(new.value_index(kind)).ok_or_else(|| {
        let list = |p: &Profile| p.value_types.iter().map(|t| &*t.kind).collect::<Vec<_>>().join(" ");
        MergeError::ValueTypes { first: list(base), other: list(new) }
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Base,
    New,
}

/// Name, file, line, and the side of a row that must not be joined.
type Key = (Arc<str>, Option<Arc<str>>, Option<i64>, Option<Side>);

fn key(node: &Node, by: GroupBy, side: Side, rebuilt: &FastSet<Arc<str>>) -> Key {
    let moved = |module: &Arc<str>| {
        rebuilt.contains(module) && node.name.strip_prefix(&**module).is_some_and(|rest| rest.starts_with("+0x"))
    };
    let apart = node.module.as_ref().is_some_and(moved).then_some(side);
    let name = Arc::clone(&node.name);
    match by {
        GroupBy::Line => (name, node.file.clone(), node.line, apart),
        GroupBy::FileFunction => (name, node.file.clone(), None, apart),
        _ => (name, None, None, apart),
    }
}

/// Base names of the modules whose build ids differ.
fn rebuilt_modules(base: &Profile, new: &Profile) -> FastSet<Arc<str>> {
    let ids = |profile: &Profile| {
        let known = profile.mappings.iter().filter(|m| !m.build_id.is_empty());
        known.map(|m| (Arc::from(m.base_name()), Arc::clone(&m.build_id))).collect::<FastMap<Arc<str>, Arc<str>>>()
    };
    let (base, new) = (ids(base), ids(new));
    base.into_iter().filter(|(name, id)| new.get(name).is_some_and(|other| other != id)).map(|(name, _)| name).collect()
}

/// Add a row of one side; `error` holds the variance while the sides are added.
fn add(to: &mut DiffRow, row: &Row, side: Side, measure: SortBy) {
    let (value, error) = match measure {
        SortBy::Flat => (row.flat, row.flat_error),
        SortBy::Cum => (row.cum, row.cum_error),
    };
    let sum = match side {
        Side::Base => &mut to.base,
        Side::New => &mut to.new,
    };
    *sum = sum.saturating_add(value);
    to.error = to.error.zip(error).map(|(a, b)| a + b * b);
}

fn state(row: &DiffRow) -> State {
    match (row.base, row.new) {
        (0, 0) => State::Same,
        (0, _) => State::New,
        (_, 0) => State::Gone,
        _ if !row.is_significant() => State::Same,
        (base, new) if new > base => State::Grew,
        _ => State::Shrank,
    }
}

fn total_variance(profile: &Profile, value: usize) -> Option<f64> {
    profile.samples.iter().map(|sample| profile.variance(sample, value)).sum()
}

fn seconds(base: &Profile, new: &Profile) -> Option<f64> {
    let between = new.time_nanos.checked_sub(base.time_nanos)?;
    (base.time_nanos > 0 && new.time_nanos > 0 && between > 0).then(|| between as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::{State, diff, diff_profile};
    use crate::address::{FileOffset, RuntimeAddress};
    use crate::profile::{GroupBy, Line, Mapping, Profile, ProfileBuilder, Sample, SortBy, ValueType};

    /// A process whose library stands at `base`; each entry is a function (or an offset in the library), the number of
    /// picked objects, and bytes.
    fn process(base: u64, build_id: &str, entries: &[(&str, u64, i64)]) -> Profile {
        let mut builder = ProfileBuilder::new(ValueType::go_heap());
        let mapping = builder.mapping(Mapping {
            start: RuntimeAddress(base),
            end: RuntimeAddress(base + 0x1_0000),
            offset: FileOffset(0x1000),
            path: "/usr/lib/librock.so.7".into(),
            build_id: build_id.into(),
            ..Mapping::default()
        });
        builder.header().period = 524_288;
        for (place, (name, picked, bytes)) in (0_u64..).zip(entries) {
            let offset = name.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16).expect("hex"));
            let location = builder.location(mapping, RuntimeAddress(base + offset.unwrap_or(0x8000 + place)));
            if offset.is_none() {
                let function = builder.function(name, name, "rock.cc", 0);
                builder.location_mut(location).lines = vec![Line { function, line: 1, column: 0 }];
            }
            let values = vec![0, 0, bytes / 16, *bytes];
            builder.sample(Sample { locations: vec![location], values, picked: Some(*picked), ..Sample::default() });
        }
        builder.finish()
    }

    fn states(base: &Profile, new: &Profile) -> Vec<(String, i64, i64, State)> {
        let diff = diff(base, new, "inuse_space", GroupBy::Function, SortBy::Flat).expect("heap profiles");
        diff.rows.iter().map(|r| (r.node.name.to_string(), r.base, r.new, r.state)).collect()
    }

    #[test]
    fn rows_are_new_gone_grown_shrunk_or_the_same() {
        let base = process(
            0x7000_0000,
            "a",
            &[("gone", 9, 900), ("grew", 100, 1000), ("shrank", 900, 9000), ("noise", 9, 9000)],
        );
        let new = process(
            0x9000_0000,
            "a",
            &[("new", 5, 500), ("grew", 400, 4000), ("shrank", 100, 1000), ("noise", 8, 8000)],
        );
        assert_eq!(
            states(&base, &new),
            [
                ("shrank".into(), 9000, 1000, State::Shrank),
                ("grew".into(), 1000, 4000, State::Grew),
                ("noise".into(), 9000, 8000, State::Same),
                ("gone".into(), 900, 0, State::Gone),
                ("new".into(), 0, 500, State::New),
            ]
        );
    }

    #[test]
    fn code_without_a_name_is_joined_by_its_offset_while_the_build_is_the_same() {
        let base = process(0x7000_0000, "a", &[("0x500", 900, 9000)]);
        assert_eq!(
            states(&base, &process(0x9000_0000, "a", &[("0x500", 900, 9000)])),
            [("librock.so.7+0x1500".into(), 9000, 9000, State::Same)]
        );
        let rebuilt = states(&base, &process(0x9000_0000, "b", &[("0x500", 900, 9000)]));
        assert_eq!(rebuilt.len(), 2, "{rebuilt:?}");
        assert!(rebuilt.iter().all(|(_, _, _, state)| matches!(state, State::New | State::Gone)));
    }

    #[test]
    fn totals_have_their_error_and_rates_their_time() {
        let mut base = process(0x7000_0000, "a", &[("f", 100, 10_000)]);
        let mut new = process(0x7000_0000, "a", &[("f", 100, 10_000)]);
        (base.time_nanos, new.time_nanos) = (1_000_000_000, 31_000_000_000);
        let diff = diff(&base, &new, "inuse_space", GroupBy::Function, SortBy::Cum).expect("heap profiles");
        assert_eq!((diff.base_total, diff.delta(), diff.seconds), (10_000, 0, Some(30.0)));
        // Each side has 1/√100 of 10,000.
        let error = diff.total_error.expect("known");
        assert!((error - 1414.2).abs() < 1.0, "{error}");
        assert!(!diff.is_significant());
    }

    #[test]
    fn the_profile_of_a_change_keeps_both_sides() {
        let base = process(0x7000_0000, "a", &[("f", 1, 100), ("g", 1, 50)]);
        let new = process(0x9000_0000, "a", &[("f", 1, 300)]);
        let profile = diff_profile(&base, &new).expect("alike");
        assert_eq!((profile.mappings.len(), profile.locations.len(), profile.total(3)), (1, 2, 150));
        let marked: i64 =
            profile.samples.iter().filter(|s| s.label_text("pprof::base") == Some("true")).map(|s| s.values[3]).sum();
        assert_eq!(marked, -150);
    }

    #[test]
    fn a_value_that_one_side_lacks_is_refused() {
        let base = process(0x7000_0000, "a", &[]);
        assert!(diff(&base, &base, "cpu", GroupBy::Function, SortBy::Flat).is_err());
    }
}
