//! The report: one HTML page that needs nothing else, so that it can be mailed and kept.

mod chart;
mod html;

pub(crate) use chart::{Chart, Line};
pub(crate) use html::{Page, Rows};
