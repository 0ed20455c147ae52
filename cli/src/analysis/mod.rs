//! Numbers in, verdict out: no I/O.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod fragmentation;
#[allow(dead_code)]
pub(crate) mod go_runtime;
pub(crate) mod growth;
#[allow(dead_code)]
pub(crate) mod ledger;
mod ledger_go;
mod ledger_native;
pub(crate) mod saved_statistics;
#[allow(dead_code)]
pub(crate) mod smaps;
#[allow(dead_code)]
pub(crate) mod smaps_owners;
pub(crate) mod stranded;
pub(crate) mod tenants;
