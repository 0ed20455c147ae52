//! Samples, locations, functions and mappings: one model for raw and named data, and what can be asked of it.

mod builder;
mod diff;
mod drop_frames;
mod filter;
pub mod go_name;
mod go_table;
mod graph;
mod group;
pub(crate) mod hash;
mod health;
mod merge;
mod model;
mod names;
mod prune;
mod rank;
mod stack;

pub use builder::ProfileBuilder;
pub use diff::{Diff, DiffRow, State, diff, diff_profile};
pub use filter::{Filter, Matched, Matcher};
pub use go_table::{GoFunction, GoTable, go_table};
pub use graph::{Edge, Graph, GraphNode};
pub use group::{GroupBy, NO_GO, NO_THREAD, Node, NodeId};
pub use health::Health;
pub use merge::{MergeError, Part, merge};
pub use model::{
    Function, FunctionId, Label, LabelValue, Line, Location, LocationId, Mapping, MappingId, Profile, Sample, ValueType,
};
pub use names::{NO_STACK, UNKNOWN};
pub use rank::{Row, SortBy, Table};
pub use stack::StackFrame;
