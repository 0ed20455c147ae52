//! What is inside of a compressed input.

use super::gzip;
use crate::error::ReadError;
use std::borrow::Cow;

/// An input without its compression.
#[derive(Debug)]
pub struct Unpacked<'a> {
    /// The input itself when it was not compressed.
    pub content: Cow<'a, [u8]>,
    /// Why the content is not everything.
    pub cut: Option<String>,
}

/// Decompress an input that is compressed by gzip, whatever its name says.
///
/// # Errors
/// When it grows beyond `limit` bytes.
pub fn unpack(bytes: &[u8], limit: u64) -> Result<Unpacked<'_>, ReadError> {
    // A file compressed twice happens, by a web server's content encoding for example; more than that is a trick.
    const LAYERS: usize = 2;
    let mut unpacked = Unpacked { content: Cow::Borrowed(bytes), cut: None };
    for _ in 0..LAYERS {
        if unpacked.cut.is_none() && gzip::is_gzip(&unpacked.content) {
            let inflated = gzip::inflate(&unpacked.content, limit)?;
            unpacked = Unpacked { content: Cow::Owned(inflated.bytes), cut: inflated.cut };
        }
    }
    Ok(unpacked)
}
