//! The memory statistics and the heap profile of a Go service, asked of the service itself.

mod endpoint;
mod get;
mod listening;
mod pages;

pub(crate) use endpoint::{Answer, GoEndpoint, heap_profile};
