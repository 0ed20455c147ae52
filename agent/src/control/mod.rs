//! What runs on the agent's own threads.

mod connection;
mod dump;
mod heap_map;
mod info;
mod jobs;
mod knobs;
mod log;
mod mallctl;
mod metrics;
mod modules;
#[allow(unsafe_code)]
mod own_table;
mod pace;
mod process;
mod profile;
mod purge;
mod request;
mod response;
mod routes;
mod samples;
mod server;
mod socket;
mod stats;
#[allow(unsafe_code)]
mod thread;
mod triggers;
#[allow(unsafe_code)]
mod watched_fd;

pub(crate) use jobs::Agent;
pub(crate) use log::{Log, filter_jemalloc_messages, say};
pub(crate) use mallctl::prof_active;
pub(crate) use profile::fork_gate_within;
pub(crate) use server::{alone, end_with_the_host, forked, remove_socket, retire_for, start};
pub(crate) use socket::SocketPath;
pub(crate) use watched_fd::close_all_in_child;
