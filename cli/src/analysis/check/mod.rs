//! Alerts for scripts: `thresholds` say from when on, `measure` compares one reading with them, `alert` remembers for how
//! long, `watch` reads until nothing is pending, `verdict` is what comes out.

mod alert;
mod measure;
mod thresholds;
mod verdict;
mod watch;

pub(crate) use alert::{Memory, Remembered};
pub(crate) use measure::{GO_MISMATCH, HIGH_FRAGMENTATION, Sample};
pub(crate) use thresholds::Thresholds;
pub(crate) use verdict::Verdict;
pub(crate) use watch::{Clock, judge_once, watch};
