//! End-to-end: real services under the real agent, read by the real command.

mod crossing;
mod documents;
mod kit;
mod live;
mod oracles;
mod refusals;
