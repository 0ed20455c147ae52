//! What the agent's end-to-end tests need: hosts in C, run with and without the agent, and a client of the socket.

#![allow(dead_code, unreachable_pub, clippy::print_stderr)] // each test binary uses its part

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// Patience with a condition that is awaited; a failing test takes this long, a passing one does not.
const PATIENCE: Duration = Duration::from_secs(60);

/// `liboffheap_agent.so` of the profile that this test was built with, built if need be.
pub fn agent() -> PathBuf {
    static BUILT: Once = Once::new();
    let test = env::current_exe().expect("path of the test");
    let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps/test");
    let library = profile.join("liboffheap_agent.so");
    BUILT.call_once(|| {
        let release = profile.file_name() == Some(OsStr::new("release"));
        let status = Command::new(env!("CARGO"))
            // Of the whole workspace: of one package, cargo would build the dependencies again with fewer features.
            .args(["build", "--quiet", "--workspace", "--lib", "--target-dir"])
            .arg(profile.parent().expect("target"))
            .args(release.then_some("--release"))
            .status()
            .expect("cargo");
        assert!(status.success(), "the agent does not build");
    });
    library
}

/// Compiles `tests/hosts/NAME.c` and gives the program's path.
pub fn host(name: &str) -> PathBuf {
    compile(name, "", &["-O2", "-pthread"])
}

/// Compiles a host in a variant of its own. Once: a program that is replaced while another test runs it is "(deleted)".
pub fn compile(name: &str, variant: &str, flags: &[&str]) -> PathBuf {
    static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let program = scratch_dir().join(format!("{name}{variant}"));
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.contains(&program) {
        return program;
    }
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(format!("{name}.c"));
    // Aside and renamed, for the process of an earlier run may still be there.
    let partial = scratch_dir().join(format!("{name}{variant}.partial"));
    let output = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(flags)
        .arg("-o")
        .args([&partial, &source])
        .arg("-ldl")
        .output()
        .expect("a C compiler named cc, or in CC");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&partial, &program).expect("rename");
    compiled.insert(program.clone());
    program
}

/// A directory for this test binary.
pub fn scratch_dir() -> PathBuf {
    let test = env::current_exe().expect("path of the test");
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test.file_stem().expect("a name"));
    std::fs::create_dir_all(&directory).expect("create");
    directory
}

/// A socket path short enough, in a directory of its own that is removed with it.
pub struct SocketDir(tempfile::TempDir);

impl SocketDir {
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("oh").tempdir_in("/tmp").expect("a directory in /tmp"))
    }

    pub fn socket(&self) -> PathBuf {
        self.0.path().join("s")
    }
}

/// A command under the agent.
pub fn under_agent(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", agent());
    command
}

/// A host that runs until its standard input ends, and its socket.
pub struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<std::process::ChildStdout>,
    socket: PathBuf,
    _directory: SocketDir,
}

impl Host {
    /// Starts `program` under the agent and waits for the line `ready`.
    pub fn start(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let directory = SocketDir::new();
        let socket = directory.socket();
        let mut child = under_agent(program)
            .args(arguments)
            .env("OFFHEAP_SOCKET", &socket)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("spawn");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let mut host = Self { child, stdin, stdout, socket, _directory: directory };
        assert_eq!(host.line(), "ready");
        await_that("the socket", || UnixStream::connect(&host.socket).is_ok());
        host
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The next line of its standard output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Tells the host to go on, and awaits its answer.
    pub fn tell(&mut self, line: &str) -> String {
        writeln!(self.stdin.as_mut().expect("stdin"), "{line}").expect("write");
        self.line()
    }

    pub fn ask(&self, method: &str, path: &str) -> Answer {
        ask(&self.socket, method, path, "")
    }

    pub fn json(&self, method: &str, path: &str) -> serde_json::Value {
        let answer = self.ask(method, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    /// Ends the host and gives its exit code.
    pub fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().expect("wait").code()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP answer.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One request over a socket.
pub fn ask(socket: &Path, method: &str, path: &str, body: &str) -> Answer {
    let mut stream = UnixStream::connect(socket).expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: offheap\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .expect("request");
    read_answer(&mut stream)
}

/// Reads an answer to its end.
pub fn read_answer(stream: &mut UnixStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("answer");
    let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .and_then(|length| length.parse::<usize>().ok())
        .expect("a length");
    let body = bytes.split_off(head_end);
    assert_eq!(body.len(), length, "the answer is cut");
    Answer { status, body }
}

/// Descriptors of a process and of the agent in it, whose threads have a table of their own.
pub fn descriptors(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("task").flatten().map(|task| task.path());
    let agents = tasks.filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "offheap\n"));
    let tables = agents.chain([format!("/proc/{pid}").into()]);
    tables.filter_map(|table| Some(std::fs::read_dir(table.join("fd")).ok()?.count())).sum()
}

/// Waits for a condition.
pub fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "{what} never happened");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs to the end, feeding `input`.
pub fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("wait");
    feeder.join().expect("feeder");
    output
}

/// Whether a program can be run here at all.
pub fn is_installed(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|directory| directory.join(program).is_file())
}

/// Says that a test, or part of it, cannot be run here.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}
