//! From PROFILE arguments to named profiles, with everything the user should hear about them on the way.

mod loaded;
mod options;
mod query;
mod select;
mod series;
mod source;

pub(crate) use loaded::{Loaded, load, load_all, load_bytes, load_ends, load_last};
pub(crate) use options::Options;
pub(crate) use query::Query;
pub(crate) use select::{Select, usual_value};
pub(crate) use source::Source;
