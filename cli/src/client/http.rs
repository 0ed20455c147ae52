//! HTTP/1.1 as far as the control socket speaks it: one request a connection, the answer read with bounds.

use anyhow::{Context, bail};
use std::io::{self, BufRead, BufReader, Read, Write};

/// Longest status line and header block that is read.
const MAX_HEAD: usize = 32 << 10;
/// Headers of one answer.
const MAX_HEADERS: usize = 64;
/// Longest line that gives the size of a chunk, its extensions included.
const MAX_CHUNK_LINE: u64 = 1024;

/// The head of an answer; its body is read from [`Response::body`].
pub(crate) struct Response<S> {
    pub(crate) status: u16,
    pub(crate) body: Body<S>,
}

/// A body that ends where its framing says, and fails where the connection ends before.
pub(crate) struct Body<S> {
    stream: BufReader<S>,
    framing: Framing,
}

#[derive(Debug, PartialEq, Eq)]
enum Framing {
    /// `Content-Length`: bytes left.
    Length(u64),
    /// `Transfer-Encoding: chunked`: bytes left of the current chunk; `None` before a size line.
    Chunked(Option<u64>),
    /// Neither: up to the end of the connection.
    Close,
    /// The last chunk and its trailer were read.
    Ended,
}

/// Send a request without a body, or with a small one, and read the head of the answer.
pub(crate) fn exchange<S: Read + Write>(
    mut stream: S,
    method: &str,
    path: &str,
    body: &[u8],
) -> anyhow::Result<Response<S>> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: offheap\r\nConnection: close\r\n").into_bytes();
    if method != "GET" {
        request.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(body);
    // A server that refuses a peer may answer and close before it has read the request: its answer is still worth
    // reading, and when there is none the read below tells.
    let sent = stream.write_all(&request).and_then(|()| stream.flush());
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let head = match read_head(&mut stream) {
        Ok(head) => head,
        Err(error) => match sent {
            Err(broken) => return Err(broken).context("the connection was closed before the request was read"),
            Ok(()) => return Err(error),
        },
    };
    let (status, framing) = parse_head(&head)?;
    Ok(Response { status, body: Body { stream, framing } })
}

fn read_head(stream: &mut impl BufRead) -> anyhow::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let room = (MAX_HEAD - head.len()) as u64;
        let before = head.len();
        Read::take(&mut *stream, room).read_until(b'\n', &mut head)?;
        if head.len() == before {
            match before {
                0 => bail!("the connection was closed without an answer"),
                MAX_HEAD => bail!("the answer's head is longer than {MAX_HEAD} bytes"),
                _ => bail!("the connection was closed within the answer's head"),
            }
        }
    }
    Ok(head)
}

/// Status and framing from a head like
///
/// ```text
/// HTTP/1.1 200 OK\r\n
/// Content-Type: application/json\r\n
/// Content-Length: 1234\r\n
/// \r\n
/// ```
fn parse_head(head: &[u8]) -> anyhow::Result<(u16, Framing)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => bail!("the answer's head is cut"),
        Err(error) => bail!("the answer is not HTTP ({error}); is this the socket of another program?"),
    }
    let status = response.code.unwrap_or_default();
    let value = |name: &str| {
        response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| String::from_utf8_lossy(h.value))
    };
    let framing = if value("transfer-encoding").is_some_and(|v| v.trim().eq_ignore_ascii_case("chunked")) {
        Framing::Chunked(None)
    } else if let Some(length) = value("content-length") {
        Framing::Length(length.trim().parse().with_context(|| format!("Content-Length `{length}` is no number"))?)
    } else if status == 204 || status == 304 {
        Framing::Length(0)
    } else {
        Framing::Close
    };
    Ok((status, framing))
}

impl<S: Read> Body<S> {
    /// The whole body, refused when it is longer than `limit`.
    pub(crate) fn read_all(mut self, limit: u64) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Read::take(&mut self, limit + 1).read_to_end(&mut bytes).context("reading the answer")?;
        if bytes.len() as u64 > limit {
            bail!("the answer is longer than {limit} bytes");
        }
        Ok(bytes)
    }

    /// Start of a chunk: `1a2b[;extension]\r\n`, with the line end of the chunk before it.
    fn next_chunk(&mut self, first: bool) -> io::Result<u64> {
        if !first {
            let mut end = [0; 2];
            self.stream.read_exact(&mut end).map_err(cut)?;
            if end != *b"\r\n" {
                return Err(malformed("a chunk does not end where its size says"));
            }
        }
        let line = self.line()?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| malformed("the size of a chunk is no number"))?;
        if size == 0 {
            // Trailer fields, then an empty line.
            while !self.line()?.is_empty() {}
        }
        Ok(size)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        Read::take(&mut self.stream, MAX_CHUNK_LINE).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(cut(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
    }
}

impl<S: Read> Read for Body<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let left = match self.framing {
            Framing::Ended | Framing::Length(0) => return Ok(0),
            Framing::Close => return self.stream.read(buffer),
            Framing::Length(left) => left,
            Framing::Chunked(Some(left)) if left > 0 => left,
            Framing::Chunked(state) => match self.next_chunk(state.is_none())? {
                0 => {
                    self.framing = Framing::Ended;
                    return Ok(0);
                }
                size => size,
            },
        };
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.stream.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(cut(io::ErrorKind::UnexpectedEof.into()));
        }
        let left = left - read as u64;
        self.framing = match self.framing {
            Framing::Length(_) => Framing::Length(left),
            _ => Framing::Chunked(Some(left)),
        };
        Ok(read)
    }
}

fn cut(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended in the middle of the answer")
    } else {
        error
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::exchange;
    use std::io::{self, Cursor, Read, Write};

    /// An answer to read, in reads of at most `step` bytes, and a place for the request.
    struct Wire {
        answer: Cursor<Vec<u8>>,
        step: usize,
        sent: Vec<u8>,
    }

    impl Read for Wire {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(self.step);
            self.answer.read(&mut buffer[..n])
        }
    }

    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.sent.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn body(answer: &str, step: usize) -> anyhow::Result<(u16, Vec<u8>)> {
        let wire = Wire { answer: Cursor::new(answer.as_bytes().to_vec()), step, sent: Vec::new() };
        let response = exchange(wire, "GET", "/x", b"")?;
        Ok((response.status, response.body.read_all(1000)?))
    }

    #[test]
    fn every_framing_is_read_in_pieces_of_any_size() {
        for (label, answer) in [
            ("length", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world-and-more"),
            (
                "chunked",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
            ),
            ("trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\nA: b\r\n\r\n"),
            ("close", "HTTP/1.1 200 OK\r\n\r\nhello world"),
        ] {
            for step in [1, 2, 7, 4096] {
                let (status, bytes) = body(answer, step).unwrap();
                assert_eq!((status, &bytes[..]), (200, &b"hello world"[..]), "{label}, {step} bytes a read");
            }
        }
    }

    #[test]
    fn an_answer_that_is_cut_malformed_or_too_long_is_an_error() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(64 << 10));
        for (answer, expected) in [
            ("", "closed without an answer"),
            ("HTTP/1.1 200 OK\r\nConte", "closed within the answer's head"),
            ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "is no number"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello", "in the middle of the answer"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "in the middle of the answer"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "in the middle of the answer"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n", "is no number"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n", "does not end where"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "in the middle of the answer"),
            (&long, "longer than 32768 bytes"),
        ] {
            let error = format!("{:#}", body(answer, 100).unwrap_err());
            assert!(error.contains(expected), "{answer:.60?}: {error}");
        }
        let over = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1001));
        assert!(body(&over, 100).unwrap_err().to_string().contains("longer than 1000 bytes"));
    }

    #[test]
    fn the_request_is_what_http_asks_for() {
        let mut wire =
            Wire { answer: Cursor::new(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()), step: 100, sent: Vec::new() };
        exchange(&mut wire, "PUT", "/v1/mallctl/prof.active", b"true").unwrap();
        assert_eq!(
            String::from_utf8(wire.sent).unwrap(),
            "PUT /v1/mallctl/prof.active HTTP/1.1\r\nHost: offheap\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntrue"
        );
    }
}
