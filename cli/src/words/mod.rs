//! Words that people write and read: sizes, durations, counted nouns, names fit to be printed. Knows nothing else.

pub(crate) mod duration;
pub(crate) mod size;
pub(crate) mod text;
