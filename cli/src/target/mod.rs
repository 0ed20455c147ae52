//! From what the user typed to the control socket of a host, with the reason when there is none.

mod allocator;
mod process;
mod resolve;
mod socket;

pub(crate) use allocator::Allocator;
pub(crate) use process::{Host, has_ended, hosts, is_stopped, living_thread};
pub(crate) use resolve::Target;
pub(crate) use socket::{connect, is_root, peer_pid, refused_as_other_user};
