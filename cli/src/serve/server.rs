//! Connections: one thread each, few at once, none for long.

use super::pages::{Answer, Site};
use super::request::{MAX_HEAD, Read as Parsed, Request, same_token};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections at once; scrapers need one or two each.
const MOST_CONNECTIONS: usize = 64;
/// Time to send a request, and to take an answer.
const HEAD_TIME: Duration = Duration::from_secs(3);
const BODY_TIME: Duration = Duration::from_secs(30);
/// Bytes written between two looks at the clock.
const PIECE: usize = 64 << 10;

/// Who may ask.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    Anyone,
    /// Those who send this token.
    Token(String),
}

/// Answer for ever. Only an error of the listening socket itself ends it.
pub(crate) fn serve(listener: &TcpListener, site: Site, access: Access) -> io::Result<()> {
    let shared = Arc::new((site, access));
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            // The client gave up, or we are out of descriptors: both pass.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            refuse(stream);
            continue;
        }
        let (shared, counted) = (Arc::clone(&shared), Counted(Arc::clone(&open)));
        let connection = std::thread::Builder::new().spawn(move || {
            let _counted = counted;
            // A client that went away is its own affair.
            let _ = converse(stream, &shared.0, &shared.1);
        });
        // Without a thread the connection is closed and the client tries again.
        drop(connection);
    }
    Ok(())
}

/// An open connection.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn refuse(mut stream: TcpStream) {
    let answer = Answer::text(503, "too many connections");
    let _ = stream
        .set_write_timeout(Some(Duration::from_millis(100)))
        .and_then(|()| stream.write_all(head(&answer).as_bytes()))
        .and_then(|()| stream.write_all(&answer.body));
}

fn converse(mut stream: TcpStream, site: &Site, access: &Access) -> io::Result<()> {
    let (answer, head_only) = match read_request(&mut stream)? {
        None => (Answer::text(400, "this is not an HTTP request"), false),
        Some(request) => {
            let admitted = match access {
                Access::Anyone => true,
                Access::Token(token) => request.token.as_deref().is_some_and(|given| same_token(given, token)),
            };
            let answer = if admitted {
                site.answer(&request)
            } else {
                Answer::text(401, "a token is needed: Authorization: Bearer TOKEN")
            };
            (answer, request.method == "HEAD")
        }
    };
    let deadline = Instant::now() + BODY_TIME;
    write_before(&mut stream, head(&answer).as_bytes(), deadline)?;
    if !head_only {
        write_before(&mut stream, &answer.body, deadline)?;
    }
    stream.flush()
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The request; `None` when it is none.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let deadline = Instant::now() + HEAD_TIME;
    let mut bytes = Vec::new();
    let mut piece = [0; 2048];
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..count]);
        match Request::parse(&bytes) {
            Parsed::Whole(request) => return Ok(Some(request)),
            Parsed::Partial if bytes.len() < MAX_HEAD => {}
            Parsed::Partial | Parsed::Bad => return Ok(None),
        }
    }
}

fn write_before(stream: &mut TcpStream, bytes: &[u8], deadline: Instant) -> io::Result<()> {
    for piece in bytes.chunks(PIECE) {
        stream.set_write_timeout(Some(left(deadline)?))?;
        stream.write_all(piece)?;
    }
    Ok(())
}

fn head(answer: &Answer) -> String {
    let reason = match answer.status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "",
    };
    let extra = match answer.status {
        401 => "WWW-Authenticate: Bearer\r\n",
        503 => "Retry-After: 5\r\n",
        _ => "",
    };
    format!(
        "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n{extra}\
         Connection: close\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::{Access, MOST_CONNECTIONS, serve};
    use crate::serve::{Served, Site};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    /// Serve a target that does not exist.
    fn start(access: Access) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let site = Site { targets: vec![Served::new("/nonexistent/agent.sock", None)] };
        std::thread::spawn(move || serve(&listener, site, access));
        address
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut answer = String::new();
        let asked = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        if let Err(error) = asked {
            // Who is refused before his request is read may get a reset in place of the words.
            assert!(
                matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe),
                "{error}"
            );
        }
        answer
    }

    #[test]
    fn slow_and_silent_clients_delay_nobody() {
        let address = start(Access::Anyone);
        // Silent, half a request, and one that never reads its answer.
        let mut held: Vec<TcpStream> =
            (0..MOST_CONNECTIONS / 2).map(|_| TcpStream::connect(address).unwrap()).collect();
        held[0].write_all(b"GET /metr").unwrap();
        held[1].write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("offheap_up{target=\"/nonexistent/agent.sock\"} 0\n"), "{answer}");
    }

    #[test]
    fn too_many_connections_are_told_so_and_leave_room_again() {
        let address = start(Access::Anyone);
        let held: Vec<TcpStream> = (0..MOST_CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut refused = String::new();
        TcpStream::connect(address).unwrap().read_to_string(&mut refused).unwrap();
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        drop(held);
        // The threads of the closed connections end at their own time.
        while !ask(address, "GET /-/healthy HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200") {}
    }

    #[test]
    fn who_asks_for_what() {
        let address = start(Access::Token("s3cret".into()));
        for (request, status) in [
            ("GET /metrics HTTP/1.1\r\n\r\n", "401"),
            ("GET /metrics HTTP/1.1\r\nAuthorization: Bearer s3creT\r\n\r\n", "401"),
            ("GET /metrics HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n", "200"),
            ("POST /metrics HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n", "405"),
            ("GET /debug/pprof/heap HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n", "502"),
            ("GET /debug/pprof/heap?target=x HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n", "404"),
            ("GET /etc/passwd HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n", "404"),
            ("\u{16}\u{3}\u{1} nonsense\r\n\r\n", "400"),
        ] {
            let answer = ask(address, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {answer}");
        }
        let answer = ask(address, "HEAD / HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    }
}
