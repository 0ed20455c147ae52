//! pprof protobufs: `profile.proto`, gzip-compressed when written.
//!
//! ```text
//! 0a 04 08 01 10 02     field 1, sample_type: { type: string 1, unit: string 2 }
//! 12 …                  field 2, sample: location ids leaf first, values, labels
//! 1a … 22 … 2a …        mapping, location, function, each with an id of its own choice
//! 32 00                 field 6, string_table: the first string is the empty one
//! ```

mod decode;
mod encode;

pub use decode::{decode, looks_like};
pub use encode::{encode, to_message};
