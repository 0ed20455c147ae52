//! Numbers in, verdict out: no I/O.

pub(crate) mod fragmentation;
pub(crate) mod saved_statistics;
