//! The offheap command.

use std::process::ExitCode;

fn main() -> ExitCode {
    offheap::run(std::env::args_os())
}
