//! Calls of the kernel behind safe functions: each says how many bytes it may touch, and none can be told a wrong number.
//!
//! The leaf of this library: everything may import it and it imports nothing.

#[allow(unsafe_code)]
mod clock;
#[allow(unsafe_code)]
mod files;
#[allow(unsafe_code)]
mod sockets;
#[allow(unsafe_code)]
mod system;

pub(crate) use clock::now_ns;
pub(crate) use files::{descriptors_max, duplicate, identity, memory_file, set_mode, write_once};
pub(crate) use sockets::{
    accept, bind, connect, listen, peer_user, poll, receive, send, send_file, socket, socket_pair,
};
pub(crate) use system::{clock_ticks, effective_user, page_size};
