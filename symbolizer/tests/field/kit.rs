use offheap_symbolizer::error::ReadError;
use offheap_symbolizer::formats::{Parsed, parse};
use std::path::PathBuf;

/// The bytes of a file of the field folder.
pub(crate) fn field(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/field").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A file of the field folder, read.
pub(crate) fn read(name: &str) -> Parsed {
    parse(&field(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Why a file of the field folder was refused.
pub(crate) fn refused(name: &str) -> ReadError {
    parse(&field(name)).expect_err(name)
}

/// Sums of the four values, in Go's order.
pub(crate) fn totals(parsed: &Parsed) -> [i64; 4] {
    [0, 1, 2, 3].map(|value| parsed.profile.total(value))
}

/// The addresses of a sample's stack as they stand in the input, before they were moved into the call.
pub(crate) fn return_addresses(parsed: &Parsed, sample: usize) -> Vec<u64> {
    let stack = &parsed.profile.samples[sample].locations;
    stack.iter().map(|&id| parsed.profile.location(id).address.0 + 1).collect()
}

/// Base names of the mappings.
pub(crate) fn modules(parsed: &Parsed) -> Vec<&str> {
    parsed.profile.mappings.iter().map(|m| m.base_name()).collect()
}
