//! Which request is answered by what.

use super::dump::{self, DumpError};
use super::heap_map::{self, NoMap};
use super::jobs::Agent;
use super::knobs::{self, KnobError};
use super::mallctl::{MallctlError, stats_print};
use super::profile::StartError;
use super::purge;
use super::request::Request;
use super::response::Response;
use super::triggers::{self, RuleError};
use crate::boundary::Finally;
use crate::kernel;
use offheap_wire as wire;
use offheap_wire::ProfileState;
use serde_json::Value;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// All paths, for the message about an unknown one.
const PATHS: [&str; 16] = [
    wire::INFO,
    wire::STATS,
    wire::STATS_JEMALLOC,
    wire::METRICS,
    wire::MALLCTL_PREFIX,
    wire::PROFILE_START,
    wire::PROFILE_STOP,
    wire::PROFILE_RESET,
    wire::PROFILE_HEAP,
    wire::PROFILE_SAMPLES,
    wire::TRIGGERS,
    wire::HEAP_MAP,
    wire::PURGE,
    wire::PPROF_START,
    wire::PPROF_STOP,
    wire::PPROF_DUMP,
];

impl Agent {
    /// Answers one request.
    pub(crate) fn answer(&self, request: &Request) -> Response {
        self.requests.fetch_add(1, Relaxed);
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", wire::INFO) => Response::json(&self.info()),
            ("GET", wire::STATS) => json_or(self.stats.read()),
            ("GET", wire::STATS_JEMALLOC) => Response::json_bytes(stats_print(c"J")),
            ("GET", wire::METRICS) => match self.metrics() {
                Ok(text) => Response::metrics(text),
                Err(error) => Response::error(500, error.to_string()),
            },
            ("POST", wire::PROFILE_START) | ("POST" | "GET", wire::PPROF_START) => self.start(request),
            ("POST", wire::PROFILE_STOP) | ("POST" | "GET", wire::PPROF_STOP) => state(self.profiler.stop()),
            ("POST", wire::PROFILE_RESET) => state(self.profiler.reset()),
            ("GET", wire::PROFILE_HEAP | wire::PPROF_DUMP) => self.heap(),
            ("GET", wire::PROFILE_SAMPLES) => match self.sample_file() {
                Ok(file) => Response::file(file, "application/json"),
                Err(error) => Response::error(500, format!("the sample table could not be written: {error}")),
            },
            ("GET", wire::TRIGGERS) => Response::json(&self.triggers.list()),
            ("POST", wire::TRIGGERS) => match self.watch(&request.body) {
                Ok(()) => Response::json(&self.triggers.list()),
                Err(WatchError::Rule(error)) => Response::error(400, error.to_string()),
                Err(WatchError::Start(error)) => Response::error(409, error.to_string()),
            },
            ("GET", wire::HEAP_MAP) => map(heap_map::heap_map()),
            ("POST", wire::PURGE) => json_or(purge::purge_all()),
            ("DELETE", path) if path.starts_with(wire::TRIGGERS) => self.unwatch(path),
            (method, path) => match path.strip_prefix(wire::MALLCTL_PREFIX) {
                Some(name) if !name.is_empty() => match method {
                    "GET" => knob(knobs::get(name)),
                    "PUT" => knob(knobs::put(name, &request.body)),
                    _ => method_not_allowed(method, path),
                },
                _ if PATHS.contains(&path) => method_not_allowed(method, path),
                _ => Response::error(404, format!("no such path {path:?}; these are served: {}", PATHS.join(" "))),
            },
        }
    }

    fn start(&self, request: &Request) -> Response {
        let lg_sample = match request.query("lg_sample") {
            None => None,
            Some(text) => match text.parse() {
                Ok(lg) => Some(lg),
                Err(_) => {
                    return Response::error(
                        400,
                        format!("lg_sample {text:?} is not a number: give the base-2 logarithm of bytes, such as 19"),
                    );
                }
            },
        };
        state(self.profiler.start(lg_sample))
    }

    /// Puts trigger rules in force. What they are to write has to be recorded, so profiling is started if it is not on.
    pub(crate) fn watch(&self, rules: &str) -> Result<(), WatchError> {
        let rules = triggers::parse(rules, &default_directory()).map_err(WatchError::Rule)?;
        if !self.profiler.state().active {
            self.profiler.start(None).map_err(WatchError::Start)?;
        }
        self.triggers.add(rules);
        Ok(())
    }

    fn unwatch(&self, path: &str) -> Response {
        let id =
            path.strip_prefix(wire::TRIGGERS).and_then(|rest| rest.strip_prefix('/')).and_then(|id| id.parse().ok());
        match id {
            Some(id) if self.triggers.remove(id) => Response::json(&self.triggers.list()),
            _ => Response::error(404, format!("no such trigger {path:?}; GET {} lists their ids", wire::TRIGGERS)),
        }
    }

    fn heap(&self) -> Response {
        if self.dumping.swap(true, AcqRel) {
            return Response::error(409, "another dump is being made; try again when it is done");
        }
        let idle = Finally(|| self.dumping.store(false, Release));
        let dump = dump::heap_dump();
        drop(idle);
        match dump {
            Ok(file) => {
                self.dumps.fetch_add(1, Relaxed);
                Response::file(file, "text/plain; charset=utf-8")
            }
            Err(error @ DumpError::Unavailable) => Response::error(409, error.to_string()),
            Err(error) => Response::error(500, error.to_string()),
        }
    }
}

/// Why no trigger was put in force.
pub(crate) enum WatchError {
    Rule(RuleError),
    Start(StartError),
}

impl std::fmt::Display for WatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
        }
    }
}

/// Where files go that no directory was named for.
fn default_directory() -> String {
    format!("{}{}/dumps", wire::SOCKET_DIR_PREFIX, kernel::effective_user())
}

fn map(map: Result<wire::HeapMap, NoMap>) -> Response {
    match map {
        Ok(map) => Response::json(&map),
        Err(NoMap::Busy) => Response::error(409, "another heap map is being made; try again when it is done"),
        Err(NoMap::Unavailable) => {
            Response::error(500, "no heap map: jemalloc's utilization controls or /proc/self/maps cannot be read")
        }
    }
}

fn json_or(value: Result<impl serde::Serialize, MallctlError>) -> Response {
    match value {
        Ok(value) => Response::json(&value),
        Err(error) => Response::error(500, error.to_string()),
    }
}

fn state(state: Result<ProfileState, StartError>) -> Response {
    match state {
        Ok(state) => Response::json(&state),
        Err(error @ StartError::Unavailable) => Response::error(409, error.to_string()),
        Err(error @ StartError::LgSample(_)) => Response::error(400, error.to_string()),
        Err(error @ StartError::Mallctl(_)) => Response::error(500, error.to_string()),
    }
}

fn knob(value: Result<Value, KnobError>) -> Response {
    match value {
        Ok(value) => Response::json(&value),
        Err(error) => {
            let status = match &error {
                KnobError::Unknown(_) => 404,
                KnobError::ReadOnly(_) => 403,
                KnobError::WriteOnly(_) => 405,
                KnobError::Value { .. } => 400,
                KnobError::Mallctl(error) if error.errno == libc::ENOENT => 404,
                KnobError::Mallctl(_) => 500,
            };
            Response::error(status, error.to_string())
        }
    }
}

fn method_not_allowed(method: &str, path: &str) -> Response {
    Response::error(
        405,
        format!("{path} is not asked with {method}; use GET to read, POST to act, PUT to set, DELETE to end a trigger"),
    )
}
