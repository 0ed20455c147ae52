//! DWARF: functions, lines and inlined calls, with whatever other files it is spread over.

mod function;
mod functions;
mod kept;
mod line_program;
mod lines;
mod names;
mod origin;
mod sections;
mod source_files;
mod split;
mod unit_names;
mod units;
mod walk;

pub use names::DwarfNames;
pub use sections::{Dwarf, DwarfFiles};
