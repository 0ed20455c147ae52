//! Protobuf in, profile out.
//!
//! The top level is walked here, field by field, and only the parts are left to the generated code. A file that is cut
//! loses its last field that way instead of everything, names that are not UTF-8 (Latin-1 paths, bytes of a foreign
//! encoding) are shown with replacement characters instead of failing the file, and no length can ask for more memory
//! than the input has bytes.

use crate::address::{FileOffset, RuntimeAddress};
use crate::error::{DamageLog, ReadError};
use crate::formats::{Origin, Parsed};
use crate::profile::hash::FastMap;
use crate::profile::{
    Function, FunctionId, Label, Line, Location, LocationId, Mapping, MappingId, Profile, Sample, ValueType,
};
use pprof::protos;
use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use std::cell::Cell;
use std::sync::Arc;

const FORMAT: &str = "pprof protobuf";

/// The input begins like a pprof message: with a sample type, a small message of two small numbers.
#[must_use]
pub fn looks_like(bytes: &[u8]) -> bool {
    let mut fields = Fields { rest: bytes, length: bytes.len() };
    // Writers put the sample types first, though no rule says so; any later field would do after a valid walk.
    match fields.next() {
        Some(Ok(Field { number: 1, value: Value::Bytes(inner), .. })) => {
            !inner.is_empty() && protos::ValueType::decode(inner).is_ok_and(|t| is_index(t.ty) && is_index(t.unit))
        }
        Some(Ok(Field { number: 2..=14, .. })) => {
            fields.all(|field| field.is_ok_and(|f| (1..=15).contains(&f.number)))
                && Fields { rest: bytes, length: bytes.len() }
                    .any(|field| matches!(field, Ok(Field { number: 1, value: Value::Bytes(_), .. })))
        }
        _ => false,
    }
}

fn is_index(index: i64) -> bool {
    (0..1 << 24).contains(&index)
}

/// Read an uncompressed pprof protobuf.
///
/// # Errors
/// When what is whole of it does not even say what its values mean.
pub fn decode(bytes: &[u8]) -> Result<Parsed, ReadError> {
    let mut log = DamageLog::default();
    let raw = Raw::read(bytes, &mut log);
    if raw.sample_types.is_empty() {
        return Err(damaged("it has no sample types"));
    }
    let resolver = Resolver::new(&raw.strings);
    let value_types: Vec<ValueType> = raw.sample_types.iter().map(|t| resolver.value_type(t)).collect();
    if value_types.iter().any(|t| t.kind.is_empty()) {
        return Err(damaged(
            "the names of its sample types are missing: the string table, which is written last, is cut off",
        ));
    }
    let profile = Reader { raw: &raw, resolver, log: &mut log }.profile(value_types);
    let origin = origin(&profile);
    let notes = match profile.samples.is_empty() && log.is_empty() {
        true => vec!["the profile is valid and holds no samples".to_owned()],
        false => Vec::new(),
    };
    Ok(Parsed { profile, format: FORMAT, damage: log.into_entries(), notes, origin, ..Parsed::default() })
}

fn damaged(what: &str) -> ReadError {
    ReadError::Damaged { format: FORMAT, what: what.into() }
}

/// Whose memory it is: what the `origin` labels say, else Go when it has Go's four values and Go's runtime in it.
fn origin(profile: &Profile) -> Origin {
    let mut origins = profile.samples.iter().map(|s| s.label_text("origin"));
    match origins.next().flatten() {
        Some("native") if origins.all(|o| o == Some("native")) => return Origin::Native,
        Some("go") if origins.all(|o| o == Some("go")) => return Origin::Go,
        Some(_) => return Origin::Unknown,
        None => {}
    }
    let has_go = profile.functions.iter().any(|f| f.name.starts_with("runtime.") || f.file.ends_with(".go"));
    if has_go && profile.value_index("inuse_space").is_some() { Origin::Go } else { Origin::Unknown }
}

/// A field of the top level.
struct Field<'a> {
    number: u32,
    value: Value<'a>,
    offset: usize,
}

enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Other,
}

/// Walks the fields of a message.
struct Fields<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Iterator for Fields<'a> {
    /// A field, or the offset at which the message ends in the middle of one.
    type Item = Result<Field<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.length - self.rest.len();
        let field = self.field(offset);
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(offset))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self, offset: usize) -> Option<Field<'a>> {
        let (number, wire_type) = decode_key(&mut self.rest).ok()?;
        let value = match wire_type {
            WireType::Varint => Value::Varint(decode_varint(&mut self.rest).ok()?),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut self.rest).ok()?).ok()?;
                let (inner, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Value::Bytes(inner)
            }
            WireType::SixtyFourBit | WireType::ThirtyTwoBit => {
                let length = if wire_type == WireType::SixtyFourBit { 8 } else { 4 };
                (self.rest.len() >= length).then(|| self.rest.advance(length))?;
                Value::Other
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some(Field { number, value, offset })
    }
}

/// The message with its parts decoded and its strings still bytes.
#[derive(Default)]
struct Raw<'a> {
    sample_types: Vec<protos::ValueType>,
    samples: Vec<protos::Sample>,
    mappings: Vec<protos::Mapping>,
    locations: Vec<protos::Location>,
    functions: Vec<protos::Function>,
    strings: Vec<&'a [u8]>,
    drop_frames: i64,
    keep_frames: i64,
    time_nanos: i64,
    duration_nanos: i64,
    period_type: Option<protos::ValueType>,
    period: i64,
    comments: Vec<i64>,
    default_sample_type: i64,
}

impl<'a> Raw<'a> {
    fn read(bytes: &'a [u8], log: &mut DamageLog) -> Self {
        let mut raw = Self::default();
        for field in (Fields { rest: bytes, length: bytes.len() }) {
            match field {
                Ok(field) => {
                    let (offset, number) = (field.offset as u64, field.number);
                    if raw.take(field).is_none() {
                        log.at_offset(offset, format!("field {number} is not valid and is left out"));
                    }
                }
                Err(offset) => log.at_offset(offset as u64, "the message is cut or corrupt here; the rest is left out"),
            }
        }
        raw
    }

    fn take(&mut self, field: Field<'a>) -> Option<()> {
        match (field.number, field.value) {
            (1, Value::Bytes(inner)) => self.sample_types.push(protos::ValueType::decode(inner).ok()?),
            (2, Value::Bytes(inner)) => self.samples.push(protos::Sample::decode(inner).ok()?),
            // Without an id nothing can refer to it; empty messages would be the cheapest way to ask for memory.
            (3, Value::Bytes(inner)) => self.mappings.push(with_id(protos::Mapping::decode(inner).ok()?, |m| m.id)?),
            (4, Value::Bytes(inner)) => self.locations.push(with_id(protos::Location::decode(inner).ok()?, |l| l.id)?),
            (5, Value::Bytes(inner)) => self.functions.push(with_id(protos::Function::decode(inner).ok()?, |f| f.id)?),
            (6, Value::Bytes(inner)) => self.strings.push(inner),
            (7, Value::Varint(index)) => self.drop_frames = index as i64,
            (8, Value::Varint(index)) => self.keep_frames = index as i64,
            (9, Value::Varint(nanos)) => self.time_nanos = nanos as i64,
            (10, Value::Varint(nanos)) => self.duration_nanos = nanos as i64,
            (11, Value::Bytes(inner)) => self.period_type = Some(protos::ValueType::decode(inner).ok()?),
            (12, Value::Varint(period)) => self.period = period as i64,
            (13, Value::Varint(index)) => self.comments.push(index as i64),
            (13, Value::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    self.comments.push(decode_varint(&mut packed).ok()? as i64);
                }
            }
            (14, Value::Varint(index)) => self.default_sample_type = index as i64,
            (1..=14, _) => return None,
            // A field of a later version of the format.
            _ => {}
        }
        Some(())
    }
}

fn with_id<T>(part: T, id: impl Fn(&T) -> u64) -> Option<T> {
    (id(&part) != 0).then_some(part)
}

/// The string table, each string shared.
struct Resolver {
    strings: Vec<Arc<str>>,
    empty: Arc<str>,
    /// Indexes that point nowhere.
    missing: Cell<u64>,
}

impl Resolver {
    fn new(strings: &[&[u8]]) -> Self {
        let strings = strings.iter().map(|bytes| String::from_utf8_lossy(bytes).into()).collect();
        Self { strings, empty: "".into(), missing: Cell::new(0) }
    }

    fn get(&self, index: i64) -> Option<&Arc<str>> {
        let string = usize::try_from(index).ok().and_then(|i| self.strings.get(i));
        // Index 0 is the empty string whether or not the table has it.
        if string.is_none() && index != 0 {
            self.missing.set(self.missing.get() + 1);
        }
        string
    }

    /// The string, or the empty one for an index that points nowhere.
    fn string(&self, index: i64) -> Arc<str> {
        Arc::clone(self.get(index).unwrap_or(&self.empty))
    }

    fn optional(&self, index: i64) -> Option<Arc<str>> {
        Some(self.string(index)).filter(|s| !s.is_empty())
    }

    fn value_type(&self, value_type: &protos::ValueType) -> ValueType {
        ValueType { kind: self.string(value_type.ty), unit: self.string(value_type.unit) }
    }

    fn label(&self, label: &protos::Label) -> Label {
        match (label.str, self.get(label.str)) {
            (0, _) | (_, None) => Label::number(self.string(label.key), label.num, self.optional(label.num_unit)),
            (_, Some(text)) => Label::text(self.string(label.key), Arc::clone(text)),
        }
    }

    fn mapping(&self, mapping: &protos::Mapping) -> Mapping {
        let path = self.string(mapping.filename);
        let (path, deleted) = match path.strip_suffix(" (deleted)") {
            Some(kept) => (kept.into(), true),
            None => (path, false),
        };
        Mapping {
            start: RuntimeAddress(mapping.memory_start),
            end: RuntimeAddress(mapping.memory_limit),
            offset: FileOffset(mapping.file_offset),
            path,
            build_id: self.string(mapping.build_id),
            deleted,
            has_functions: mapping.has_functions,
            has_filenames: mapping.has_filenames,
            has_line_numbers: mapping.has_line_numbers,
            has_inline_frames: mapping.has_inline_frames,
            ..Mapping::default()
        }
    }

    fn function(&self, function: &protos::Function) -> Function {
        let system_name = self.string(function.system_name);
        Function {
            // Also an empty string that does not stand at index 0 is no name.
            name: self.optional(function.name).unwrap_or_else(|| Arc::clone(&system_name)),
            system_name,
            file: self.string(function.filename),
            start_line: function.start_line,
        }
    }
}

/// Turns ids of the writer's choice into indexes.
struct Reader<'a> {
    raw: &'a Raw<'a>,
    resolver: Resolver,
    log: &'a mut DamageLog,
}

impl Reader<'_> {
    fn profile(mut self, value_types: Vec<ValueType>) -> Profile {
        let (raw, resolver) = (self.raw, &self.resolver);
        let mut profile = Profile {
            value_types,
            default_value_type: resolver.optional(raw.default_sample_type),
            functions: raw.functions.iter().map(|f| resolver.function(f)).collect(),
            mappings: raw.mappings.iter().map(|m| resolver.mapping(m)).collect(),
            period_type: raw.period_type.as_ref().map(|t| resolver.value_type(t)),
            period: raw.period,
            time_nanos: raw.time_nanos,
            duration_nanos: raw.duration_nanos,
            comments: raw.comments.iter().filter_map(|&index| resolver.get(index).cloned()).collect(),
            drop_frames: resolver.optional(raw.drop_frames),
            keep_frames: resolver.optional(raw.keep_frames),
            ..Profile::default()
        };
        let mappings = ids(raw.mappings.iter().map(|m| m.id));
        let functions = ids(raw.functions.iter().map(|f| f.id));
        profile.locations = raw.locations.iter().map(|l| self.location(l, &mappings, &functions)).collect();
        let locations = ids(raw.locations.iter().map(|l| l.id));
        profile.samples = self.samples(profile.value_types.len(), &locations);
        let missing = self.resolver.missing.get();
        if missing > 0 {
            self.log.whole(format!("{missing} names are missing: the string table is not whole"));
        }
        profile
    }

    fn location(
        &mut self,
        location: &protos::Location,
        mappings: &FastMap<u64, u32>,
        functions: &FastMap<u64, u32>,
    ) -> Location {
        let mapping = mappings.get(&location.mapping_id).map(|&id| MappingId(id));
        let mut lines = Vec::with_capacity(location.line.len());
        for line in &location.line {
            match functions.get(&line.function_id) {
                Some(&id) => lines.push(Line { function: FunctionId(id), line: line.line, column: 0 }),
                None if line.function_id != 0 => {
                    self.log.whole(format!(
                        "location {} names function {}, which is not there",
                        location.id, line.function_id
                    ));
                }
                None => {}
            }
        }
        Location { mapping, address: RuntimeAddress(location.address), lines, is_folded: location.is_folded }
    }

    fn samples(&mut self, value_count: usize, locations: &FastMap<u64, u32>) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(self.raw.samples.len());
        for (index, sample) in self.raw.samples.iter().enumerate() {
            if sample.value.len() != value_count {
                let got = sample.value.len();
                self.log.whole(format!("sample {index} has {got} values instead of {value_count} and is left out"));
                continue;
            }
            let stack: Option<Vec<LocationId>> =
                sample.location_id.iter().map(|id| locations.get(id).map(|&id| LocationId(id))).collect();
            let Some(stack) = stack else {
                self.log.whole(format!("sample {index} names a location that is not there and is left out"));
                continue;
            };
            samples.push(Sample {
                locations: stack,
                values: sample.value.clone(),
                labels: sample.label.iter().map(|l| self.resolver.label(l)).collect(),
                picked: None,
            });
        }
        samples
    }
}

/// Index by id. The id 0 means "none"; of equal ids the first counts.
fn ids(ids: impl Iterator<Item = u64>) -> FastMap<u64, u32> {
    let mut index = FastMap::default();
    for (at, id) in (0_u32..).zip(ids) {
        if id != 0 {
            index.entry(id).or_insert(at);
        }
    }
    index
}
