//! The agent thread: one poll loop over the socket and its clients.

use super::connection::{Connection, Step};
use super::jobs::{Agent, Jobs};
use super::log::say;
use super::socket::{Bound, SocketPath};
use super::thread::spawn_quietly;
use super::watched_fd::WatchedFd;
use super::{mallctl, socket, triggers};
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clients at the same time; one more makes the one go that has been idle longest.
const CONNECTIONS_MAX: usize = 128;
/// While recording, the loaded images are looked at this often, and the triggers while there are any.
const LOOK_INTERVAL: Duration = triggers::LOOK_INTERVAL;
/// Pause in accepting when the host has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Guards: path and inode of the socket to remove at exit.
static SOCKET_FILE: Mutex<Option<(String, u64)>> = Mutex::new(None);
/// Process that the agent thread runs in; a forked child differs.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Guards: the agent thread, and that it is ended and started again by one thread of the host at a time.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// What is needed to end the agent thread.
struct Running {
    thread: JoinHandle<Option<AgentThread>>,
    stop: Arc<AtomicBool>,
    waker: Arc<WatchedFd>,
}

/// Makes the socket and starts the agent thread. Before `main`, so that the descriptors are made, and moved up, before
/// the host opens its first.
pub(crate) fn start(agent: Arc<Agent>, path: &SocketPath) -> io::Result<()> {
    OWNER.store(std::process::id(), Relaxed);
    let server = match path.bind() {
        Ok(bound) => Some(bound),
        Err(error) => {
            say(&error.to_string());
            None
        }
    };
    AgentThread { server: Server::new(agent, server)? }.start()
}

/// Removes the socket of a process that ends.
pub(crate) fn remove_socket() {
    if OWNER.load(Relaxed) != std::process::id() {
        return;
    }
    if let Ok(mut file) = SOCKET_FILE.try_lock()
        && let Some((path, inode)) = file.take()
    {
        socket::remove(&path, inode);
    }
}

/// Runs `act` while the process has no thread of the agent's, and starts them again after.
pub(crate) fn alone<R>(act: impl FnOnce() -> R) -> R {
    if OWNER.load(Relaxed) != std::process::id() {
        return act();
    }
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let stopped = running.take().and_then(Running::end);
    set_background_thread(false);
    await_that_threads_are_gone();
    let result = act();
    if let Some(thread) = stopped {
        // The lock is held: `start_into` fills it.
        let _ = thread.start_into(&mut running);
    }
    result
}

impl Running {
    fn end(self) -> Option<AgentThread> {
        self.stop.store(true, Release);
        wake(&self.waker);
        self.thread.join().ok().flatten()
    }
}

/// A joined thread counts until the kernel has released it, which is a little after it is joined. Workers that answer a
/// request end by themselves. Threads of the host do not: then this gives up, as the kernel will.
fn await_that_threads_are_gone() {
    const PATIENCE: Duration = Duration::from_millis(100);
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE && std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1) {
        std::thread::yield_now();
    }
}

/// jemalloc gives unused pages back on a thread of its own. Switched on here and not by the configuration, which would
/// start it in the middle of the host's first allocation and aborts hosts that are not ready for that.
fn set_background_thread(on: bool) {
    // SAFETY: size_t and bool.
    let _ = unsafe {
        mallctl::write("max_background_threads", 1usize).and_then(|()| mallctl::write("background_thread", on))
    };
}

/// The server between two runs of its thread.
struct AgentThread {
    server: Server,
}

impl AgentThread {
    fn start(self) -> io::Result<()> {
        self.start_into(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start_into(self, running: &mut Option<Running>) -> io::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let waker = Arc::clone(&self.server.waker);
        let stop_seen = Arc::clone(&stop);
        let mut server = self.server;
        let thread = spawn_quietly("offheap", move || {
            set_background_thread(true);
            while !stop_seen.load(Acquire) {
                if !server.turn() {
                    say("the process closed the agent's descriptors; the agent is silent from now on");
                    return None;
                }
            }
            Some(AgentThread { server })
        })?;
        *running = Some(Running { thread, stop, waker });
        Ok(())
    }
}

fn wake(waker: &WatchedFd) {
    if let Some(fd) = waker.get() {
        // A full buffer means that the server is being woken already.
        // SAFETY: sends one byte.
        unsafe { libc::send(fd, [0u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
    }
}

struct Server {
    agent: Arc<Agent>,
    jobs: Arc<Jobs>,
    /// None when no socket could be made: profiling and triggers of the environment work even so.
    listener: Option<WatchedFd>,
    wake: WatchedFd,
    waker: Arc<WatchedFd>,
    connections: Vec<Connection>,
    next_id: u64,
    accept_again: Option<Instant>,
    /// User that made the socket; the host may change its own later.
    owner: libc::uid_t,
}

impl Server {
    fn new(agent: Arc<Agent>, bound: Option<Bound>) -> io::Result<Self> {
        let (wake_fd, waker) = wake_pair()?;
        let waker = Arc::new(waker);
        let listener = bound.map(|bound| {
            say(&format!("serving {}", bound.path));
            agent.set_socket_path(bound.path.clone());
            *SOCKET_FILE.lock().unwrap_or_else(PoisonError::into_inner) = Some((bound.path, bound.inode));
            bound.listener
        });
        let jobs = Jobs::new(Arc::clone(&agent), {
            let waker = Arc::clone(&waker);
            move || wake(&waker)
        });
        Ok(Self {
            agent,
            jobs,
            listener,
            wake: wake_fd,
            waker,
            connections: Vec::new(),
            next_id: 0,
            accept_again: None,
            // SAFETY: no preconditions.
            owner: unsafe { libc::geteuid() },
        })
    }

    /// One round of the loop; `false` when the host closed the agent's descriptors.
    fn turn(&mut self) -> bool {
        let Some(wake) = self.wake.get() else { return false };
        let listener = match &self.listener {
            None => -1,
            Some(listener) => match listener.get() {
                Some(listener) => listener,
                None => return false,
            },
        };
        let now = Instant::now();
        let accepting = self.accept_again.is_none_or(|again| again <= now);
        let entry = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
        let mut polled = vec![entry(if accepting { listener } else { -1 }, libc::POLLIN), entry(wake, libc::POLLIN)];
        self.connections.retain(|connection| connection.interest().is_some());
        polled.extend(self.connections.iter().map(|connection| {
            let (fd, events) = connection.interest().unwrap_or((-1, 0));
            entry(fd, events)
        }));
        let recording = mallctl::prof_active();
        let watching = !self.agent.triggers.is_idle();
        let timeout = self.timeout(now, recording || watching);
        // SAFETY: an array of as many entries as said.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };

        if recording {
            self.agent.profiler.refresh();
        }
        if watching {
            self.agent.triggers.look(&self.agent);
        }
        if polled[1].revents != 0 {
            drain_wake(wake);
        }
        // Before accepting, so that the entries still match the connections.
        let ready: Vec<u64> = polled[2..]
            .iter()
            .zip(&self.connections)
            .filter(|(entry, _)| entry.revents != 0)
            .map(|(_, connection)| connection.id)
            .collect();
        for (id, response) in self.jobs.take_done() {
            self.step(id, |connection| connection.respond(response));
        }
        for id in ready {
            self.step(id, Connection::advance);
        }
        self.drop_overdue();
        if polled[0].revents != 0 {
            self.accept(listener);
        }
        true
    }

    fn timeout(&self, now: Instant, looking: bool) -> libc::c_int {
        let deadlines = self.connections.iter().filter_map(Connection::deadline);
        let deadline = deadlines.chain(self.accept_again).chain(looking.then(|| now + LOOK_INTERVAL)).min();
        match deadline {
            None => -1,
            Some(deadline) => deadline.saturating_duration_since(now).as_millis().min(60_000) as libc::c_int + 1,
        }
    }

    fn step(&mut self, id: u64, act: impl FnOnce(&mut Connection) -> Step) {
        let Some(index) = self.connections.iter().position(|connection| connection.id == id) else { return };
        match act(&mut self.connections[index]) {
            Step::Wait => {}
            Step::Answer(request) => self.jobs.submit(id, request),
            Step::Close => drop(self.connections.swap_remove(index)),
            Step::Reject => {
                self.agent.rejected.fetch_add(1, Relaxed);
                drop(self.connections.swap_remove(index));
            }
        }
    }

    fn drop_overdue(&mut self) {
        let now = Instant::now();
        let before = self.connections.len();
        self.connections.retain(|connection| connection.deadline().is_none_or(|deadline| deadline > now));
        self.agent.rejected.fetch_add((before - self.connections.len()) as u64, Relaxed);
    }

    fn accept(&mut self, listener: RawFd) {
        self.accept_again = None;
        loop {
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            // SAFETY: accepts on our socket without asking for the address.
            let fd = unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
            if fd < 0 {
                let error = io::Error::last_os_error().raw_os_error();
                if matches!(error, Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)) {
                    self.accept_again = Some(Instant::now() + EXHAUSTED_PAUSE);
                }
                return;
            }
            // SAFETY: just accepted.
            let Ok(fd) = (unsafe { WatchedFd::adopt(fd) }) else { continue };
            self.admit(fd);
        }
    }

    fn admit(&mut self, fd: WatchedFd) {
        if self.connections.len() >= CONNECTIONS_MAX {
            let idle = self.connections.iter().enumerate().filter_map(|(index, it)| Some((it.idle_since()?, index)));
            let Some((_, index)) = idle.min() else { return };
            self.agent.rejected.fetch_add(1, Relaxed);
            drop(self.connections.swap_remove(index));
        }
        let refusal = fd.get().and_then(|fd| self.refusal(fd));
        let id = self.next_id;
        self.next_id += 1;
        self.agent.rejected.fetch_add(u64::from(refusal.is_some()), Relaxed);
        self.connections.push(Connection::new(id, fd, refusal));
        self.step(id, Connection::advance);
    }

    /// Why the peer is not admitted: only root and the host's own user are.
    fn refusal(&self, fd: RawFd) -> Option<String> {
        // SAFETY: plain numbers.
        let mut peer: libc::ucred = unsafe { mem::zeroed() };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: fills in at most `length` bytes of ours.
        let got = unsafe {
            libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut length)
        };
        if got != 0 {
            return Some("the kernel does not say who you are (SO_PEERCRED)".into());
        }
        // SAFETY: no preconditions.
        let euid = unsafe { libc::geteuid() };
        let admitted = peer.uid == 0 || peer.uid == euid || peer.uid == self.owner;
        (!admitted).then(|| {
            format!(
                "permission denied: the process belongs to uid {euid}, you are uid {}; run as that user or root",
                peer.uid
            )
        })
    }
}

/// Two connected datagram sockets: workers wake the poll loop through them.
fn wake_pair() -> io::Result<(WatchedFd, WatchedFd)> {
    let mut pair = [-1; 2];
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: fills in two numbers of ours.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made.
    unsafe { Ok((WatchedFd::adopt(pair[0])?, WatchedFd::adopt(pair[1])?)) }
}

fn drain_wake(fd: RawFd) {
    let mut byte = [0u8; 1];
    // SAFETY: receives at most one byte.
    while unsafe { libc::recv(fd, byte.as_mut_ptr().cast(), 1, libc::MSG_DONTWAIT) } > 0 {}
}
