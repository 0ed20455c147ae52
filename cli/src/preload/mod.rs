//! Whether a program can run under the agent, decided before it is started.

mod agent_file;
mod program;
mod verdict;

pub(crate) use agent_file::agent_file;
pub(crate) use program::{NotStartable, Program};
pub(crate) use verdict::refusal;
