//! How often answers are made that cost the host something: dumps and sample tables.
//!
//! One is made for all clients that wait for it, and after it there is a pause, so that many clients cost the host no more
//! than a few. Nobody gets one that is older than the question.

use super::request::Request;
use offheap_wire as wire;
use std::time::{Duration, Instant};

/// A pause is this many times as long as what it follows took,
const PAUSE_FACTOR: u32 = 50;
/// and not longer than one client may be delayed by others.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Answers that are paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paced {
    Heap,
    Samples,
}

impl Paced {
    const ALL: [Self; 2] = [Self::Heap, Self::Samples];

    /// Whether this is asked for such an answer.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", wire::PROFILE_HEAP | wire::PPROF_DUMP) => Some(Self::Heap),
            ("GET", wire::PROFILE_SAMPLES) => Some(Self::Samples),
            _ => None,
        }
    }
}

/// When to make which answer, and for whom. `T` is a client.
#[derive(Debug)]
pub(crate) struct Pace<T> {
    lines: [Line<T>; Paced::ALL.len()],
}

/// Those who wait for one kind of answer.
#[derive(Debug)]
struct Line<T> {
    waiting: Vec<(T, Request)>,
    is_making: bool,
    free_at: Option<Instant>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { waiting: Vec::new(), is_making: false, free_at: None }
    }
}

impl<T> Default for Pace<T> {
    fn default() -> Self {
        Self { lines: Paced::ALL.map(|_| Line::default()) }
    }
}

impl<T> Pace<T> {
    /// Puts a client into the line. A second dump while one is made is refused at once, and so has none.
    pub(crate) fn wait(&mut self, kind: Paced, client: T, request: Request) -> Result<(), (T, Request)> {
        let line = &mut self.lines[kind as usize];
        if kind == Paced::Heap && line.is_making {
            return Err((client, request));
        }
        line.waiting.push((client, request));
        Ok(())
    }

    /// What is to be made now: the request, and the clients that wait for it and are still there.
    pub(crate) fn next(&mut self, now: Instant, is_there: impl Fn(&T) -> bool) -> Option<(Paced, Request, Vec<T>)> {
        Paced::ALL.into_iter().find_map(|kind| {
            let line = &mut self.lines[kind as usize];
            if line.is_making || line.free_at.is_some_and(|at| now < at) {
                return None;
            }
            let mut asked = None;
            let waiting = std::mem::take(&mut line.waiting).into_iter().filter(|(client, _)| is_there(client));
            let clients: Vec<T> = waiting
                .map(|(client, request)| {
                    asked.get_or_insert(request);
                    client
                })
                .collect();
            line.is_making = asked.is_some();
            Some((kind, asked?, clients))
        })
    }

    /// It was made.
    pub(crate) fn made(&mut self, kind: Paced, took: Duration, now: Instant) {
        let line = &mut self.lines[kind as usize];
        line.is_making = false;
        line.free_at = Some(now + took.saturating_mul(PAUSE_FACTOR).min(PAUSE_MAX));
    }

    /// When to ask for the next one.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let lines = self.lines.iter().filter(|line| !line.is_making && !line.waiting.is_empty());
        lines.filter_map(|line| line.free_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::request::{self, Parsed};

    fn asked(method: &str, path: &str) -> Request {
        match request::parse(format!("{method} {path} HTTP/1.1\r\n\r\n").as_bytes()) {
            Parsed::Whole(request) => request,
            other => panic!("{other:?}"),
        }
    }

    fn request(path: &str) -> Request {
        asked("GET", path)
    }

    #[test]
    fn one_answer_for_all_who_wait_and_a_pause_after_it() {
        let (mut pace, begin, took) = (Pace::default(), Instant::now(), Duration::from_micros(500));
        let ask = |pace: &mut Pace<u32>, client| pace.wait(Paced::Samples, client, request(wire::PROFILE_SAMPLES));
        ask(&mut pace, 1).unwrap();
        let (kind, asked, clients) = pace.next(begin, |_| true).unwrap();
        assert_eq!((kind, asked.path.as_str(), clients), (Paced::Samples, wire::PROFILE_SAMPLES, vec![1]));
        // Asked while it was made: it could be older than the question.
        for client in 2..=4 {
            ask(&mut pace, client).unwrap();
        }
        assert!(pace.next(begin, |_| true).is_none());
        pace.made(kind, took, begin);
        let free = begin + took * PAUSE_FACTOR;
        assert_eq!(pace.next_at(), Some(free));
        assert!(pace.next(free - took, |_| true).is_none());
        assert_eq!(pace.next(free, |client| *client != 3).unwrap().2, [2, 4]);
        pace.made(kind, Duration::from_secs(9), free);
        ask(&mut pace, 5).unwrap();
        assert_eq!(pace.next_at(), Some(free + PAUSE_MAX));
        // Nobody left: nothing is made.
        assert!(pace.next(free + PAUSE_MAX, |_| false).is_none());
        assert_eq!(pace.next_at(), None);
    }

    #[test]
    fn a_second_dump_is_refused_at_once() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.wait(Paced::Heap, 1, request(wire::PROFILE_HEAP)).unwrap();
        assert!(pace.next(now, |_| true).is_some());
        assert_eq!(pace.wait(Paced::Heap, 2, request(wire::PPROF_DUMP)).unwrap_err().0, 2);
        // Tables are made meanwhile.
        pace.wait(Paced::Samples, 3, request(wire::PROFILE_SAMPLES)).unwrap();
        assert_eq!(pace.next(now, |_| true).unwrap().0, Paced::Samples);
        pace.made(Paced::Heap, Duration::ZERO, now);
        pace.wait(Paced::Heap, 2, request(wire::PROFILE_HEAP)).unwrap();
        assert_eq!(pace.next(now, |_| true).unwrap().2, [2]);
    }

    #[test]
    fn what_is_paced() {
        for (path, expected) in [
            (wire::PROFILE_HEAP, Some(Paced::Heap)),
            (wire::PPROF_DUMP, Some(Paced::Heap)),
            (wire::PROFILE_SAMPLES, Some(Paced::Samples)),
            (wire::STATS, None),
        ] {
            assert_eq!(Paced::of(&request(path)), expected, "{path}");
            assert_eq!(Paced::of(&asked("POST", path)), None, "{path}");
        }
    }
}
