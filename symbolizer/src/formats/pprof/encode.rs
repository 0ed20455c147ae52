//! Profile in, protobuf out.

use crate::profile::hash::FastMap;
use crate::profile::{Function, Label, LabelValue, Line, Location, Mapping, Profile, Sample, ValueType};
use flate2::Compression;
use flate2::write::GzEncoder;
use pprof::protos;
use prost::Message;
use std::io::Write;
use std::sync::Arc;

/// The gzip-compressed protobuf of a profile.
///
/// # Panics
/// Never: writing to memory does not fail.
#[must_use]
pub fn encode(profile: &Profile) -> Vec<u8> {
    let message = to_message(profile).encode_to_vec();
    // Level 1 as Go's runtime does: profiles are read once and thrown away.
    let mut encoder = GzEncoder::new(Vec::with_capacity(message.len() / 4), Compression::fast());
    encoder.write_all(&message).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

/// The protobuf message of a profile. Ids are dense and begin with 1.
#[must_use]
pub fn to_message(profile: &Profile) -> protos::Profile {
    let mut strings = Strings::new();
    let mut message = protos::Profile {
        sample_type: profile.value_types.iter().map(|t| strings.value_type(t)).collect(),
        sample: profile.samples.iter().map(|s| strings.sample(s)).collect(),
        mapping: (1..).zip(&profile.mappings).map(|(id, m)| strings.mapping(id, m)).collect(),
        location: (1..).zip(&profile.locations).map(|(id, l)| location(id, l)).collect(),
        function: (1..).zip(&profile.functions).map(|(id, f)| strings.function(id, f)).collect(),
        drop_frames: profile.drop_frames.as_ref().map_or(0, |s| strings.index(s)),
        keep_frames: profile.keep_frames.as_ref().map_or(0, |s| strings.index(s)),
        time_nanos: profile.time_nanos,
        duration_nanos: profile.duration_nanos,
        period_type: profile.period_type.as_ref().map(|t| strings.value_type(t)),
        period: profile.period,
        comment: profile.comments.iter().map(|s| strings.index(s)).collect(),
        default_sample_type: profile.default_value_type.as_ref().map_or(0, |s| strings.index(s)),
        ..protos::Profile::default()
    };
    message.string_table = strings.table;
    message
}

fn location(id: u64, location: &Location) -> protos::Location {
    protos::Location {
        id,
        mapping_id: location.mapping.map_or(0, |m| u64::from(m.0) + 1),
        address: location.address.0,
        line: location.lines.iter().map(line).collect(),
        is_folded: location.is_folded,
    }
}

fn line(line: &Line) -> protos::Line {
    protos::Line { function_id: u64::from(line.function.0) + 1, line: line.line }
}

/// The string table; index 0 is the empty string.
struct Strings {
    table: Vec<String>,
    index: FastMap<Arc<str>, i64>,
}

impl Strings {
    fn new() -> Self {
        Self { table: vec![String::new()], index: FastMap::from_iter([("".into(), 0)]) }
    }

    fn index(&mut self, text: &Arc<str>) -> i64 {
        if let Some(&index) = self.index.get(text) {
            return index;
        }
        let index = self.table.len() as i64;
        self.table.push(text.to_string());
        self.index.insert(Arc::clone(text), index);
        index
    }

    fn value_type(&mut self, value_type: &ValueType) -> protos::ValueType {
        protos::ValueType { ty: self.index(&value_type.kind), unit: self.index(&value_type.unit) }
    }

    fn sample(&mut self, sample: &Sample) -> protos::Sample {
        protos::Sample {
            location_id: sample.locations.iter().map(|l| u64::from(l.0) + 1).collect(),
            value: sample.values.clone(),
            label: sample.labels.iter().map(|l| self.label(l)).collect(),
        }
    }

    fn label(&mut self, label: &Label) -> protos::Label {
        let key = self.index(&label.key);
        match &label.value {
            LabelValue::Text(text) => protos::Label { key, str: self.index(text), ..protos::Label::default() },
            LabelValue::Number(num, unit) => {
                let num_unit = unit.as_ref().map_or(0, |u| self.index(u));
                protos::Label { key, num: *num, num_unit, ..protos::Label::default() }
            }
        }
    }

    fn mapping(&mut self, id: u64, mapping: &Mapping) -> protos::Mapping {
        protos::Mapping {
            id,
            memory_start: mapping.start.0,
            memory_limit: mapping.end.0,
            file_offset: mapping.offset.0,
            filename: self.index(&mapping.path),
            build_id: self.index(&mapping.build_id),
            has_functions: mapping.has_functions,
            has_filenames: mapping.has_filenames,
            has_line_numbers: mapping.has_line_numbers,
            has_inline_frames: mapping.has_inline_frames,
        }
    }

    fn function(&mut self, id: u64, function: &Function) -> protos::Function {
        protos::Function {
            id,
            name: self.index(&function.name),
            system_name: self.index(&function.system_name),
            filename: self.index(&function.file),
            start_line: function.start_line,
        }
    }
}
