//! Hundreds of clients at once, most of them ill-behaved: the host must not notice, the good client must be served, and
//! nothing may be left over.

mod kit;

use kit::{Host, ask, await_that, descriptors, host};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Clients that are open at the same time.
const CLIENTS: usize = 500;
/// Rounds of allocation on each of the host's threads: a second or so.
const WORK: &str = "work 300000";

/// Patience with a condition that is awaited; a failing test takes this long, a passing one does not.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an ill-behaved client does after it has connected.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Says nothing.
    Silent,
    /// Half a request line.
    HalfRequest,
    /// A whole head with a body announced that never comes.
    NoBody,
    /// Bytes of no protocol.
    Garbage,
    /// A head without end.
    EndlessHead,
    /// Asks for a dump and takes a byte now and then.
    SlowReader,
    /// Asks for a dump, reads its beginning and dies.
    DiesInDump,
    /// Asks for the statistics and dies without reading.
    DiesUnread,
    /// Closes its sending half at once.
    HalfClosed,
    /// Sends the same good request ten times without waiting.
    Pipelines,
}

const MANNERS: [Manner; 10] = [
    Manner::Silent,
    Manner::HalfRequest,
    Manner::NoBody,
    Manner::Garbage,
    Manner::EndlessHead,
    Manner::SlowReader,
    Manner::DiesInDump,
    Manner::DiesUnread,
    Manner::HalfClosed,
    Manner::Pipelines,
];

impl Manner {
    fn opening(self) -> Vec<u8> {
        match self {
            Self::Silent | Self::HalfClosed => Vec::new(),
            Self::HalfRequest => b"GET /v1/st".to_vec(),
            Self::NoBody => {
                b"PUT /v1/mallctl/prof.active HTTP/1.1\r\nHost: o\r\nContent-Length: 1000\r\n\r\nfal".to_vec()
            }
            // Every byte value, among them NUL, CR and LF in wrong places.
            Self::Garbage => (0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
            Self::EndlessHead => {
                let mut head = b"GET /v1/info HTTP/1.1\r\n".to_vec();
                for n in 0..4000 {
                    head.extend_from_slice(format!("X-{n}: {n}\r\n").as_bytes());
                }
                head
            }
            Self::SlowReader | Self::DiesInDump => b"GET /v1/profile/heap HTTP/1.1\r\nHost: o\r\n\r\n".to_vec(),
            Self::DiesUnread => b"GET /v1/stats HTTP/1.1\r\nHost: o\r\n\r\n".to_vec(),
            Self::Pipelines => b"GET /v1/info HTTP/1.1\r\nHost: o\r\n\r\n".repeat(10),
        }
    }

    /// Connects and misbehaves; the stream comes back when this manner is to stay.
    fn enter(self, socket: &Path) -> Option<UnixStream> {
        let mut stream = UnixStream::connect(socket).expect("the agent accepts, however many there are");
        // An agent that stops reading must not stop the test.
        stream.set_write_timeout(Some(Duration::from_millis(200))).expect("timeout");
        stream.set_read_timeout(Some(Duration::from_millis(200))).expect("timeout");
        // The agent may have answered and closed before everything is written.
        let _ = stream.write_all(&self.opening());
        let mut some = [0u8; 16];
        match self {
            Self::DiesInDump => {
                let _ = stream.read(&mut some);
                None
            }
            Self::DiesUnread => None,
            Self::HalfClosed => {
                stream.shutdown(Shutdown::Write).expect("shutdown");
                Some(stream)
            }
            Self::SlowReader => {
                let _ = stream.read(&mut some[..1]);
                Some(stream)
            }
            _ => Some(stream),
        }
    }
}

/// Clients of all manners, many at a time: those who want a dump wait for it.
fn enter_all(socket: &Path, clients: usize) -> Vec<UnixStream> {
    const AT_A_TIME: usize = 50;
    let enter = |first: usize| (first..clients).step_by(AT_A_TIME).map(|it| MANNERS[it % MANNERS.len()].enter(socket));
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..AT_A_TIME).map(|first| scope.spawn(move || enter(first).flatten().collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect()
    })
}

/// What a process holds: descriptors and threads by name.
fn holdings(pid: u32) -> (usize, Vec<String>) {
    let descriptors = descriptors(pid);
    let mut threads: Vec<String> = fs::read_dir(format!("/proc/{pid}/task"))
        .expect("task")
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect();
    threads.sort();
    (descriptors, threads)
}

/// Fewer descriptors than before are fine: the connection that asked for the first dump may still have been open.
fn nothing_left(before: &(usize, Vec<String>), after: &(usize, Vec<String>)) -> bool {
    after.0 <= before.0 && after.1 == before.1
}

fn seconds(host: &mut Host) -> f64 {
    let answer = host.tell(WORK);
    answer
        .strip_prefix("done ")
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("the host said {answer:?}"))
}

/// Longest of some good requests, made one after another.
fn longest_answer(host: &Host, requests: usize) -> Duration {
    (0..requests)
        .map(|_| {
            let begin = Instant::now();
            assert_eq!(ask(host.socket(), "GET", "/v1/info", "").status, 200);
            begin.elapsed()
        })
        .max()
        .unwrap_or_default()
}

#[test]
fn five_hundred_clients_leave_nothing_behind() {
    let mut host = Host::start(&host("churn"), &["2"], &[("OFFHEAP_PROFILE", "12")]);
    seconds(&mut host); // warms caches, arenas and the profile
    let dump = host.ask("GET", "/v1/profile/heap");
    assert!(dump.status == 200 && dump.body.len() > 300_000, "a dump of some size to be slow with");
    // The thread that made the dump ends after its answer.
    await_that("the dump's thread has ended", || !holdings(host.pid()).1.iter().any(|name| name == "offheap-job"));
    let before = holdings(host.pid());
    let alone = [seconds(&mut host), seconds(&mut host)];
    let answer_alone = longest_answer(&host, 20);

    let mut open = enter_all(host.socket(), CLIENTS);
    let mut crowded = Vec::new();
    for _ in 0..2 {
        crowded.push(seconds(&mut host));
        // Those who stay go on being slow, and those who were thrown out come back.
        for stream in &mut open {
            let mut one = [0u8; 1];
            stream.set_nonblocking(true).expect("nonblocking");
            match stream.read(&mut one) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => {
                    let _ = stream.write(b"x");
                }
            }
        }
        open.extend(enter_all(host.socket(), CLIENTS / 5));
    }
    // Whoever misbehaves, a good client is answered; `ask` itself fails after PATIENCE.
    let answer_crowded = longest_answer(&host, 20);
    assert!(answer_crowded < PATIENCE);
    assert_eq!(host.ask("GET", "/metrics").status, 200);
    eprintln!(
        "host: {alone:.3?} s alone, {crowded:.3?} s with {CLIENTS} clients; longest of 20 answers: {answer_alone:.1?} alone, {answer_crowded:.1?} among them"
    );

    drop(open);
    let mut after = before.clone();
    let waited = Instant::now();
    while waited.elapsed() < PATIENCE {
        after = holdings(host.pid());
        if nothing_left(&before, &after) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(nothing_left(&before, &after), "descriptors or threads are left over: {before:?}, then {after:?}");
    await_that("a dump after the crowd has gone", || host.ask("GET", "/v1/profile/heap").status == 200);
    assert_eq!(host.tell(WORK).split(' ').next(), Some("done"));
    assert_eq!(host.end(), Some(0));
}

#[test]
fn a_host_that_ends_among_clients_ends_as_it_would() {
    let mut host = Host::start(&host("churn"), &["2"], &[("OFFHEAP_PROFILE", "12")]);
    seconds(&mut host);
    let socket = host.socket().to_owned();
    let open: Vec<UnixStream> = (0..60).filter_map(|number| MANNERS[number % MANNERS.len()].enter(&socket)).collect();
    assert_eq!(host.end(), Some(0));
    assert!(!socket.exists(), "the socket goes with the host");
    drop(open);
}
