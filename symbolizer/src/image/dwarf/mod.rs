//! DWARF: functions, lines and inlined calls, with whatever other files it is spread over.

mod function;
mod functions;
mod kept;
mod lines;
mod names;
mod origin;
mod ranges;
mod sections;
mod source_files;
mod split;
mod units;

pub use names::DwarfNames;
pub use sections::{Dwarf, DwarfFiles};
