//! One client, from its first byte to the last of the answer. Nothing here waits.

use super::request::{self, Parsed, Request};
use super::response::{Body, Response};
use super::watched_fd::WatchedFd;
use crate::kernel;
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request must be whole after this time.
const READ_LIMIT: Duration = Duration::from_secs(5);
/// A client must take some of its answer within this time.
const WRITE_STALL_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of input discarded before closing: unread input would make the kernel throw the answer away.
const DRAIN_LIMIT: usize = 256 << 10;

/// See the module.
pub(crate) struct Connection {
    pub(crate) id: u64,
    fd: WatchedFd,
    state: State,
    /// When something last moved.
    moved: Instant,
    /// The peer is not admitted: what it asks is read, so that it gets this answer and not a broken pipe.
    refusal: Option<String>,
    /// The request was HEAD: the same as GET, and no body is sent.
    head_only: bool,
}

enum State {
    Reading(Vec<u8>),
    /// The answer is being made.
    Waiting,
    Writing {
        bytes: Vec<u8>,
        sent: usize,
        file: Option<FilePart>,
    },
}

struct FilePart {
    file: Arc<File>,
    sent: u64,
    length: u64,
}

/// What a connection needs next.
pub(crate) enum Step {
    /// Wait for the socket.
    Wait,
    /// Answer this.
    Answer(Request),
    /// It is over: answered, or the client is gone.
    Close,
    /// It is over, by the client's fault.
    Reject,
}

impl Connection {
    pub(crate) fn new(id: u64, fd: WatchedFd, refusal: Option<String>) -> Self {
        Self { id, fd, state: State::Reading(Vec::new()), moved: Instant::now(), refusal, head_only: false }
    }

    /// Events to poll for, and the descriptor; `None` when the host took the number.
    pub(crate) fn interest(&self) -> Option<(RawFd, libc::c_short)> {
        let events = match self.state {
            State::Reading(_) => libc::POLLIN,
            State::Waiting => 0, // POLLHUP and POLLERR are always reported
            State::Writing { .. } => libc::POLLOUT,
        };
        self.fd.get().map(|fd| (fd, events))
    }

    /// Instant at which patience ends; none while the agent itself is at work.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Reading(_) => Some(self.moved + READ_LIMIT),
            State::Waiting => None,
            State::Writing { .. } => Some(self.moved + WRITE_STALL_LIMIT),
        }
    }

    /// How readily this connection is given up for a new one: the longest without movement first, those at work never.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (!matches!(self.state, State::Waiting)).then_some(self.moved)
    }

    /// Begins to send the answer.
    pub(crate) fn respond(&mut self, response: Response) -> Step {
        let mut bytes = response.head();
        let file = match response.body {
            _ if self.head_only => None,
            Body::Bytes(body) => {
                bytes.extend_from_slice(&body);
                None
            }
            Body::File(file, length) => Some(FilePart { file, sent: 0, length }),
        };
        self.moved = Instant::now();
        self.state = State::Writing { bytes, sent: 0, file };
        self.advance()
    }

    /// Does what can be done now.
    pub(crate) fn advance(&mut self) -> Step {
        let Some(fd) = self.fd.get() else { return Step::Close };
        match &mut self.state {
            State::Reading(_) => self.read(fd),
            State::Waiting => Step::Close, // only woken when the client hung up
            State::Writing { .. } => self.write(fd),
        }
    }

    fn read(&mut self, fd: RawFd) -> Step {
        let State::Reading(received) = &mut self.state else { return Step::Close };
        loop {
            let mut chunk = [0u8; 2048];
            match kernel::receive(fd, &mut chunk) {
                Ok(0) if received.is_empty() => return Step::Close,
                Ok(0) => return Step::Reject,
                Ok(count) => received.extend_from_slice(&chunk[..count]),
                Err(error) => return after(&error),
            }
            match request::parse(received) {
                Parsed::Incomplete => {}
                Parsed::Expecting => {
                    // An admitted one only; others get their answer instead. A full buffer cannot be: nothing was sent yet.
                    if let Some(message) = self.refusal.take() {
                        return self.respond(Response::error(403, message));
                    }
                    if let Err(error) = kernel::send(fd, b"HTTP/1.1 100 Continue\r\n\r\n") {
                        return after(&error);
                    }
                }
                Parsed::Whole(mut request) => {
                    if request.method == "HEAD" {
                        self.head_only = true;
                        request.method = "GET".into();
                    }
                    if let Some(message) = self.refusal.take() {
                        return self.respond(Response::error(403, message));
                    }
                    self.state = State::Waiting;
                    self.moved = Instant::now();
                    return Step::Answer(request);
                }
                Parsed::Bad(status, message) => return self.respond(Response::error(status, message)),
            }
        }
    }

    fn write(&mut self, fd: RawFd) -> Step {
        let State::Writing { bytes, sent, file } = &mut self.state else { return Step::Close };
        while let Some(rest) = bytes.get(*sent..).filter(|rest| !rest.is_empty()) {
            match kernel::send(fd, rest) {
                Ok(count) => *sent += count,
                Err(error) => return after(&error),
            }
            self.moved = Instant::now();
        }
        while let Some(part) = file.as_mut().filter(|part| part.sent < part.length) {
            let count = (part.length - part.sent).min(1 << 20) as usize;
            match kernel::send_file(fd, &part.file, part.sent, count) {
                Ok(0) => return Step::Close,
                Ok(count) => part.sent += count as u64,
                Err(error) => return after(&error),
            }
            self.moved = Instant::now();
        }
        drain(fd);
        Step::Close
    }
}

fn drain(fd: RawFd) {
    let mut chunk = [0u8; 4096];
    let mut drained = 0;
    while drained < DRAIN_LIMIT {
        match kernel::receive(fd, &mut chunk) {
            Ok(count) if count > 0 => drained += count,
            _ => break,
        }
    }
}

fn after(error: &io::Error) -> Step {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Step::Wait,
        _ => Step::Close,
    }
}
