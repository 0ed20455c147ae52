use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The live samples: what `heap_v2` rounds away or never had (exact sizes, ages, size classes, threads).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleTable {
    /// Always `offheap.samples/1`; first key of the document, by which the format is recognised.
    pub schema: String,
    /// Unix time of the reading, seconds.
    pub taken_at: f64,
    /// Unix time at which recording began, seconds.
    pub recording_since: Option<f64>,
    /// Process id of the host.
    pub pid: u32,
    /// Host name.
    pub host: Option<String>,
    /// Path of the host's executable.
    pub exe: Option<String>,
    /// Start time of the host, Unix seconds.
    pub started_at: Option<f64>,
    /// Version of the agent.
    pub agent_version: String,
    /// Base-2 logarithm of the mean number of bytes between samples.
    pub lg_sample: u32,
    /// Samples that did not fit and are missing below.
    pub dropped: u64,
    /// `/proc/self/maps` of the host, verbatim.
    pub maps: String,
    /// Loaded images with their GNU build ids.
    pub modules: Vec<Module>,
    /// Thread names by thread id.
    pub threads: BTreeMap<u64, String>,
    /// Allocation stacks with their samples.
    pub sites: Vec<SampleSite>,
}

/// A loaded image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// Path as the loader has it.
    pub path: String,
    /// Lowest mapped address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// GNU build id in lower-case hex, empty when the image has none.
    pub build_id: String,
}

/// One site.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleSite {
    /// Return addresses, leaf first.
    pub stack: Vec<u64>,
    /// Why the stack ended where it did.
    pub end: StackEnd,
    /// Estimated allocations at this site since recording began, freed ones included.
    pub alloc_objects: f64,
    /// Estimated bytes of them.
    pub alloc_bytes: f64,
    /// Samples behind the two estimates.
    pub alloc_samples: u64,
    /// Live samples.
    pub live: Vec<LiveSample>,
}

/// One live sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveSample {
    /// Bytes requested.
    pub size: u64,
    /// Bytes of the size class that it got.
    pub usable: u64,
    /// Age in seconds at `taken_at`.
    pub age: f64,
    /// Thread that allocated.
    pub thread: u64,
}

/// How a recorded stack ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StackEnd {
    /// The outermost frame was reached: thread start, `main`'s caller, or `runtime.goexit`.
    #[default]
    Root,
    /// The bound on the number of frames.
    TooDeep,
    /// An address of no known image; the module table is stale.
    UnknownImage,
    /// A frame without unwind information.
    NoUnwindInfo,
    /// Memory of the stack could not be read.
    Unreadable,
    /// The walk made no progress or left its stack.
    NoProgress,
}

impl StackEnd {
    /// All of them, in order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Root, Self::TooDeep, Self::UnknownImage, Self::NoUnwindInfo, Self::Unreadable, Self::NoProgress];
}
