//! DWARF: functions, lines and inlined calls, with whatever other files it is spread over.

mod functions;
mod kept;
mod names;
mod near_function;
mod nesting;
mod origin;
mod sections;
mod source_files;
mod split;
mod units;

pub use names::DwarfNames;
pub use sections::{Dwarf, DwarfFiles};
