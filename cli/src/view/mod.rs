//! Value in, text or bytes out: no I/O, but for the progress bar.

pub(crate) mod amount;
pub(crate) mod duration;
pub(crate) mod flame;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod screen;
pub(crate) mod size;
pub(crate) mod table;
pub(crate) mod text;
