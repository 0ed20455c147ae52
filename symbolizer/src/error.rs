//! What can be wrong with an input.

use thiserror::Error;

/// The input could not be read as a profile.
#[derive(Debug, Error)]
pub enum ReadError {
    /// No format recognised it; the text names what it looks like.
    #[error("not a profile: the input is {looks_like}")]
    NotAProfile {
        /// For example `empty`, `an ELF file`, `an HTML page`.
        looks_like: String,
    },
    /// The format was recognised and nothing of it could be salvaged.
    #[error("damaged {format}: {what}")]
    Damaged {
        /// Name of the format.
        format: &'static str,
        /// What is wrong, with its line or offset.
        what: String,
    },
}

/// A part of the input that was left out; the rest was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Line, counted from 1, in text formats.
    pub line: Option<u64>,
    /// Byte offset, in binary formats.
    pub offset: Option<u64>,
    /// What is wrong and what was done about it.
    pub what: String,
}
