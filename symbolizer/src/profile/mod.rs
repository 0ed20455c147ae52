//! Samples, locations, functions and mappings: one model for raw and named data.

mod filter;
mod model;

pub use filter::{Filter, Matched, Matcher};
pub use model::{
    Function, FunctionId, Label, LabelValue, Line, Location, LocationId, Mapping, MappingId, Profile, Sample, ValueType,
};
