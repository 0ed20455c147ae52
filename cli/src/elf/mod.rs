//! What an ELF executable tells about preloading, allocators and Go; only its tables are read, never the whole file.

mod executable;
mod go_build;

pub(crate) use executable::{Executable, read};
pub(crate) use go_build::GoBuild;
