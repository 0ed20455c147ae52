use super::http::{self, Response};
use super::patient::Patient;
use crate::target::{self, Target};
use anyhow::{Context, bail};
use offheap_wire as wire;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// Longest pause in sending a request.
const PAUSE: Duration = Duration::from_secs(10);
/// Longest pause before an answer or within one: an epoch over thousands of arenas, a dump, a purge make the host work.
const WORK: Duration = Duration::from_secs(120);
/// Longest JSON answer that is kept in memory.
const MAX_JSON: u64 = 256 << 20;

/// The agent of one host, asked over its control socket.
#[derive(Debug)]
pub(crate) struct Agent {
    target: Target,
    /// Pid of the peer of the first connection; asking costs one, which the agent would count.
    peer: OnceLock<u32>,
}

/// A profile as the agent gave it.
#[derive(Debug)]
pub(crate) struct Capture {
    /// A sample table or a dump.
    pub(crate) bytes: Vec<u8>,
    /// Why it is not the more exact of the two.
    pub(crate) note: Option<String>,
}

impl Agent {
    /// The agent behind what the user typed: a pid, a socket path, a process name.
    pub(crate) fn of(text: impl AsRef<OsStr>) -> anyhow::Result<Self> {
        Target::resolve(text.as_ref()).map(Self::new)
    }

    pub(crate) fn new(target: Target) -> Self {
        Self { target, peer: OnceLock::new() }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.target.socket
    }

    /// Pid of the host in our own pid namespace.
    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        match self.target.pid.as_ref().or(self.peer.get()) {
            Some(pid) => Ok(*pid),
            None => target::peer_pid(&self.connect()?),
        }
    }

    pub(crate) fn info(&self) -> anyhow::Result<wire::Info> {
        self.json("GET", wire::INFO)
    }

    pub(crate) fn stats(&self) -> anyhow::Result<wire::Stats> {
        self.json("GET", wire::STATS)
    }

    pub(crate) fn metrics(&self) -> anyhow::Result<String> {
        let bytes = self.ask("GET", wire::METRICS)?.body.read_all(MAX_JSON)?;
        String::from_utf8(bytes).context("the metrics are not UTF-8")
    }

    pub(crate) fn profile_start(&self, lg_sample: Option<u32>) -> anyhow::Result<wire::ProfileState> {
        match lg_sample {
            Some(lg) => self.json("POST", &format!("{}?lg_sample={lg}", wire::PROFILE_START)),
            None => self.json("POST", wire::PROFILE_START),
        }
    }

    pub(crate) fn profile_stop(&self) -> anyhow::Result<wire::ProfileState> {
        self.json("POST", wire::PROFILE_STOP)
    }

    pub(crate) fn profile_reset(&self) -> anyhow::Result<wire::ProfileState> {
        self.json("POST", wire::PROFILE_RESET)
    }

    /// Occupancy of every slab. The scan takes a while and slows nobody down by more than its pauses allow.
    pub(crate) fn heap_map(&self) -> anyhow::Result<wire::HeapMap> {
        self.json("GET", wire::HEAP_MAP)
    }

    pub(crate) fn purge(&self) -> anyhow::Result<wire::Purge> {
        self.json("POST", wire::PURGE)
    }

    /// The rules by which the agent dumps by itself.
    pub(crate) fn triggers(&self) -> anyhow::Result<wire::Triggers> {
        self.json("GET", wire::TRIGGERS)
    }

    /// Put rules in force, in their text form; all rules are returned.
    pub(crate) fn trigger_add(&self, rules: &str) -> anyhow::Result<wire::Triggers> {
        let response = self.ask_with("POST", wire::TRIGGERS, rules.as_bytes())?;
        self.decode(response, wire::TRIGGERS)
    }

    /// Take a rule back; the others are returned.
    pub(crate) fn trigger_remove(&self, id: u64) -> anyhow::Result<wire::Triggers> {
        self.json("DELETE", &format!("{}/{id}", wire::TRIGGERS))
    }

    /// The value of a mallctl.
    pub(crate) fn mallctl(&self, name: &str) -> anyhow::Result<serde_json::Value> {
        let mut answer: serde_json::Value = self.json("GET", &format!("{}{name}", wire::MALLCTL_PREFIX))?;
        Ok(answer["value"].take())
    }

    /// Stream the `heap_v2` dump; the bytes written are returned.
    pub(crate) fn heap(&self, to: &mut impl Write) -> anyhow::Result<u64> {
        let mut response = self.ask("GET", wire::PROFILE_HEAP)?;
        io::copy(&mut response.body, to).context("reading the dump")
    }

    /// The JSON of the sample table, as it came.
    pub(crate) fn samples(&self, to: &mut impl Write) -> anyhow::Result<u64> {
        let mut response = self.ask("GET", wire::PROFILE_SAMPLES)?;
        io::copy(&mut response.body, to).context("reading the sample table")
    }

    /// The most exact profile that the agent has: its sample table, else the `heap_v2` dump.
    pub(crate) fn profile(&self) -> anyhow::Result<Capture> {
        let mut bytes = Vec::new();
        let Err(error) = self.samples(&mut bytes) else { return Ok(Capture { bytes, note: None }) };
        bytes.clear();
        self.heap(&mut bytes)?;
        let note = format!(
            "the agent's sample table could not be read ({error:#}); its heap dump was read in place of it, without ages and \
             with rounded sizes"
        );
        Ok(Capture { bytes, note: Some(note) })
    }

    fn json<T: DeserializeOwned>(&self, method: &str, path: &str) -> anyhow::Result<T> {
        let response = self.ask(method, path)?;
        self.decode(response, path)
    }

    fn decode<T: DeserializeOwned>(&self, response: Response<Patient>, path: &str) -> anyhow::Result<T> {
        serde_json::from_reader(BufReader::new(io::Read::take(response.body, MAX_JSON))).with_context(|| {
            format!("{}: the answer to {path} is not what this version expects", self.socket().display())
        })
    }

    fn ask(&self, method: &str, path: &str) -> anyhow::Result<Response<Patient>> {
        self.ask_with(method, path, b"")
    }

    fn ask_with(&self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Response<Patient>> {
        let stream = self.connect()?;
        // Kept to ask the kernel who refused us: the exchange consumes the connection.
        let peer = stream.try_clone()?;
        let host = self.peer.get().or(self.target.pid.as_ref()).copied();
        let response = match http::exchange(Patient::new(stream, host, WORK)?, method, path, body) {
            Ok(response) => response,
            Err(error) => {
                return Err(target::refused_as_other_user(&peer)
                    .unwrap_or_else(|| error.context(format!("the agent at {}", self.socket().display()))));
            }
        };
        if (200..300).contains(&response.status) {
            return Ok(response);
        }
        if let Some(error) = target::refused_as_other_user(&peer) {
            return Err(error);
        }
        let status = response.status;
        let body = response.body.read_all(64 << 10).unwrap_or_default();
        match serde_json::from_slice::<wire::ErrorBody>(&body) {
            Ok(body) => bail!("{}", body.error),
            Err(_) if status == 404 => bail!(
                "the agent at {} does not know {path}; it is another version than this command, {}",
                self.socket().display(),
                env!("CARGO_PKG_VERSION")
            ),
            Err(_) => bail!("the agent at {} answered {path} with status {status}", self.socket().display()),
        }
    }

    fn connect(&self) -> anyhow::Result<UnixStream> {
        let stream = target::connect(&self.target.socket)?;
        stream.set_write_timeout(Some(PAUSE))?;
        if let Ok(pid) = target::peer_pid(&stream) {
            self.peer.get_or_init(|| pid);
        }
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::Agent;
    use crate::client::test_server::TestServer;
    use offheap_wire as wire;

    fn state(active: bool) -> String {
        format!(r#"{{"available":true,"active":{active},"lg_sample":19,"recording_since":null,"prof_unbias":false}}"#)
    }

    #[test]
    fn calls_have_the_method_and_path_of_the_protocol() {
        let server = TestServer::start(|method, path| match (method, path) {
            ("GET", wire::STATS) => (200, r#"{"allocated":5,"active":7,"bins":[]}"#.into()),
            ("POST", "/v1/profile/start?lg_sample=12") => (200, state(true)),
            ("POST", wire::PROFILE_STOP) => (200, state(false)),
            ("GET", wire::PROFILE_HEAP) => (200, "heap_v2/524288\n".into()),
            _ => (404, String::new()),
        });
        let agent = server.agent();
        let stats = agent.stats().unwrap();
        assert_eq!((stats.allocated, stats.active, stats.resident), (Some(5), Some(7), None));
        assert!(agent.profile_start(Some(12)).unwrap().active);
        assert!(!agent.profile_stop().unwrap().active);
        let mut dump = Vec::new();
        assert_eq!(agent.heap(&mut dump).unwrap(), 15);
        assert_eq!(dump, b"heap_v2/524288\n");
        let error = agent.info().unwrap_err().to_string();
        assert!(error.contains("does not know /v1/info"), "{error}");
        assert_eq!(agent.pid().unwrap(), std::process::id());
    }

    #[test]
    fn the_agent_s_own_words_are_the_error() {
        let server = TestServer::start(|_, _| (409, r#"{"error":"a dump is being made; try again"}"#.into()));
        let error = format!("{:#}", server.agent().heap(&mut Vec::new()).unwrap_err());
        assert_eq!(error, "a dump is being made; try again");
    }

    #[test]
    fn a_socket_without_a_server_says_what_happened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone.sock");
        let agent = |path: &std::path::Path| Agent::of(path);
        let error = format!("{:#}", agent(&path).unwrap_err());
        assert!(error.contains("no socket at"), "{error}");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let error = format!("{:#}", agent(&path).unwrap().stats().unwrap_err());
        assert!(error.contains("nobody listens"), "{error}");
    }
}
