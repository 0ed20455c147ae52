//! Amounts that may be unknown.

use crate::words::size;

/// A size for people, `n/a` when it is unknown.
pub(crate) fn size_or_na(bytes: Option<impl Into<i128>>) -> String {
    bytes.map_or_else(|| "n/a".to_owned(), |bytes| size::human(bytes.into()))
}

/// The bytes themselves, for those who calculate.
pub(crate) fn bytes_or_na(bytes: Option<impl Into<i128>>) -> String {
    bytes.map_or_else(|| "n/a".to_owned(), |bytes| bytes.into().to_string())
}

/// A share as a percentage.
pub(crate) fn percent_or_na(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "n/a".to_owned(), |ratio| format!("{:.1}%", ratio * 100.0))
}

/// A count.
pub(crate) fn count_or_na(count: Option<u64>) -> String {
    count.map_or_else(|| "n/a".to_owned(), |count| count.to_string())
}
