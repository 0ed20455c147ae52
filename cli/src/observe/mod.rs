//! Readings of a live host over time: what `attach` shows, `record` keeps and `report` draws.

mod observation;
mod observer;
mod recording;

#[cfg(test)]
pub(crate) use observation::OwnerBytes;
pub(crate) use observation::{Observation, SiteBytes};
pub(crate) use observer::Observer;
pub(crate) use recording::{End, Header, Line, Recording};
