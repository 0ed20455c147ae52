//! The profile model, shaped like pprof's `profile.proto` with ids that are indexes.

use crate::address::{FileOffset, RuntimeAddress};
use std::sync::Arc;

/// Index into [`Profile::mappings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappingId(pub u32);
/// Index into [`Profile::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationId(pub u32);
/// Index into [`Profile::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// What a value of a sample measures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// For example `inuse_space`.
    pub kind: Arc<str>,
    /// For example `bytes`.
    pub unit: Arc<str>,
}

/// Samples with the stacks they were taken at.
///
/// A jemalloc profile has the four value types of a Go heap profile, in Go's order, its values already scaled up from
/// the sampling period. `locations` may still lack lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// What `Sample::values` measure, index by index.
    pub value_types: Vec<ValueType>,
    /// Name of the value type that tools show first; `None` leaves it to the last one.
    pub default_value_type: Option<Arc<str>>,
    /// The samples.
    pub samples: Vec<Sample>,
    /// The locations, each (mapping, address) pair once.
    pub locations: Vec<Location>,
    /// The functions, each (name, system name, file) triple once.
    pub functions: Vec<Function>,
    /// The mappings that locations point into, and other executable ones.
    pub mappings: Vec<Mapping>,
    /// What `period` measures.
    pub period_type: Option<ValueType>,
    /// Mean number of period units between samples.
    pub period: i64,
    /// Time of the reading, Unix nanoseconds; 0 when unknown.
    pub time_nanos: i64,
    /// Length of the recording, nanoseconds; 0 when unknown.
    pub duration_nanos: i64,
    /// Free-form remarks that travel with the profile.
    pub comments: Vec<Arc<str>>,
    /// Regular expression of frames that tools drop at the leaf.
    pub drop_frames: Option<Arc<str>>,
    /// Exception to `drop_frames`.
    pub keep_frames: Option<Arc<str>>,
}

/// One stack with its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Leaf first.
    pub locations: Vec<LocationId>,
    /// One value a [`Profile::value_types`] entry.
    pub values: Vec<i64>,
    /// Facts about the sample.
    pub labels: Vec<Label>,
    /// How many allocations the profiler really picked for the last value type, where that is known; the relative
    /// standard error of the value is about 1/√n. Not part of the pprof file.
    pub picked: Option<u64>,
}

/// A fact about a sample.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// For example `thread`.
    pub key: Arc<str>,
    /// The fact.
    pub value: LabelValue,
}

/// Value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LabelValue {
    /// Text.
    Text(Arc<str>),
    /// A number with its unit.
    Number(i64, Option<Arc<str>>),
}

/// A place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Mapping that holds the address.
    pub mapping: Option<MappingId>,
    /// Address as recorded. In profiles built from dumps the return addresses of callers are already moved into the
    /// call (see [`RuntimeAddress::of_call`]), as Go's own profiles have it.
    pub address: RuntimeAddress,
    /// Source-level frames, innermost first; empty while there is no name.
    pub lines: Vec<Line>,
    /// Several symbols stand for this address (pprof's `is_folded`).
    pub is_folded: bool,
}

/// One source-level frame of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The function.
    pub function: FunctionId,
    /// Line in its file; 0 when unknown.
    pub line: i64,
    /// Column; 0 when unknown.
    pub column: i64,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name for people.
    pub name: Arc<str>,
    /// Name as the image has it.
    pub system_name: Arc<str>,
    /// Source file; empty when unknown.
    pub file: Arc<str>,
    /// First line; 0 when unknown.
    pub start_line: i64,
}

/// A mapped range of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: RuntimeAddress,
    /// First address after it.
    pub end: RuntimeAddress,
    /// Offset of `start` in the file.
    pub offset: FileOffset,
    /// Path as recorded, without a ` (deleted)` mark; pseudo-files in brackets.
    pub path: Arc<str>,
    /// GNU build id in lower-case hex; empty when unknown.
    pub build_id: Arc<str>,
    /// Device as recorded, `(major, minor)`.
    pub device: Option<(u32, u32)>,
    /// Inode as recorded; 0 and `None` both mean no file.
    pub inode: Option<u64>,
    /// The file was deleted when the process was read.
    pub deleted: bool,
    /// Locations in it have function names.
    pub has_functions: bool,
    /// Locations in it have file names.
    pub has_filenames: bool,
    /// Locations in it have line numbers.
    pub has_line_numbers: bool,
    /// Locations in it have their inlined frames.
    pub has_inline_frames: bool,
}

impl Mapping {
    /// The path names a file that may hold code and could be opened; `false` for anonymous memory and for what the
    /// kernel only calls by a name (`[vdso]`, `//anon`, `/memfd:…`, `/dev/zero`), which is never opened.
    #[must_use]
    pub fn is_file(&self) -> bool {
        const NAMED_BY_KERNEL: [&str; 7] =
            ["//", "/memfd:", "/dev/", "/SYSV", "/anon_hugepage", "/drm mm object", "/[aio]"];
        self.path.starts_with('/') && !NAMED_BY_KERNEL.iter().any(|prefix| self.path.starts_with(prefix))
    }

    /// Last component of the path; `[anon]` for memory without a name.
    #[must_use]
    pub fn base_name(&self) -> &str {
        match self.path.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => "[anon]",
        }
    }

    /// The address lies inside.
    #[must_use]
    pub fn contains(&self, address: RuntimeAddress) -> bool {
        self.start <= address && address < self.end
    }
}

impl ValueType {
    /// A value type of this name and unit.
    #[must_use]
    pub fn new(kind: &str, unit: &str) -> Self {
        Self { kind: kind.into(), unit: unit.into() }
    }

    /// The four value types of a Go heap profile, in Go's order.
    ///
    /// Stock tools merge two profiles only when these agree in number, order, name and unit.
    #[must_use]
    pub fn go_heap() -> Vec<Self> {
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
            .map(|(kind, unit)| Self::new(kind, unit))
            .to_vec()
    }
}

impl Label {
    /// A text label.
    #[must_use]
    pub fn text(key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        Self { key: key.into(), value: LabelValue::Text(value.into()) }
    }

    /// A numeric label.
    #[must_use]
    pub fn number(key: impl Into<Arc<str>>, value: i64, unit: Option<Arc<str>>) -> Self {
        Self { key: key.into(), value: LabelValue::Number(value, unit) }
    }
}

impl Sample {
    /// The text of the label of this key.
    #[must_use]
    pub fn label_text(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|l| &*l.key == key).and_then(|l| match &l.value {
            LabelValue::Text(text) => Some(&**text),
            LabelValue::Number(..) => None,
        })
    }

    /// The number of the label of this key.
    #[must_use]
    pub fn label_number(&self, key: &str) -> Option<i64> {
        self.labels.iter().find(|l| &*l.key == key).and_then(|l| match l.value {
            LabelValue::Number(number, _) => Some(number),
            LabelValue::Text(_) => None,
        })
    }
}

impl Profile {
    /// Index of the value type that a report shows unless told otherwise: the default one, else the last.
    #[must_use]
    pub fn default_value_index(&self) -> Option<usize> {
        let named = self.default_value_type.as_deref().and_then(|kind| self.value_index(kind));
        named.or_else(|| self.value_types.len().checked_sub(1))
    }

    /// Sum of one value over all samples.
    #[must_use]
    pub fn total(&self, value: usize) -> i64 {
        self.samples.iter().fold(0, |sum: i64, sample| sum.saturating_add(sample.values[value]))
    }

    /// Set the `has_*` flags of every mapping that locations point into to what is true of all of those locations.
    ///
    /// Stock tools try to name a mapping's locations themselves unless `has_functions` is set.
    pub fn refresh_mapping_flags(&mut self) {
        let mut touched = vec![false; self.mappings.len()];
        for location in &self.locations {
            let Some(MappingId(id)) = location.mapping else { continue };
            let mapping = &mut self.mappings[id as usize];
            let functions = || location.lines.iter().map(|line| &self.functions[line.function.0 as usize]);
            let named = !location.lines.is_empty() && functions().all(|f| !f.name.is_empty());
            let with_file = named && functions().all(|f| !f.file.is_empty());
            let with_line = with_file && location.lines.iter().all(|line| line.line != 0);
            if !std::mem::replace(&mut touched[id as usize], true) {
                mapping.has_functions = true;
                mapping.has_filenames = true;
                mapping.has_line_numbers = true;
                mapping.has_inline_frames = false;
            }
            mapping.has_functions &= named;
            mapping.has_filenames &= with_file;
            mapping.has_line_numbers &= with_line;
            mapping.has_inline_frames |= location.lines.len() > 1;
        }
    }

    /// One of its values is bytes: a profile of memory, and not of time, locks or goroutines.
    #[must_use]
    pub fn measures_memory(&self) -> bool {
        self.value_types.iter().any(|value| &*value.unit == "bytes")
    }

    /// Index of the value type of this name.
    #[must_use]
    pub fn value_index(&self, kind: &str) -> Option<usize> {
        self.value_types.iter().position(|t| &*t.kind == kind)
    }

    /// The location of this id.
    #[must_use]
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }

    /// The function of this id.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// The mapping of this id.
    #[must_use]
    pub fn mapping(&self, id: MappingId) -> &Mapping {
        &self.mappings[id.0 as usize]
    }
}
