//! The input formats, detected by content, and the output formats.
//!
//! [`parse`] tries them in the order that stands in the `detect` file. Every reader takes bytes and returns values; a
//! reader that meets damage keeps what is whole and says what it left out.

mod detect;
pub mod folded;
mod go_text;
mod gzip;
mod heap_v2;
mod input_names;
mod maps;
mod options;
mod parsed;
pub mod pprof;
mod quoting;
mod samples;
mod strangers;
mod text;
mod unpack;

pub use detect::{parse, parse_with};
pub use input_names::InputNames;
pub use options::ParseOptions;
pub use parsed::{GoMemStats, Origin, Parsed, ProcessIdentity};
pub use unpack::{Unpacked, unpack};
