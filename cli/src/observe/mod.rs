//! Readings of a live host over time: what `attach` shows, `record` keeps and `report` draws.

mod observation;
mod observer;
mod recording;

pub(crate) use observation::{Observation, SiteBytes};
#[cfg(test)]
pub(crate) use observation::{OwnerBytes, VerdictLine};
pub(crate) use observer::Observer;
pub(crate) use recording::{End, Header, Line, Recording};
