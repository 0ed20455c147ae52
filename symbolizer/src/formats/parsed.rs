//! What was read from one input.

use super::{InputNames, maps};
use crate::error::{Damage, DamageLog};
use crate::profile::{Mapping, Profile};

/// What was read from one input.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The profile; its mappings are the executable ones.
    pub profile: Profile,
    /// Name of the format, for messages.
    pub format: &'static str,
    /// Parts left out. Not empty: the result is partial.
    pub damage: Vec<Damage>,
    /// Remarks for the user that are not damage: skipped log lines, likely reasons for an empty profile.
    pub notes: Vec<String>,
    /// Whose memory the samples are.
    pub origin: Origin,
    /// The `runtime.MemStats` block of a Go text profile.
    pub go_memstats: Option<GoMemStats>,
    /// Names that stood in the input, to be [applied](InputNames::apply) after symbolization.
    pub input_names: InputNames,
    /// Which process it is of, as far as the input says.
    pub process: ProcessIdentity,
}

/// Whose memory the samples are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Allocated by C, C++ or Rust code through `malloc`.
    Native,
    /// On the heap of the Go runtime.
    Go,
    /// Both, or the input does not say.
    #[default]
    Unknown,
}

/// Which process a profile is of, as far as the input says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: Option<u32>,
    /// Host name.
    pub host: Option<String>,
    /// Path of the main executable.
    pub exe: Option<String>,
    /// Start of the process, Unix seconds.
    pub started_at: Option<f64>,
    /// Time at which recording began, Unix seconds.
    pub recording_since: Option<f64>,
    /// Time of the reading, Unix seconds.
    pub taken_at: Option<f64>,
}

/// The `runtime.MemStats` block of a Go text profile; bytes unless said otherwise. A line that is absent is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names and meanings are those of Go's runtime.MemStats")]
pub struct GoMemStats {
    pub alloc: Option<u64>,
    pub total_alloc: Option<u64>,
    pub sys: Option<u64>,
    pub mallocs: Option<u64>,
    pub frees: Option<u64>,
    pub heap_alloc: Option<u64>,
    pub heap_sys: Option<u64>,
    pub heap_idle: Option<u64>,
    pub heap_inuse: Option<u64>,
    pub heap_released: Option<u64>,
    pub heap_objects: Option<u64>,
    pub stack_inuse: Option<u64>,
    pub stack_sys: Option<u64>,
    pub mspan_inuse: Option<u64>,
    pub mspan_sys: Option<u64>,
    pub mcache_inuse: Option<u64>,
    pub mcache_sys: Option<u64>,
    pub buck_hash_sys: Option<u64>,
    pub gc_sys: Option<u64>,
    pub other_sys: Option<u64>,
    pub next_gc: Option<u64>,
    /// Unix nanoseconds.
    pub last_gc: Option<u64>,
    /// Count.
    pub num_gc: Option<u64>,
    pub max_rss: Option<u64>,
}

/// Said of a dump without mappings, until it gets some.
pub(super) const NO_MAPS: &str = "the dump has no map section: addresses cannot be named unless you give --maps FILE (a \
    copy of /proc/PID/maps), or --binary FILE if the program is not position-independent";

impl Parsed {
    /// Replace the mappings by others, for dumps without a map section.
    pub fn use_mappings(&mut self, mappings: Vec<Mapping>) {
        self.notes.retain(|note| note != NO_MAPS);
        self.profile.mappings = mappings;
        self.profile.locations.iter_mut().for_each(|location| location.mapping = None);
        self.profile.assign_mappings();
    }

    /// Replace the mappings by those of another text in the form of `/proc/PID/maps` or of `smaps`; how many there are.
    pub fn use_maps(&mut self, text: &[u8]) -> usize {
        let mut log = DamageLog::default();
        self.use_mappings(maps::parse(text, 0, &mut log));
        self.notes.extend(log.into_entries().into_iter().map(|d| format!("in the maps file, {d}")));
        self.profile.mappings.len()
    }
}
