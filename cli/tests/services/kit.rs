//! Build a service, start it under the agent, ask it, run the command on it.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Serialises `go build`: two tests may want the same service.
static BUILDING: Mutex<()> = Mutex::new(());

/// The command under test.
pub(crate) fn offheap() -> Command {
    Command::new(env!("CARGO_BIN_EXE_offheap"))
}

/// The agent that was built beside the command.
pub(crate) fn agent() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_offheap")).with_file_name("liboffheap_agent.so");
    assert!(path.exists(), "{} is missing: run `cargo build -p offheap-agent` first", path.display());
    path
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the command's crate stands in the workspace")
}

/// Build `testdata/services/NAME` with these flags; the result is called `output`.
pub(crate) fn build(name: &str, output: &str, flags: &[&str], environment: &[(&str, &str)]) -> PathBuf {
    let _building = BUILDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(output);
    let status = Command::new("go")
        .current_dir(repository().join("testdata/services").join(name))
        .args(["build", "-buildvcs=false"])
        .args(flags)
        .arg("-o")
        .arg(&out)
        .arg(".")
        .envs(environment.iter().copied())
        .status()
        .expect("go is installed by scripts/setup");
    assert!(status.success(), "go build of {name} failed");
    out
}

/// Run a command, demand this exit code, return what it printed.
#[track_caller]
pub(crate) fn succeed(command: &mut Command, code: i32) -> Output {
    let output = command.output().expect("the command can be started");
    assert_eq!(
        output.status.code(),
        Some(code),
        "{command:?}\n--- stdout\n{}\n--- stderr\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The JSON that a command prints.
#[track_caller]
pub(crate) fn json(command: &mut Command) -> Value {
    let output = succeed(command, 0);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{command:?} printed no JSON: {e}\n{}", String::from_utf8_lossy(&output.stdout));
    })
}

/// A running service; killed when dropped.
pub(crate) struct Service {
    child: Child,
    url: String,
    /// Directory for the files of the test.
    pub(crate) dir: tempfile::TempDir,
}

impl Service {
    /// Start a program under `offheap run --profile=LG` and wait until it listens.
    pub(crate) fn start(program: &Path, lg_sample: u32, arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let mut child = offheap()
            .args(["run", &format!("--profile={lg_sample}"), "--agent"])
            .arg(agent())
            .arg("--socket")
            .arg(dir.path().join("agent.sock"))
            .arg("--")
            .arg(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command can be started");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the service prints its address");
        let url = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("no address in `{line}`")).to_owned();
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        await_socket(&dir.path().join("agent.sock"));
        Self { child, url, dir }
    }

    /// Process id of the service (`run` replaces itself by the service).
    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// `http://HOST:PORT`
    #[allow(dead_code)]
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Socket of the agent inside.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("agent.sock")
    }

    /// A path inside the test's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Body of a GET request.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        let mut body = Vec::new();
        ureq::get(format!("{}{path}", self.url))
            .call()
            .unwrap_or_else(|e| panic!("GET {path}: {e}"))
            .into_body()
            .into_reader()
            .read_to_end(&mut body)
            .expect("the body can be read");
        body
    }

    /// What the service says it holds.
    pub(crate) fn truth(&self) -> Value {
        serde_json::from_slice(&self.get("/truth")).expect("the truth is JSON")
    }
}

/// The agent opens its socket on a thread of its own, so the service can be quicker.
fn await_socket(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while UnixStream::connect(path).is_err() {
        assert!(Instant::now() < deadline, "no agent at {}", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
