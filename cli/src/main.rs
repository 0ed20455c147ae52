//! The offheap command.
fn main() {}
