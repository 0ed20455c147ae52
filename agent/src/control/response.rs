use offheap_wire::ErrorBody;
use serde::Serialize;
use std::fs::File;
use std::sync::Arc;

/// One answer; the connection is closed after it.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    content_type: &'static str,
    pub(crate) body: Body,
}

/// Bytes after the head.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// A memory file, sent as it is, and its length.
    File(Arc<File>, u64),
}

impl Response {
    /// A value as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(mut bytes) => {
                bytes.push(b'\n');
                Self { status: 200, content_type: "application/json", body: Body::Bytes(bytes) }
            }
            Err(error) => Self::error(500, format!("the answer could not be written as JSON: {error}")),
        }
    }

    /// JSON that is one already.
    pub(crate) fn json_bytes(bytes: Vec<u8>) -> Self {
        Self { status: 200, content_type: "application/json", body: Body::Bytes(bytes) }
    }

    /// Prometheus text.
    pub(crate) fn metrics(text: String) -> Self {
        Self { status: 200, content_type: "text/plain; version=0.0.4", body: Body::Bytes(text.into_bytes()) }
    }

    /// A file.
    pub(crate) fn file(file: File, content_type: &'static str) -> Self {
        match file.metadata() {
            Ok(metadata) => Self { status: 200, content_type, body: Body::File(Arc::new(file), metadata.len()) },
            Err(error) => Self::error(500, format!("the file to send has no length: {error}")),
        }
    }

    /// An [`ErrorBody`].
    pub(crate) fn error(status: u16, message: impl Into<String>) -> Self {
        let body = ErrorBody { error: message.into() };
        let bytes = serde_json::to_vec(&body).unwrap_or_default();
        Self { status, content_type: "application/json", body: Body::Bytes(bytes) }
    }

    /// Status line and headers.
    pub(crate) fn head(&self) -> Vec<u8> {
        let length = match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        };
        let allow = if self.status == 405 { "Allow: GET, POST, PUT, DELETE\r\n" } else { "" };
        format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n",
            self.status,
            reason(self.status),
            self.content_type,
        )
        .into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
