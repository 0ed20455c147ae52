//! `--go`: what was typed, and what it gives.

use super::get::{Namespace, get};
use super::listening::ports;
use super::pages;
use crate::analysis::go_runtime::{self, GoMemory, Source};
use crate::input;
use anyhow::{Context, anyhow, bail};
use offheap_symbolizer::formats::pprof;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

/// Where the statistics come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GoEndpoint {
    /// A page that was saved.
    File(PathBuf),
    /// `http://HOST:PORT`, with or without the path of a page.
    Url(String),
    /// The ports on which the target itself listens and that the loopback interface reaches.
    Auto,
}

impl FromStr for GoEndpoint {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => Self::Auto,
            url if url.starts_with("http://") || url.starts_with("https://") => Self::Url(url.into()),
            path => Self::File(path.into()),
        })
    }
}

/// What was typed; a file may have a name that is no UTF-8.
impl From<OsString> for GoEndpoint {
    fn from(text: OsString) -> Self {
        match text.to_str().map(Self::from_str) {
            Some(Ok(endpoint)) => endpoint,
            _ => Self::File(text.into()),
        }
    }
}

/// The statistics, with the place and the moment of the reading.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The statistics.
    pub(crate) memory: GoMemory,
    /// The kind of page.
    pub(crate) source: Source,
    /// The file or URL.
    pub(crate) from: String,
    /// When the answer had come; `None` for a file, which is of another time.
    pub(crate) at: Option<Instant>,
}

impl GoEndpoint {
    /// Read the statistics of the process `pid`, which matters to `auto` alone.
    ///
    /// # Errors
    /// When nothing answers, or the answer holds no statistics; the message names what was asked.
    pub(crate) fn read(&self, pid: u32) -> anyhow::Result<Answer> {
        match self {
            Self::File(path) => {
                let page = std::fs::read(path).with_context(|| {
                    format!("{}: cannot be read; --go takes a file, a URL, or `auto`", path.display())
                })?;
                let shown = path.display().to_string();
                let (plain, _) = input::unpacked(&page, &shown)?;
                answer(&plain, shown.clone(), None).ok_or_else(|| no_statistics(&plain, &shown))
            }
            Self::Url(url) => ask(&pages::of_url(url), &Namespace::ours()),
            Self::Auto => auto(pid),
        }
    }
}

/// Ask pages in turn until one holds statistics. The error is that of the first, the likeliest.
fn ask(urls: &[String], namespace: &Namespace) -> anyhow::Result<Answer> {
    let mut first_error = None;
    for url in urls {
        let error = match get(url, namespace) {
            Ok(page) => match answer(&page, url.clone(), Some(Instant::now())) {
                Some(answer) => return Ok(answer),
                None => no_statistics(&page, url),
            },
            Err(error) => error,
        };
        first_error = first_error.or(Some(error));
    }
    Err(first_error.unwrap_or_else(|| anyhow!("no page to ask")))
}

fn auto(pid: u32) -> anyhow::Result<Answer> {
    on_own_ports(pid, |host, namespace| ask(&pages::of_url(host), namespace).ok())
}

/// The Go heap profile of a process, as protobuf, from the first of its own ports that serves one.
///
/// # Errors
/// When none does.
pub(crate) fn heap_profile(pid: u32) -> anyhow::Result<Vec<u8>> {
    on_own_ports(pid, |host, namespace| {
        let page = get(&format!("{host}/debug/pprof/heap"), namespace).ok()?;
        is_gzip(&page).then_some(page)
    })
}

/// Ask the ports on which a process itself listens until one gives what is wanted.
fn on_own_ports<T>(pid: u32, wanted: impl Fn(&str, &Namespace) -> Option<T>) -> anyhow::Result<T> {
    let ports = ports(pid)?;
    if ports.is_empty() {
        bail!(
            "process {pid} listens on no port that the loopback interface reaches; give the URL of its pprof endpoint, \
             or serve one: import _ \"net/http/pprof\" and http.ListenAndServe(\"localhost:6060\", nil)"
        );
    }
    let namespace = Namespace::of(pid)?;
    let asked: Vec<String> = ports.iter().map(|address| address.to_string()).collect();
    let answer = asked.iter().find_map(|address| wanted(&format!("http://{address}"), &namespace));
    answer.ok_or_else(|| {
        anyhow!(
            "process {pid} listens on {}, but none of them serves /debug/pprof/heap, /debug/vars or Go metrics; give the \
             URL",
            asked.join(", ")
        )
    })
}

fn is_gzip(page: &[u8]) -> bool {
    page.starts_with(&[0x1f, 0x8b])
}

fn answer(page: &[u8], from: String, at: Option<Instant>) -> Option<Answer> {
    let (memory, source) = go_runtime::parse(page)?;
    Some(Answer { memory, source, from, at })
}

fn no_statistics(page: &[u8], from: &str) -> anyhow::Error {
    let why = if is_gzip(page) || pprof::looks_like(page) {
        "a profile as protobuf, which has no memory statistics; take the text form, ?debug=1"
    } else if page.is_empty() {
        "empty"
    } else {
        "no page with Go memory statistics; expected /debug/pprof/heap?debug=1, /debug/vars or /metrics"
    };
    anyhow!("{from}: {why}")
}

#[cfg(test)]
mod tests {
    use super::GoEndpoint;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// Serve fixed pages on the loopback interface; the thread ends with the test.
    fn serve(pages: &'static [(&'static str, &'static str)]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().and_then(Result::ok).unwrap_or_default();
                while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
                let path = request.split(' ').nth(1).unwrap_or_default();
                let body = pages.iter().find(|(page, _)| *page == path).map(|(_, body)| *body);
                let (status, body) = body.map_or((404, "not here"), |body| (200, body));
                let head =
                    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            }
        });
        port
    }

    const VARS: &str =
        r#"{"memstats":{"HeapAlloc":1,"HeapInuse":2,"HeapIdle":3,"HeapReleased":1,"StackInuse":5,"StackSys":5}}"#;

    #[test]
    fn a_host_alone_is_asked_for_every_page() {
        let port = serve(&[("/debug/vars", VARS)]);
        let endpoint: GoEndpoint = format!("http://127.0.0.1:{port}").parse().unwrap();
        let answer = endpoint.read(0).unwrap();
        assert_eq!((answer.memory.heap_inuse, answer.from.ends_with("/debug/vars")), (2, true));
    }

    #[test]
    fn our_own_ports_are_found() {
        let port = serve(&[("/debug/vars", VARS)]);
        // Other tests of this process listen too; each of them would be an answer.
        let answer = GoEndpoint::Auto.read(std::process::id()).unwrap();
        assert_eq!(answer.memory.heap_inuse, 2);
        assert!(super::ports(std::process::id()).unwrap().iter().any(|address| address.port() == port));
    }

    #[test]
    fn what_has_no_statistics_is_named() {
        let port = serve(&[("/debug/pprof/heap?debug=1", "\u{1f}"), ("/page", "<html>")]);
        for (typed, expected) in [
            (format!("http://127.0.0.1:{port}/page"), "no page with Go memory statistics"),
            (format!("http://127.0.0.1:{port}/missing"), "status 404"),
            ("http://127.0.0.1:1/debug/vars".into(), "refused"),
            ("/nowhere/page.txt".into(), "cannot be read"),
            (
                concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/field/g03-four-types.pb.gz").into(),
                "take the text form",
            ),
        ] {
            let endpoint: GoEndpoint = typed.parse().unwrap();
            let error = format!("{:#}", endpoint.read(0).unwrap_err());
            assert!(error.contains(expected), "{typed}: {error}");
        }
    }
}
