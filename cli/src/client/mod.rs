//! The client of the agent's control socket.

mod agent;
mod http;
#[cfg(test)]
pub(crate) mod test_server;

pub(crate) use agent::{Agent, Capture};
