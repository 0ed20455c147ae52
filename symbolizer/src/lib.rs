//! jemalloc heap dumps in, named pprof profiles out.
//!
//! Bytes become a [`profile::Profile`] by [`formats::parse`]; [`symbolize()`] fills in names; [`formats::pprof`] writes
//! it. The layers, leaf first, each importing only what stands before it: `error`, `address`, `frame`, `sampling`;
//! `profile`; `formats` and `image`, which do not know each other; `demangle`; `rooted`, `recorded_calls`; `symbol_dirs`; `modules`; `debug_files`; `report`; `symbolize`.

pub mod address;
pub mod debug_files;
pub mod demangle;
pub mod error;
pub mod formats;
pub mod frame;
pub mod image;
pub mod modules;
pub mod profile;
mod recorded_calls;
pub mod report;
mod rooted;
pub mod sampling;
pub mod symbol_dirs;
pub mod symbolize;

pub use report::{ImageReport, Report};
pub use symbolize::{SymbolizeOptions, symbolize};
