//! Value in, text or bytes out: no I/O, but for the progress bar.

pub(crate) mod alerting_rules;
pub(crate) mod amount;
pub(crate) mod callgraph;
pub(crate) mod difference;
pub(crate) mod flame;
pub(crate) mod folded;
pub(crate) mod fragmentation;
pub(crate) mod go_table;
pub(crate) mod heap_map;
pub(crate) mod json;
pub(crate) mod ledger;
pub(crate) mod page;
pub(crate) mod profile_json;
pub(crate) mod progress;
pub(crate) mod ranking;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod value;
