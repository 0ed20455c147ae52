//! The agent thread: one poll loop over the socket and its clients.

use super::connection::{Connection, Step};
use super::jobs::{Agent, Jobs};
use super::log::{Log, say};
use super::socket::SocketPath;
use super::thread::{Thread, spawn_quietly};
use super::watched_fd::WatchedFd;
use super::{mallctl, own_table, socket, triggers};
use crate::boundary::contain;
use crate::hot;
use crate::kernel;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Clients at the same time; one more makes the one go that has been idle longest.
const CONNECTIONS_MAX: usize = 128;
/// While recording, the loaded images are looked at this often, and the triggers while there are any.
const LOOK_INTERVAL: Duration = triggers::LOOK_INTERVAL;
/// Time that a host's start is delayed at most while the agent makes its socket.
const START_PATIENCE: Duration = Duration::from_secs(1);
/// Time that requests have to be answered before a host's sandbox closes.
const WORKERS_PATIENCE: Duration = Duration::from_secs(2);
/// Rounds of the server that may panic before it gives up.
const PANICS_MAX: u32 = 100;
/// While the first thread has left, the others are counted this often.
const LAST_INTERVAL: Duration = Duration::from_millis(20);
/// Pause in accepting when the host has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Guards: path and inode of the socket to remove at exit.
static SOCKET_FILE: Mutex<Option<(String, u64)>> = Mutex::new(None);
/// Process that the agent thread runs in; a forked child differs. Zero where there is none: then nothing is asked of the
/// kernel at exit, which a sandbox might not forgive.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// A forked child that has a memory of its own, unlike one of `vfork`.
static FORKED: AtomicU32 = AtomicU32::new(0);
/// Guards: the agent thread, and that it is ended and started again by one thread of the host at a time.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// What is needed to end the agent thread.
struct Running {
    thread: Thread,
    stop: Arc<AtomicBool>,
    /// In the host's table of descriptors, as the calling thread is.
    waker: Arc<WatchedFd>,
    agent: Arc<Agent>,
    path: SocketPath,
}

/// Starts the agent thread, which makes the socket. Before `main`, and waits for it, so that a host that ends at once does
/// not leave a socket behind.
pub(crate) fn start(agent: Arc<Agent>, path: &SocketPath) -> io::Result<()> {
    OWNER.store(std::process::id(), Relaxed);
    let running = Running::begin(agent, path.clone())?;
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    Ok(())
}

/// Removes the socket of a process that ends.
pub(crate) fn remove_socket() {
    let owner = OWNER.load(Relaxed);
    if owner == 0 || owner != std::process::id() {
        return;
    }
    if let Ok(mut file) = SOCKET_FILE.try_lock()
        && let Some((path, inode)) = file.take()
    {
        socket::remove(&path, inode);
    }
}

/// Runs `act` while the process has no thread of the agent's, and starts them again after, with a new socket.
pub(crate) fn alone<R>(act: impl FnOnce() -> R) -> R {
    if OWNER.load(Relaxed) != std::process::id() {
        return act();
    }
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = running.take().and_then(Running::end);
    let _ = mallctl::set_background_thread(false);
    await_that_threads_are_gone();
    let result = act();
    *running = ended.and_then(|(agent, path)| Running::begin(agent, path).ok());
    result
}

/// The host's first thread ends, and the process with its last one, which must not be the agent's: a thread watches, ends
/// the agent after the host's last thread, and is then the last itself. It has the host's table of descriptors, for what
/// `exit` runs. Where it cannot be had, or cannot see the threads, the agent ends at once.
pub(crate) fn end_with_the_host() {
    if OWNER.load(Relaxed) != std::process::id() {
        return;
    }
    let watching = spawn_quietly(c"offheap-last", || {
        while threads_but(is_agents).is_some_and(|others| others > 0) {
            std::thread::sleep(LAST_INTERVAL);
        }
        end_for_good();
        // Those that still answer: they must not be the last either.
        let begin = Instant::now();
        while begin.elapsed() < WORKERS_PATIENCE && threads_but(|name| name == "offheap-last").is_some_and(|n| n > 0) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    if watching.is_err() {
        end_for_good();
    }
}

fn end_for_good() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    drop(running.take().and_then(Running::end));
    let _ = mallctl::set_background_thread(false);
}

/// Threads of this process that are not called so, without the first; `None` when they cannot be seen.
fn threads_but(mine: impl Fn(&str) -> bool) -> Option<usize> {
    let first = std::process::id().to_string();
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let others = tasks.filter(|task| task.file_name().to_str() != Some(&first)).filter(|task| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        // One that ended meanwhile has none.
        name.is_ok_and(|name| !mine(name.trim_end()))
    });
    Some(others.count())
}

/// Names of the agent's threads and of its jemalloc's.
fn is_agents(name: &str) -> bool {
    name.starts_with("offheap") || name == "jemalloc_bg_thd"
}

/// This is a forked child. Async-signal-safe.
pub(crate) fn forked() {
    FORKED.store(std::process::id(), Relaxed);
    OWNER.store(0, Relaxed);
}

/// Before the host makes a call after which the agent's system calls would be its end: ends the agent, its threads, its
/// socket and the recording, and makes the call. When that has failed, the agent begins anew.
pub(crate) fn retire_for<R>(act: impl FnOnce() -> R, failed: impl FnOnce(&R) -> bool) -> R {
    let process = std::process::id();
    let recorded = mallctl::prof_active();
    if OWNER.load(Relaxed) != process {
        if recorded && FORKED.load(Relaxed) == process {
            let _ = mallctl::set_prof_active(false);
        }
        return act();
    }
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = running.take().and_then(Running::end);
    if recorded {
        let _ = mallctl::set_prof_active(false);
        hot::await_quiet();
    }
    let _ = mallctl::set_background_thread(false);
    OWNER.store(0, Relaxed);
    let result = act();
    if failed(&result) {
        OWNER.store(process, Relaxed);
        if recorded {
            let _ = mallctl::set_prof_active(true);
        }
        *running = ended.and_then(|(agent, path)| Running::begin(agent, path).ok());
    }
    result
}

impl Running {
    /// Starts the thread and waits until it has made its socket, or has said why not.
    fn begin(agent: Arc<Agent>, path: SocketPath) -> io::Result<Self> {
        let ends = Ends::new()?;
        let waker = Arc::clone(&ends.waker);
        let stop = Arc::new(AtomicBool::new(false));
        let (started, has_started) = mpsc::sync_channel(1);
        let thread = spawn_quietly(c"offheap", {
            let (agent, path, stop) = (Arc::clone(&agent), path.clone(), Arc::clone(&stop));
            move || {
                let (ends, left_behind) = ends.separate();
                let mut server = Server::new(agent, &path, ends);
                // A host that did not wait keeps a descriptor more: closed here, the number would be this table's.
                if let Err(mpsc::SendError(Some(fds))) = started.send(left_behind) {
                    mem::forget(fds);
                }
                let _ = mallctl::set_background_thread(true);
                server.serve(&stop, Server::turn);
                server.await_idle(WORKERS_PATIENCE);
            }
        })?;
        drop(has_started.recv_timeout(START_PATIENCE));
        Ok(Self { thread, stop, waker, agent, path })
    }

    /// Ends the thread and removes its socket. None when it had ended, or does not hear.
    fn end(self) -> Option<(Arc<Agent>, SocketPath)> {
        self.stop.store(true, Release);
        if !self.thread.is_finished() {
            wake(&self.waker).then_some(())?;
        }
        self.thread.join();
        remove_socket();
        Some((self.agent, self.path))
    }
}

/// A pair that wakes the agent thread: what it polls, and what others send to.
struct Ends {
    wake: WatchedFd,
    waker: Arc<WatchedFd>,
}

impl Ends {
    fn new() -> io::Result<Self> {
        let (wake, waker) = kernel::socket_pair()?;
        Ok(Self { wake: WatchedFd::adopt(wake)?, waker: WatchedFd::adopt(waker)?.into() })
    }

    /// Takes them out of the host's table, if the kernel lets this thread have its own. Then what is to be closed in the
    /// host's table, by a thread that has it, comes second.
    fn separate(self) -> (Self, Option<Self>) {
        let (Some(wake), Some(waker)) = (self.wake.get(), self.waker.get()) else { return (self, None) };
        let Some(pair) = own_table::leave([wake, waker], Log::descriptor()) else { return (self, None) };
        let [wake, waker] = pair.map(WatchedFd::in_own_table);
        (Self { wake, waker: waker.into() }, Some(self))
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

/// Whether somebody will hear.
fn wake(waker: &WatchedFd) -> bool {
    let Some(fd) = waker.get() else { return false };
    // A full buffer means that the server is being woken already.
    let _ = kernel::send(fd, &[0]);
    true
}

struct Server {
    agent: Arc<Agent>,
    jobs: Arc<Jobs>,
    /// None when no socket could be made: profiling and triggers of the environment work even so.
    listener: Option<WatchedFd>,
    wake: WatchedFd,
    connections: Vec<Connection>,
    next_id: u64,
    accept_again: Option<Instant>,
    /// Rounds that panicked.
    panics: u32,
    /// User that made the socket; the host may change its own later.
    owner: libc::uid_t,
}

impl Server {
    fn new(agent: Arc<Agent>, path: &SocketPath, Ends { wake, waker }: Ends) -> Self {
        let listener = match path.bind() {
            Err(error) => {
                say(&error.to_string());
                None
            }
            Ok(bound) => {
                say(&format!("serving {}", bound.path));
                agent.set_socket_path(bound.path.clone());
                *SOCKET_FILE.lock().unwrap_or_else(PoisonError::into_inner) = Some((bound.path, bound.inode));
                Some(bound.listener)
            }
        };
        let answering = Arc::clone(&agent);
        let jobs = Jobs::new(
            move |request| answering.answer(request),
            move || {
                self::wake(&waker);
            },
        );
        Self {
            agent,
            jobs,
            listener,
            wake,
            connections: Vec::new(),
            next_id: 0,
            accept_again: None,
            panics: 0,
            owner: kernel::effective_user(),
        }
    }

    /// Goes round until it is told to stop, or cannot go on.
    fn serve(&mut self, stop: &AtomicBool, mut turn: impl FnMut(&mut Self) -> bool) {
        while !stop.load(Acquire) {
            match contain(|| turn(self)) {
                Some(true) => {}
                Some(false) => {
                    say("the process closed the agent's descriptors; the agent is silent from now on");
                    return;
                }
                None if self.recovers() => {}
                None => return,
            }
        }
    }

    /// After a round that panicked: the clients may be to blame, so they go. False when it has happened too often.
    fn recovers(&mut self) -> bool {
        self.panics += 1;
        self.agent.rejected.fetch_add(self.connections.len() as u64, Relaxed);
        self.connections.clear();
        self.panics < PANICS_MAX
    }

    /// Waits until there is nothing left to answer and no file being written, but not longer than this.
    fn await_idle(&self, patience: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < patience && (!self.jobs.is_idle() || self.agent.triggers.is_writing()) {
            std::thread::sleep(Duration::from_millis(1));
        }
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
        kernel::poll(&mut polled, timeout);

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
        self.jobs.release(Instant::now(), |id| self.connections.iter().any(|connection| connection.id == *id));
        true
    }

    fn timeout(&self, now: Instant, looking: bool) -> libc::c_int {
        let deadlines = self.connections.iter().filter_map(Connection::deadline);
        let others = [self.accept_again, self.jobs.release_at(), looking.then(|| now + LOOK_INTERVAL)];
        let deadline = deadlines.chain(others.into_iter().flatten()).min();
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
            let fd = match kernel::accept(listener).and_then(WatchedFd::adopt) {
                Ok(fd) => fd,
                Err(error) => {
                    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS];
                    if error.raw_os_error().is_some_and(|errno| exhausted.contains(&errno)) {
                        self.accept_again = Some(Instant::now() + EXHAUSTED_PAUSE);
                    }
                    return;
                }
            };
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
        let Some(peer) = kernel::peer_user(fd) else {
            return Some("the kernel does not say who you are (SO_PEERCRED)".into());
        };
        let euid = kernel::effective_user();
        let admitted = peer == 0 || peer == euid || peer == self.owner;
        (!admitted).then(|| {
            format!(
                "permission denied: the process belongs to uid {euid}, you are uid {peer}; run as that user or root"
            )
        })
    }
}

fn drain_wake(fd: RawFd) {
    while kernel::receive(fd, &mut [0]).is_ok_and(|count| count > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::contained;
    use crate::control::response::Response;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// A server in this process that panics when it is asked for `/panic`, and in each round for which `fails` says so.
    struct Running {
        path: String,
        stop: Arc<AtomicBool>,
        waker: Arc<WatchedFd>,
        thread: Thread,
    }

    impl Running {
        fn start(name: &str, mut fails: impl FnMut(&Server) -> bool + Send + 'static) -> Self {
            let path = std::env::temp_dir().join(format!("offheap-panics-{}-{name}", std::process::id()));
            let path = path.to_str().unwrap().to_owned();
            let ends = Ends::new().unwrap();
            let waker = Arc::clone(&ends.waker);
            let mut server = Server::new(Arc::new(Agent::new(true)), &SocketPath::Given(path.clone()), ends);
            let woken = Arc::clone(&waker);
            server.jobs = Jobs::new(
                |request| match request.path.as_str() {
                    "/panic" => panic!("asked for"),
                    path => Response::json(&path),
                },
                move || {
                    wake(&woken);
                },
            );
            let stop = Arc::new(AtomicBool::new(false));
            let thread = spawn_quietly(c"offheap-test", {
                let stop = Arc::clone(&stop);
                move || {
                    server.serve(&stop, |server| {
                        assert!(!fails(server), "a round that fails");
                        server.turn()
                    });
                }
            });
            Self { path, stop, waker, thread: thread.unwrap() }
        }

        /// What comes back; nothing when the connection was closed.
        fn ask(&self, path: &str) -> String {
            let mut stream = UnixStream::connect(&self.path).unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        }

        fn end(self) {
            self.stop.store(true, Release);
            wake(&self.waker);
            self.thread.join();
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Threads that answer.
    fn workers() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        tasks
            .filter(|task| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|n| n == "offheap-job\n"))
            .count()
    }

    #[test]
    fn a_request_that_panics_is_answered_and_so_is_the_next() {
        let server = Running::start("request", |_| false);
        let before = contained();
        for round in 0..50 {
            assert!(server.ask("/panic").starts_with("HTTP/1.1 500 "), "round {round}");
            assert!(server.ask("/well").ends_with("\r\n\r\n\"/well\"\n"), "round {round}");
        }
        assert!(contained() >= before + 50);
        server.end();
        let begin = Instant::now();
        while workers() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "threads that answered are left over");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_round_that_panics_costs_its_clients_and_nothing_else() {
        let before = contained();
        // Each connection that was accepted as the third, sixth and so on.
        let mut failed = 0;
        let server = Running::start("round", move |server| {
            let fails = server.next_id / 3 > failed;
            failed += u64::from(fails);
            fails
        });
        let answers: Vec<String> = (0..30).map(|_| server.ask("/well")).collect();
        let (well, closed): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| !answer.is_empty());
        assert!(well.iter().all(|answer| answer.ends_with("\"/well\"\n")), "{well:?}");
        assert!(closed.len() <= 10, "{} of 30 were closed, at most every third round panics", closed.len());
        assert!(contained() > before, "no round panicked: the test shows nothing");
        assert!(server.ask("/well").ends_with("\"/well\"\n"));
        server.end();
    }

    #[test]
    fn a_server_that_always_panics_gives_up() {
        let server = Running::start("always", |_| true);
        let path = server.path.clone();
        server.thread.join();
        assert!(UnixStream::connect(&path).is_err(), "nobody listens any more");
        let _ = std::fs::remove_file(&path);
    }
}
