//! Statistics that `malloc_stats_print` wrote, of jemalloc 3.x to 5.3, read back.
//!
//! `summary` (one line) and `table` (columns by their headings) are the parts of `text`; `json` reads the same numbers
//! from the other form; `report` says what was read and what had to be left out.

mod json;
mod report;
mod summary;
mod table;
mod text;

pub(crate) use report::read;

#[cfg(test)]
mod tests;
