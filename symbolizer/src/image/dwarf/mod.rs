//! DWARF: functions, lines and inlined calls, with whatever other files it is spread over.

mod kept;
mod names;
mod nesting;
mod sections;
mod split;

pub use names::DwarfNames;
pub use sections::{Dwarf, DwarfFiles};
