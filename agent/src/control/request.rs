//! One HTTP/1.1 request, from a slice.
//!
//! ```text
//! POST /v1/profile/start?lg_sample=17 HTTP/1.1\r\n
//! Host: offheap\r\n
//! Content-Length: 0\r\n
//! \r\n
//! ```

/// Longest head, and longest body after it, in bytes.
pub(crate) const HEAD_MAX: usize = 8 << 10;
pub(crate) const BODY_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// A whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path with percent escapes undone, without the query.
    pub(crate) path: String,
    query: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What a slice is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// More bytes are needed.
    Incomplete,
    /// The body is needed, which the client sends when it is told to go on.
    Expecting,
    Whole(Request),
    /// Not a request that is served: the status and the message to answer.
    Bad(u16, String),
}

/// Parses what was received so far.
pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let head_bytes = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_MAX => length,
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD_MAX => return Parsed::Incomplete,
        Ok(_) => return Parsed::Bad(431, format!("the request head is longer than {HEAD_MAX} bytes")),
        Err(error) => return Parsed::Bad(400, format!("not an HTTP/1.1 request: {error}")),
    };
    let header = |name: &str| head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    if header("transfer-encoding").is_some() {
        return Parsed::Bad(411, "a request body needs a Content-Length; chunks are not taken".into());
    }
    let lengths = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("content-length"));
    if !lengths.clone().all(|length| Some(length.value) == lengths.clone().next().map(|first| first.value)) {
        return Parsed::Bad(400, "Content-Length is given twice".into());
    }
    let body_bytes = match header("content-length").map(|header| parse_length(header.value)) {
        None => 0,
        Some(Some(length)) if length <= BODY_MAX => length,
        Some(Some(_)) => return Parsed::Bad(413, format!("the request body is longer than {BODY_MAX} bytes")),
        Some(None) => return Parsed::Bad(400, "Content-Length is not a number".into()),
    };
    let Some(body) = bytes.get(head_bytes..head_bytes + body_bytes) else {
        let expects = header("expect").is_some_and(|it| it.value.eq_ignore_ascii_case(b"100-continue"));
        return if expects && bytes.len() == head_bytes { Parsed::Expecting } else { Parsed::Incomplete };
    };
    let Ok(body) = std::str::from_utf8(body) else {
        return Parsed::Bad(400, "the request body is not UTF-8 text".into());
    };
    let target = without_authority(head.path.unwrap_or("/"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Parsed::Whole(Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: percent_decoded(path),
        query: query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (percent_decoded(key), percent_decoded(value)))
            .collect(),
        body: body.to_owned(),
    })
}

impl Request {
    /// Value of a query parameter.
    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// Clients that think of a proxy send `http://offheap/v1/stats`, and every server has to take that.
fn without_authority(target: &str) -> &str {
    let Some(rest) = target.strip_prefix("http://") else { return target };
    rest.find('/').map_or("/", |path| &rest[path..])
}

fn parse_length(value: &[u8]) -> Option<usize> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escape = (byte == b'%').then(|| tail.get(..2)).flatten();
        let hex = escape.filter(|escape| escape.iter().all(u8::is_ascii_hexdigit));
        let decoded = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match decoded {
            Some(decoded) => {
                out.push(decoded);
                rest = &tail[2..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Request {
        match parse(bytes) {
            Parsed::Whole(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_client_that_waits_to_be_told_is_seen() {
        let head = b"POST /v1/triggers HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n";
        assert_eq!(parse(head), Parsed::Expecting);
        assert_eq!(parse(&head[..head.len() - 1]), Parsed::Incomplete);
        let with = |body: &[u8]| parse(&[head, body].concat());
        assert_eq!(with(b"r"), Parsed::Incomplete, "it has gone on");
        assert!(matches!(with(b"rs"), Parsed::Whole(_)));
    }

    #[test]
    fn path_query_and_body() {
        let request =
            whole(b"PUT /v1/mallctl/a%2eb?x=1&y=%20&flag HTTP/1.1\r\nHost: o\r\nContent-Length: 4\r\n\r\ntrue");
        assert_eq!((request.method.as_str(), request.path.as_str()), ("PUT", "/v1/mallctl/a.b"));
        assert_eq!(request.body, "true");
        assert_eq!(
            [request.query("x"), request.query("y"), request.query("flag"), request.query("z")],
            [Some("1"), Some(" "), Some(""), None]
        );
    }

    #[test]
    fn a_target_with_a_host_is_its_path() {
        for (target, path) in
            [("http://offheap/v1/stats", "/v1/stats"), ("http://offheap", "/"), ("*", "*"), ("/http://x", "/http://x")]
        {
            let request =
                whole(format!("GET {target}?a=1 HTTP/1.1\r\n\r\n").replace("offheap?a=1", "offheap").as_bytes());
            assert_eq!(request.path, path, "{target}");
        }
    }

    #[test]
    fn every_cut_is_incomplete() {
        let bytes = b"POST /v1/purge HTTP/1.1\r\nContent-Length: 2\r\n\r\nab";
        for cut in 0..bytes.len() {
            assert_eq!(parse(&bytes[..cut]), Parsed::Incomplete, "{cut}");
        }
        whole(bytes);
    }

    #[test]
    fn what_is_not_served_is_named() {
        let status = |bytes: &[u8]| match parse(bytes) {
            Parsed::Bad(status, _) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(b"\x16\x03\x01\x02\x00 hello\r\n\r\n"), 400);
        assert_eq!(status(b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n"), 400);
        assert_eq!(status(b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"), 413);
        assert_eq!(status(b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), 400);
        assert_eq!(status(b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 411);
        assert_eq!(status(&[b"GET /", [b'a'; HEAD_MAX].as_slice()].concat()), 431);
        assert_eq!(status(b"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n\xff"), 400);
    }

    #[test]
    fn broken_escapes_stay_as_they_are() {
        assert_eq!(percent_decoded("%4"), "%4");
        assert_eq!(percent_decoded("%zz%41"), "%zzA");
        assert_eq!(percent_decoded("%+1"), "%+1");
    }
}
