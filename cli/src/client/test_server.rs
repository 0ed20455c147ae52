//! A control socket that gives recorded answers, for tests of clients.

use super::Agent;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

/// Serves until it is dropped.
pub(crate) struct TestServer {
    folder: tempfile::TempDir,
}

impl TestServer {
    /// `answer` maps a method and a path to a status and a body.
    pub(crate) fn start(answer: impl Fn(&str, &str) -> (u16, String) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        // The thread ends with the test process; a connection that fails ends that connection alone.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut lines = BufReader::new(&stream).lines();
                let request = lines.next().and_then(Result::ok).unwrap_or_default();
                while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
                let mut words = request.split(' ');
                let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                let (status, body) = answer(method, path);
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            }
        });
        Self { folder }
    }

    pub(crate) fn agent(&self) -> Agent {
        Agent::of(self.path()).unwrap()
    }

    /// What a user would type as TARGET.
    pub(crate) fn path(&self) -> String {
        self.folder.path().join("s").display().to_string()
    }
}
