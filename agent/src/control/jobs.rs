//! The agent's state, and the threads that answer requests.

use super::pace::{Pace, Paced};
use super::profile::Profiler;
use super::request::Request;
use super::response::Response;
use super::stats::StatsReader;
use super::thread::spawn_quietly;
use super::triggers::Keeper;
use crate::boundary::contain;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Threads that answer at the same time. They end when there is nothing to do.
const WORKERS_MAX: usize = 4;

/// Everything that requests are answered from.
pub(crate) struct Agent {
    pub(crate) profiler: Profiler,
    pub(crate) stats: StatsReader,
    pub(crate) triggers: Keeper,
    /// The host's `malloc` is this library's.
    pub(crate) malloc_is_ours: bool,
    pub(crate) requests: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) dumps: AtomicU64,
    /// A dump is being made.
    pub(crate) dumping: AtomicBool,
    socket_path: OnceLock<String>,
}

impl Agent {
    /// A new agent. Must be called before `main`.
    pub(crate) fn new(malloc_is_ours: bool) -> Self {
        Self {
            profiler: Profiler::new(),
            stats: StatsReader::default(),
            triggers: Keeper::default(),
            malloc_is_ours,
            requests: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            dumps: AtomicU64::new(0),
            dumping: AtomicBool::new(false),
            socket_path: OnceLock::new(),
        }
    }

    /// Path of the socket, empty before it was made.
    pub(crate) fn socket_path(&self) -> &str {
        self.socket_path.get().map_or("", String::as_str)
    }

    pub(super) fn set_socket_path(&self, path: String) {
        let _ = self.socket_path.set(path);
    }
}

/// Number of a connection, never used twice.
pub(crate) type ConnectionId = u64;

/// Requests on their way to an answer.
pub(crate) struct Jobs {
    answer: Box<dyn Fn(&Request) -> Response + Send + Sync>,
    /// Guards: the queue and the number of workers.
    state: Mutex<State>,
    /// Guards: answers that the server has not fetched yet. Never taken while `state` is held.
    done: Mutex<Vec<(ConnectionId, Response)>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Requests that are not in the queue yet.
    pace: Pace<ConnectionId>,
    workers: usize,
}

/// One answer to be made, for everybody who waits for it.
struct Job {
    clients: Vec<ConnectionId>,
    request: Request,
    paced: Option<Paced>,
}

impl Jobs {
    /// `wake` is called when there is an answer to fetch.
    pub(crate) fn new(
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (answer, wake) = (Box::new(answer), Box::new(wake));
        Arc::new(Self { answer, state: Mutex::default(), done: Mutex::default(), wake })
    }

    /// Answers a request on a worker, or holds it back until [`Self::release`].
    pub(crate) fn submit(self: &Arc<Self>, client: ConnectionId, request: Request) {
        let refused = match Paced::of(&request) {
            None => Some((client, request)),
            Some(kind) => lock(&self.state).pace.wait(kind, client, request).err(),
        };
        if let Some((client, request)) = refused {
            self.queue(Job { clients: vec![client], request, paced: None });
        }
    }

    /// Answers those of the requests held back that it is time for, if the client is still there.
    pub(crate) fn release(self: &Arc<Self>, now: Instant, is_there: impl Fn(&ConnectionId) -> bool) {
        loop {
            let next = lock(&self.state).pace.next(now, &is_there);
            let Some((kind, request, clients)) = next else { return };
            self.queue(Job { clients, request, paced: Some(kind) });
        }
    }

    /// When [`Self::release`] has something to do.
    pub(crate) fn release_at(&self) -> Option<Instant> {
        lock(&self.state).pace.next_at()
    }

    /// If no thread can be had, the caller answers the request itself.
    fn queue(self: &Arc<Self>, job: Job) {
        let mut state = lock(&self.state);
        state.queue.push_back(job);
        if state.workers >= WORKERS_MAX {
            return;
        }
        state.workers += 1;
        let jobs = Arc::clone(self);
        let spawned = spawn_quietly(c"offheap-job", move || jobs.work());
        if spawned.is_err() {
            state.workers -= 1;
            let alone = state.workers == 0;
            drop(state);
            if alone {
                lock(&self.state).workers += 1;
                self.work();
            }
        }
    }

    /// Answers that are ready.
    pub(crate) fn take_done(&self) -> Vec<(ConnectionId, Response)> {
        std::mem::take(&mut lock(&self.done))
    }

    /// Whether there is nothing left to answer.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.state).workers == 0
    }

    fn work(&self) {
        loop {
            let job = {
                let mut state = lock(&self.state);
                match state.queue.pop_front() {
                    Some(job) => job,
                    None => {
                        state.workers -= 1;
                        return;
                    }
                }
            };
            let Job { clients, request, paced } = job;
            let begin = Instant::now();
            // A panic is answered like any other failure: the worker count and the client must not be left hanging.
            let answer = contain(|| (self.answer)(&request))
                .unwrap_or_else(|| Response::error(500, "the agent failed to answer; please report it"));
            if let Some(kind) = paced {
                let now = Instant::now();
                lock(&self.state).pace.made(kind, now - begin, now);
            }
            lock(&self.done).extend(clients.into_iter().map(|client| (client, answer.clone())));
            (self.wake)();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
