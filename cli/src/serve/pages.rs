//! What is served.

use super::request::Request;
use super::targets::{NoProfile, Served, metrics};
use std::sync::Arc;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(status: u16, text: impl Into<String>) -> Self {
        let mut body = text.into();
        body.push('\n');
        Self { status, content_type: "text/plain; charset=utf-8", body: body.into_bytes() }
    }
}

/// The targets.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) targets: Vec<Arc<Served>>,
}

impl Site {
    pub(super) fn answer(&self, request: &Request) -> Answer {
        if request.method != "GET" && request.method != "HEAD" {
            return Answer::text(405, "only GET is answered");
        }
        match request.path.as_str() {
            "/" => Answer::text(200, self.index()),
            "/-/healthy" => Answer::text(200, "ok"),
            "/metrics" => Answer {
                status: 200,
                content_type: "text/plain; version=0.0.4; charset=utf-8",
                body: metrics(&self.targets).into_bytes(),
            },
            "/debug/pprof/heap" | "/debug/pprof/allocs" => self.profile(request.query("target").as_deref()),
            _ => Answer::text(404, "there are /metrics and /debug/pprof/heap?target=NAME"),
        }
    }

    fn index(&self) -> String {
        let mut text = "offheap serve\n\n/metrics\n".to_owned();
        for target in &self.targets {
            text.push_str(&format!("/debug/pprof/heap?target={}\n", target.name));
        }
        text
    }

    fn profile(&self, name: Option<&str>) -> Answer {
        let target = match (name, &self.targets[..]) {
            (Some(name), targets) => targets.iter().find(|target| target.name == name),
            (None, [only]) => Some(only),
            (None, _) => return Answer::text(400, format!("several targets: say which\n\n{}", self.index())),
        };
        let Some(target) = target else { return Answer::text(404, format!("no such target\n\n{}", self.index())) };
        match target.profile() {
            Ok(body) => Answer { status: 200, content_type: "application/octet-stream", body },
            Err(NoProfile::Busy) => Answer::text(503, "another profile of this target is being taken; try again"),
            Err(NoProfile::Failed(error)) => Answer::text(502, error),
        }
    }
}
