//! Requests from a network that is not trusted.

/// Longest head that is read.
pub(super) const MAX_HEAD: usize = 16 << 10;
/// Headers of one request.
const MAX_HEADERS: usize = 64;

/// What was asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    query: String,
    /// Token of `Authorization: Bearer …`.
    pub(super) token: Option<String>,
}

/// What the bytes are so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Whole(Request),
    /// More is to come.
    Partial,
    /// Not HTTP.
    Bad,
}

impl Request {
    /// Read the head of a request from the bytes that have come.
    pub(super) fn parse(bytes: &[u8]) -> Read {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Read::Partial,
            Err(_) => return Read::Bad,
        }
        let (Some(method), Some(target)) = (request.method, request.path) else { return Read::Bad };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let authorization = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("authorization"));
        let token = authorization.and_then(|header| {
            let (scheme, token) = std::str::from_utf8(header.value).ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
        });
        Read::Whole(Self { method: method.into(), path: path.into(), query: query.into(), token })
    }

    /// A value of the query, decoded.
    pub(super) fn query(&self, key: &str) -> Option<String> {
        let (_, value) =
            self.query.split('&').filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key)?;
        Some(decode(value))
    }
}

/// `%2F` and `+` of a query.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = match (first, after) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8)
            }
            _ => None,
        };
        rest = if hex.is_some() { &after[2..] } else { after };
        bytes.push(hex.unwrap_or(if *first == b'+' { b' ' } else { *first }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Compare without telling by the time how much was right.
pub(super) fn same_token(given: &str, expected: &str) -> bool {
    let (given, expected) = (given.as_bytes(), expected.as_bytes());
    let differing =
        given.iter().zip(expected).fold(given.len() ^ expected.len(), |all, (a, b)| all | usize::from(a ^ b));
    differing == 0
}

#[cfg(test)]
mod tests {
    use super::{Read, Request, same_token};

    #[test]
    fn requests_and_what_is_none() {
        let Read::Whole(request) = Request::parse(
            b"GET /debug/pprof/heap?seconds=5&target=%2Frun%2Fa+b%zz HTTP/1.1\r\nAuthorization: bearer  s3cret\r\n\r\n",
        ) else {
            panic!("whole")
        };
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/debug/pprof/heap"));
        assert_eq!(request.query("target").as_deref(), Some("/run/a b%zz"));
        assert_eq!(request.query("debug"), None);
        assert_eq!(request.token.as_deref(), Some("s3cret"));
        assert_eq!(Request::parse(b"GET / HTTP/1.1\r\nHo"), Read::Partial);
        for bad in [&b"\x16\x03\x01\x02\0"[..], b"GET\r\n\r\n", b"\0\0\0\0 / HTTP/1.1\r\n\r\n"] {
            assert_eq!(Request::parse(bad), Read::Bad, "{bad:?}");
        }
    }

    #[test]
    fn tokens() {
        assert!(same_token("abc", "abc"));
        for wrong in ["", "ab", "abd", "abcd"] {
            assert!(!same_token(wrong, "abc"), "{wrong}");
        }
    }
}
