//! Numbers in, verdict out: no I/O.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod fragmentation;
pub(crate) mod go_runtime;
pub(crate) mod growth;
pub(crate) mod ledger;
mod ledger_go;
mod ledger_native;
pub(crate) mod occupancy;
pub(crate) mod saved_statistics;
pub(crate) mod smaps;
pub(crate) mod smaps_owners;
pub(crate) mod stranded;
pub(crate) mod tenants;
pub(crate) mod verdict;
