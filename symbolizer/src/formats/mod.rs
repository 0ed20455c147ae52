//! The input formats, detected by content, and the output formats.

use crate::error::{Damage, ReadError};
use crate::profile::Profile;

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
}

/// Read a profile of any input format.
///
/// # Errors
/// When no format recognises the input or nothing can be salvaged.
pub fn parse(bytes: &[u8]) -> Result<Parsed, ReadError> {
    let _ = bytes;
    Err(ReadError::NotAProfile { looks_like: "not read yet".into() })
}
