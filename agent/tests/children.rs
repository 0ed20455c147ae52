//! Children of every kind, made while the process is being profiled and dumped.

mod kit;

use kit::{Host, SocketDir, ask, await_that, host, run, under_agent};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks for everything that takes locks, until told to stop; how often it was answered.
fn visit(socket: &Path, stop: &AtomicBool) -> usize {
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) {
        for path in ["/v1/profile/heap", "/v1/profile/samples", "/v1/heap_map", "/v1/stats/jemalloc"] {
            answered += usize::from(UnixStream::connect(socket).is_ok() && ask(socket, "GET", path, "").status == 200);
        }
    }
    answered
}

#[test]
fn children_of_every_kind_while_dumps_are_made() {
    let program = host("children");
    let plain = run(Command::new(&program).arg("25"), "");
    let lines: Vec<String> = String::from_utf8(plain.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!((plain.status.code(), lines.len()), (Some(6), 8), "{lines:?}");
    for lg in ["8", "12"] {
        let mut host = Host::start(&program, &["25"], &[("OFFHEAP_PROFILE", lg)]);
        let (socket, stop) = (host.socket().to_owned(), AtomicBool::new(false));
        let answered = std::thread::scope(|scope| {
            let visitor = scope.spawn(|| visit(&socket, &stop));
            for expected in &lines[1..] {
                assert_eq!(&host.line(), expected, "2^{lg}");
            }
            stop.store(true, Ordering::Relaxed);
            visitor.join().unwrap()
        });
        assert!(answered > 0);
        assert_eq!(host.ask("GET", "/v1/info").status, 200, "the socket is the parent's after all its children's ends");
        assert_eq!(host.end(), Some(6), "2^{lg}");
    }
}

#[test]
fn a_child_without_the_agent_leaves_its_parents_socket() {
    let directory = SocketDir::new();
    let mut child = under_agent("sh")
        .args(["-c", "(exit 3); echo $?; read line; exit 4"])
        .env("OFFHEAP_SOCKET", directory.socket())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    await_that("an answer", || directory.socket().exists() && UnixStream::connect(directory.socket()).is_ok());
    assert_eq!(ask(&directory.socket(), "GET", "/v1/info", "").status, 200);
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), b"3\n".as_slice()));
}
