//! The client of the agent's control socket.

mod agent;
mod http;
mod patient;
#[cfg(test)]
pub(crate) mod test_server;

pub(crate) use agent::{Agent, Capture};
