//! Types and paths of the control protocol: what the agent says and its clients read.
//!
//! No logic lives here. Sizes are bytes, ratios are computed by the reader, times are Unix seconds. A field that the
//! allocator could not answer is `None` (absent in JSON): unknown is not zero.

mod error;
mod heap_map;
mod info;
mod paths;
mod profile;
mod purge;
mod samples;
mod stats;
mod trigger;

pub use error::ErrorBody;
pub use heap_map::{HeapMap, SlabClass};
pub use info::{AgentCounters, Info, JemallocConfig};
pub use paths::*;
pub use profile::ProfileState;
pub use purge::Purge;
pub use samples::{LiveSample, Module, SampleSite, SampleTable, StackEnd};
pub use stats::{ArenaStats, BinStats, LargeStats, Stats};
pub use trigger::{Trigger, Triggers};
