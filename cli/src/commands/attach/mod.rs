//! `offheap attach TARGET`

mod command;
mod draw;
mod lines;
mod screen;
mod state;
mod worker;

pub(crate) use command::{Args, run};
