//! ELF images and what in them can name an address.
//!
//! Every source of names answers one question, [`Names::frames`]: the frames at an image address, innermost first, or
//! the reason why there is none. The sources are siblings that do not know each other; [`Sources`] holds those of one
//! image, [`LookUps`] ask them in order of trust. Nothing read from a file is believed: offsets are checked, sizes bounded, loops end.

mod bytes;
mod call_site;
mod compression;
mod debug_link;
mod dwarf;
mod elf;
mod file;
mod gnu_debugdata;
mod gopclntab;
mod look_ups;
mod names;
mod ranges;
mod relocations;
mod segments;
mod sources;
mod symbol_table;
mod unwind;

pub(crate) use call_site::ends_with_call;
pub use compression::DecompressError;
pub use debug_link::{AltLink, DebugLink};
pub use dwarf::{Dwarf, DwarfFiles, DwarfNames};
pub use elf::{Elf, ElfError};
pub use file::{FileIdentity, ImageFile, OpenError};
pub use gnu_debugdata::GnuDebugdata;
pub use gopclntab::Gopclntab;
pub use look_ups::{Found, LookUps};
pub use names::Names;
pub use segments::{Segment, Segments};
pub use sources::{ImageFiles, Sources};
pub use symbol_table::SymbolTable;
pub use unwind::UnwindTable;
