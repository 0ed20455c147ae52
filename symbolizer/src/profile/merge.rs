//! Several profiles in one.
//!
//! Values are joined by what they are called and never by their place. Mappings of one image become one, whatever
//! address each process had it at: a location is moved along with its mapping, so that it keeps its offset in the
//! image. Samples of equal stacks and labels are added.

use super::hash::FastMap;
use super::{Function, FunctionId, Label, Line, Location, LocationId, Mapping, MappingId, Profile, Sample, ValueType};
use crate::address::RuntimeAddress;
use std::sync::Arc;
use thiserror::Error;

/// The profiles cannot be put together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MergeError {
    /// There was none.
    #[error("there is no profile to merge")]
    Nothing,
    /// They measure different things.
    #[error("the profiles measure different things: {first} and {other}")]
    ValueTypes {
        /// Value types of the first profile.
        first: String,
        /// Value types of one that differs.
        other: String,
    },
    /// Their values are in different units between samples.
    #[error("the profiles count different events: {first} and {other}")]
    PeriodTypes {
        /// Period type of the first profile.
        first: String,
        /// Period type of one that differs.
        other: String,
    },
}

/// A profile with what is done to its samples on the way.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    profile: &'a Profile,
    negated: bool,
    label: Option<Label>,
}

impl<'a> Part<'a> {
    /// The profile as it is.
    #[must_use]
    pub fn new(profile: &'a Profile) -> Self {
        Self { profile, negated: false, label: None }
    }

    /// Its values are subtracted.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { negated: true, ..self }
    }

    /// Its samples get this label, unless they have one of this key.
    #[must_use]
    pub fn labelled(self, label: Label) -> Self {
        Self { label: Some(label), ..self }
    }
}

/// Put profiles together.
///
/// A heap profile with the values in use alone is taken as one of four types whose other two are not known, and gets
/// zeros there.
///
/// # Errors
/// When they do not measure the same.
pub fn merge(parts: &[Part<'_>]) -> Result<Profile, MergeError> {
    let value_types = common_value_types(parts)?;
    check_period_types(parts)?;
    let mut merger = Merger::new(value_types);
    parts.iter().for_each(|part| merger.add(part));
    Ok(merger.profile)
}

/// The value types of the result.
fn common_value_types(parts: &[Part<'_>]) -> Result<Vec<ValueType>, MergeError> {
    let first = &parts.first().ok_or(MergeError::Nothing)?.profile.value_types;
    let go = ValueType::go_heap();
    let holds =
        |set: &[ValueType], types: &[ValueType]| types.iter().all(|t| set.contains(&modern(t)) || set.contains(t));
    if parts.iter().all(|part| part.profile.value_types == *first) {
        return Ok(first.clone());
    }
    let set = if holds(&go, first) { &go } else { first };
    for part in parts {
        let types = &part.profile.value_types;
        let same_set = holds(set, types) && (*set == go || types.len() == set.len());
        if !same_set {
            return Err(MergeError::ValueTypes { first: list(first), other: list(types) });
        }
    }
    Ok(set.clone())
}

/// Older profiles call the values in use `objects` and `space`.
fn modern(value_type: &ValueType) -> ValueType {
    match (&*value_type.kind, &*value_type.unit) {
        ("objects", "count") => ValueType::new("inuse_objects", "count"),
        ("space", "bytes") => ValueType::new("inuse_space", "bytes"),
        _ => value_type.clone(),
    }
}

fn list(types: &[ValueType]) -> String {
    types.iter().map(|t| format!("{}/{}", t.kind, t.unit)).collect::<Vec<_>>().join(" ")
}

fn check_period_types(parts: &[Part<'_>]) -> Result<(), MergeError> {
    let mut types = parts.iter().filter_map(|part| part.profile.period_type.as_ref());
    let Some(first) = types.next() else { return Ok(()) };
    match types.find(|t| *t != first) {
        Some(other) => {
            let show = |t: &ValueType| format!("{}/{}", t.kind, t.unit);
            Err(MergeError::PeriodTypes { first: show(first), other: show(other) })
        }
        None => Ok(()),
    }
}

type MappingKey = (u64, u64, Arc<str>);
type LocationKey = (Option<MappingId>, u64, bool, Box<[Line]>);
type SampleKey = (Box<[LocationId]>, Box<[Label]>);

struct Merger {
    profile: Profile,
    mappings: FastMap<MappingKey, MappingId>,
    functions: FastMap<Function, FunctionId>,
    locations: FastMap<LocationKey, LocationId>,
    samples: FastMap<SampleKey, usize>,
}

/// Where the parts of one profile stand in the result.
struct Translation {
    /// For each mapping, the one it became and how far its addresses move.
    mappings: Vec<(MappingId, u64)>,
    functions: Vec<FunctionId>,
    locations: Vec<LocationId>,
    /// For each value of the result, its place in the part.
    values: Vec<Option<usize>>,
}

impl Merger {
    fn new(value_types: Vec<ValueType>) -> Self {
        Self {
            profile: Profile { value_types, ..Profile::default() },
            mappings: FastMap::default(),
            functions: FastMap::default(),
            locations: FastMap::default(),
            samples: FastMap::default(),
        }
    }

    fn add(&mut self, part: &Part<'_>) {
        let from = part.profile;
        self.header(from);
        let place = |wanted: &ValueType| from.value_types.iter().position(|t| t == wanted || modern(t) == *wanted);
        let mut translation = Translation {
            mappings: from.mappings.iter().map(|m| self.mapping(m)).collect(),
            functions: from.functions.iter().map(|f| self.function(f)).collect(),
            locations: Vec::with_capacity(from.locations.len()),
            values: self.profile.value_types.iter().map(place).collect(),
        };
        for location in &from.locations {
            let id = self.location(location, &translation);
            translation.locations.push(id);
        }
        for sample in &from.samples {
            self.sample(sample, part, &translation);
        }
    }

    /// The earliest time, the whole duration, the longest period, every remark once.
    fn header(&mut self, from: &Profile) {
        let to = &mut self.profile;
        if from.time_nanos != 0 && (to.time_nanos == 0 || from.time_nanos < to.time_nanos) {
            to.time_nanos = from.time_nanos;
        }
        to.duration_nanos = to.duration_nanos.saturating_add(from.duration_nanos);
        to.period = to.period.max(from.period);
        to.period_type = to.period_type.take().or_else(|| from.period_type.clone());
        to.default_value_type = to.default_value_type.take().or_else(|| from.default_value_type.clone());
        to.drop_frames = to.drop_frames.take().or_else(|| from.drop_frames.clone());
        to.keep_frames = to.keep_frames.take().or_else(|| from.keep_frames.clone());
        for comment in &from.comments {
            if !to.comments.contains(comment) {
                to.comments.push(Arc::clone(comment));
            }
        }
    }

    fn mapping(&mut self, mapping: &Mapping) -> (MappingId, u64) {
        // The end of a segment may be rounded or not; its pages are the same.
        const PAGE: u64 = 4096;
        let size = mapping.end.0.wrapping_sub(mapping.start.0).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let identity = if mapping.build_id.is_empty() { &mapping.path } else { &mapping.build_id };
        let key = (size, mapping.offset.0, Arc::clone(identity));
        let next = MappingId(self.profile.mappings.len() as u32);
        let id = *self.mappings.entry(key).or_insert(next);
        if id == next {
            self.profile.mappings.push(mapping.clone());
            return (id, 0);
        }
        let known = &mut self.profile.mappings[id.0 as usize];
        known.has_functions &= mapping.has_functions;
        known.has_filenames &= mapping.has_filenames;
        known.has_line_numbers &= mapping.has_line_numbers;
        known.has_inline_frames |= mapping.has_inline_frames;
        (id, known.start.0.wrapping_sub(mapping.start.0))
    }

    fn function(&mut self, function: &Function) -> FunctionId {
        let next = FunctionId(self.profile.functions.len() as u32);
        let id = *self.functions.entry(function.clone()).or_insert(next);
        if id == next {
            self.profile.functions.push(function.clone());
        }
        id
    }

    fn location(&mut self, location: &Location, translation: &Translation) -> LocationId {
        let moved = location.mapping.map(|id| translation.mappings[id.0 as usize]);
        let (mapping, distance) = moved.map_or((None, 0), |(id, distance)| (Some(id), distance));
        let address = RuntimeAddress(location.address.0.wrapping_add(distance));
        let function = |id: FunctionId| translation.functions[id.0 as usize];
        let lines: Box<[Line]> =
            location.lines.iter().map(|line| Line { function: function(line.function), ..*line }).collect();
        let key = (mapping, address.0, location.is_folded, lines);
        if let Some(&id) = self.locations.get(&key) {
            return id;
        }
        let id = LocationId(self.profile.locations.len() as u32);
        let lines = key.3.to_vec();
        self.profile.locations.push(Location { mapping, address, lines, is_folded: location.is_folded });
        self.locations.insert(key, id);
        id
    }

    fn sample(&mut self, sample: &Sample, part: &Part<'_>, translation: &Translation) {
        let value = |place: &Option<usize>| {
            let value = place.and_then(|i| sample.values.get(i)).copied().unwrap_or_default();
            if part.negated { value.saturating_neg() } else { value }
        };
        let values: Vec<i64> = translation.values.iter().map(value).collect();
        let locations: Box<[LocationId]> =
            sample.locations.iter().map(|id| translation.locations[id.0 as usize]).collect();
        let mut labels = sample.labels.clone();
        if let Some(label) = &part.label
            && !labels.iter().any(|l| l.key == label.key)
        {
            labels.push(label.clone());
        }
        labels.sort();
        let key = (locations, labels.into());
        if let Some(&index) = self.samples.get(&key) {
            let known = &mut self.profile.samples[index];
            known.values.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value));
            known.picked = known.picked.zip(sample.picked).map(|(a, b)| a.saturating_add(b));
            return;
        }
        let (locations, labels) = (key.0.to_vec(), key.1.to_vec());
        self.samples.insert(key, self.profile.samples.len());
        self.profile.samples.push(Sample { locations, values, labels, picked: sample.picked });
    }
}

#[cfg(test)]
mod tests {
    use super::{MergeError, Part, merge};
    use crate::address::{FileOffset, RuntimeAddress};
    use crate::profile::{Label, Location, Mapping, MappingId, Profile, ProfileBuilder, Sample, ValueType};

    /// A process with a library at this address; one sample at offset 0x10 of it.
    fn process(base: u64, value_types: Vec<ValueType>, values: &[i64]) -> Profile {
        let mut builder = ProfileBuilder::new(value_types);
        let mapping = builder.mapping(Mapping {
            start: RuntimeAddress(base),
            end: RuntimeAddress(base + 0x2000),
            offset: FileOffset(0x1000),
            path: "/usr/lib/librock.so.7".into(),
            build_id: "ab12".into(),
            ..Mapping::default()
        });
        let location = builder.location(mapping, RuntimeAddress(base + 0x10));
        builder.sample(Sample { locations: vec![location], values: values.to_vec(), ..Sample::default() });
        builder.finish()
    }

    fn in_use() -> Vec<ValueType> {
        ValueType::go_heap()[2..].to_vec()
    }

    #[test]
    fn one_image_at_two_addresses_is_one() {
        let (a, b) =
            (process(0x7000, ValueType::go_heap(), &[1, 2, 3, 4]), process(0x9000, ValueType::go_heap(), &[10; 4]));
        let merged = merge(&[Part::new(&a), Part::new(&b)]).expect("alike");
        assert_eq!((merged.mappings.len(), merged.locations.len(), merged.samples.len()), (1, 1, 1));
        assert_eq!(merged.samples[0].values, [11, 12, 13, 14]);
        assert_eq!(merged.locations[0].address, RuntimeAddress(0x7010));
    }

    #[test]
    fn another_build_is_another_image() {
        let (a, mut b) = (process(0x7000, in_use(), &[1, 2]), process(0x7000, in_use(), &[10, 20]));
        b.mappings[0].build_id = "cd34".into();
        let merged = merge(&[Part::new(&a), Part::new(&b)]).expect("alike");
        assert_eq!((merged.mappings.len(), merged.samples.len()), (2, 2));
    }

    #[test]
    fn values_are_joined_by_name() {
        let (four, two) = (process(0x7000, ValueType::go_heap(), &[1, 2, 3, 4]), process(0x7000, in_use(), &[10, 20]));
        let merged = merge(&[Part::new(&two), Part::new(&four)]).expect("alike");
        assert_eq!(merged.value_types, ValueType::go_heap());
        assert_eq!(merged.samples[0].values, [1, 2, 13, 24]);
        let old = process(0x7000, vec![ValueType::new("objects", "count"), ValueType::new("space", "bytes")], &[5, 6]);
        let merged = merge(&[Part::new(&four), Part::new(&old)]).expect("alike");
        assert_eq!(merged.samples[0].values, [1, 2, 8, 10]);
    }

    #[test]
    fn what_measures_something_else_is_refused() {
        let cpu =
            process(0x7000, vec![ValueType::new("samples", "count"), ValueType::new("cpu", "nanoseconds")], &[1, 2]);
        let heap = process(0x7000, in_use(), &[1, 2]);
        assert!(matches!(merge(&[Part::new(&heap), Part::new(&cpu)]), Err(MergeError::ValueTypes { .. })));
        assert!(matches!(merge(&[Part::new(&cpu), Part::new(&heap)]), Err(MergeError::ValueTypes { .. })));
        assert_eq!(merge(&[]), Err(MergeError::Nothing));
        let mut other = heap.clone();
        other.period_type = Some(ValueType::new("cpu", "nanoseconds"));
        let mut with_period = heap.clone();
        with_period.period_type = Some(ValueType::new("space", "bytes"));
        let parts = [Part::new(&heap), Part::new(&with_period), Part::new(&other)];
        assert!(matches!(merge(&parts), Err(MergeError::PeriodTypes { .. })));
    }

    #[test]
    fn labels_keep_samples_apart_and_signs_are_kept() {
        let (a, b) = (process(0x7000, in_use(), &[1, 2]), process(0x7000, in_use(), &[10, 20]));
        let parts = [Part::new(&a).negated().labelled(Label::text("origin", "go")), Part::new(&b)];
        let merged = merge(&parts).expect("alike");
        let samples: Vec<_> = merged.samples.iter().map(|s| (s.label_text("origin"), &s.values[..])).collect();
        assert_eq!(samples, [(Some("go"), &[-1, -2][..]), (None, &[10, 20][..])]);
        let merged = merge(&[Part::new(&a).negated(), Part::new(&b)]).expect("alike");
        assert_eq!(merged.samples[0].values, [9, 18]);
    }

    #[test]
    fn mappings_without_a_range_do_not_move_addresses() {
        let mut a = process(0x7000, in_use(), &[1, 2]);
        a.mappings[0].start = RuntimeAddress(0);
        a.mappings[0].end = RuntimeAddress(u64::MAX);
        a.locations.push(Location {
            mapping: Some(MappingId(0)),
            address: RuntimeAddress(u64::MAX),
            ..Location::default()
        });
        let merged = merge(&[Part::new(&a), Part::new(&a)]).expect("alike");
        assert_eq!(merged.locations.len(), 2);
        assert_eq!(merged.locations[1].address, RuntimeAddress(u64::MAX));
    }
}
