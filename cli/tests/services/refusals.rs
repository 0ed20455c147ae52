//! What must be refused, and why is said.

use crate::kit::{Service, agent, build, offheap, succeed};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn run_refuses_a_static_binary_and_says_why() {
    let program = build("static", "static-service", &[], &[("CGO_ENABLED", "0")]);
    let output = succeed(offheap().args(["run", "--agent"]).arg(agent()).arg("--").arg(program), 1);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("static"), "{message}");
    assert!(output.stdout.is_empty(), "the program was not started");
}

#[test]
fn curl_reads_metrics_and_statistics_from_the_socket() {
    let service = Service::start(&build("cstring", "cstring-curl", &[], &[]), 19, &[]);
    let curl = |path: &str| {
        let output = succeed(
            Command::new("curl")
                .args(["-fsS", "--unix-socket"])
                .arg(service.socket())
                .arg(format!("http://offheap{path}")),
            0,
        );
        String::from_utf8(output.stdout).expect("answers are UTF-8")
    };
    let metrics = curl("/metrics");
    assert!(metrics.lines().any(|l| l.starts_with("jemalloc_allocated_bytes ")), "{metrics}");
    assert!(metrics.contains("offheap_fragmentation_index"), "{metrics}");
    let stats: serde_json::Value = serde_json::from_str(&curl("/v1/stats")).expect("JSON");
    assert!(stats["allocated"].as_u64().is_some_and(|bytes| bytes > 0), "{stats}");
    assert!(stats["active"].as_u64() >= stats["allocated"].as_u64(), "{stats}");
}

#[test]
fn another_user_gets_nothing_and_reads_why() {
    // Dropping to another uid needs root, which the continuous integration is.
    // SAFETY: no arguments, no failure.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let service = Service::start(&build("cstring", "cstring-other", &[], &[]), 19, &[]);
    // The other user must be able to reach the socket's file, so that it is the agent that refuses, and the command.
    let reach = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("root may");
    };
    reach(service.dir.path(), 0o755);
    reach(&service.socket(), 0o666);
    let command = service.file("offheap");
    std::fs::copy(env!("CARGO_BIN_EXE_offheap"), &command).expect("the command can be copied");
    reach(&command, 0o755);
    let nobody = |program: &mut Command| {
        use std::os::unix::process::CommandExt;
        program.uid(65534).gid(65534).output().expect("the command can be started")
    };
    let output = nobody(Command::new(&command).arg("stats").arg(service.socket()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("65534") && message.contains("uid 0"), "both users are named: {message}");
    let output = nobody(
        Command::new("curl").args(["-sS", "--unix-socket"]).arg(service.socket()).arg("http://offheap/v1/stats"),
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("allocated"), "{output:?}");

    // By default the file itself keeps others out.
    reach(&service.socket(), 0o600);
    let output = nobody(Command::new(&command).arg("stats").arg(service.socket()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("65534") && message.contains("uid 0"), "both users are named: {message}");
}
