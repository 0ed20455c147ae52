//! Hosts that begin, go on and end in odd ways do the same with and without the agent, whatever the other threads do.

mod kit;

use kit::{host, run, skip, under_agent};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

fn seen(output: &Output) -> (Option<i32>, Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), output.status.signal(), text(&output.stdout), text(&output.stderr))
}

/// The same output and the same end: plain, under the agent, and under it with nearly every allocation walked.
fn same(modes: &[&str]) {
    let program = host("odd");
    for mode in modes {
        let plain = seen(&run(Command::new(&program).arg(mode), ""));
        assert!(!plain.2.is_empty() && plain.0 != Some(99), "{mode}: {plain:?}");
        for lg in ["", "8", "12"] {
            let with = seen(&run(under_agent(&program).arg(mode).env("OFFHEAP_PROFILE", lg), ""));
            assert_eq!(with, plain, "{mode} at 2^{lg}");
        }
    }
}

#[test]
fn handlers_and_destructors_that_allocate() {
    same(&["atfork", "keys"]);
}

#[test]
fn descriptors_that_are_counted_on() {
    same(&["daemon", "nofile", "closing"]);
}

#[test]
fn another_identity_and_none_to_be_looked_into() {
    same(&["dumpable"]);
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        skip("needs root to become others");
        return;
    }
    same(&["identity"]);
}

#[test]
fn every_end_while_threads_allocate() {
    for _ in 0..2 {
        same(&["execute", "exit", "thread", "quick", "under", "abort", "leave", "kill"]);
    }
}
