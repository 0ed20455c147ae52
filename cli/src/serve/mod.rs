//! Agents behind one TCP port, for Prometheus, Parca and Pyroscope.
//!
//! `exposition` merges metrics (pure), `request` parses what clients send (pure), `targets` asks the agents, `pages`
//! answers, `server` holds the connections.

mod exposition;
mod pages;
mod request;
mod server;
mod targets;

pub(crate) use pages::Site;
pub(crate) use server::{Access, serve};
pub(crate) use targets::{Served, metrics};
