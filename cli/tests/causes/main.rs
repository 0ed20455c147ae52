//! End-to-end: where the memory of real services is, and what the ledger makes of it.

#[allow(dead_code)]
#[path = "../services/kit.rs"]
mod kit;

mod containers;
mod go_beside_native;
mod ledger;
mod verdict;
