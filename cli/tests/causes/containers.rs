//! A service in namespaces of its own: other pids, another network, another root.

use crate::kit::{agent, build, json, offheap};
use crate::ledger::bytes;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

struct Container(Child);

impl Drop for Container {
    fn drop(&mut self) {
        // Its first process takes all others of the pid namespace with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_service_in_a_container_is_read_through_its_root_and_network() {
    // SAFETY: no arguments, no failure.
    if unsafe { libc::geteuid() } != 0 {
        // Only root can make a container, and the continuous integration is root.
        return;
    }
    let program = build("causes", "causes-container", &[], &[]);
    // The socket's folder is covered inside: it is there only for those who go through /proc/PID/root.
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let script = "mount -t tmpfs none \"$0\" && ip link set lo up && exec \"$@\"";
    let mut child = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script])
        .arg(folder.path())
        // Only the service gets the agent, which takes itself out of the environment of what it starts.
        .arg("env")
        .arg(format!("LD_PRELOAD={}", agent().display()))
        .arg(&program)
        .args(["-cause", "mmap"])
        .env("OFFHEAP_SOCKET", folder.path().join("%p.sock"))
        .stdout(Stdio::piped())
        .spawn()
        .map(Container)
        .expect("unshare is part of util-linux");
    let mut line = String::new();
    let stdout = child.0.stdout.take().expect("stdout is a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("the service prints its address");
    assert!(line.starts_with("listening"), "{line}");
    let name = program.file_name().expect("a file").to_str().expect("UTF-8");
    let ledger = json(offheap().args(["ledger", name, "--go", "auto", "--json"]));
    assert!(bytes(&ledger, "Go heap in use") > 0.0, "the endpoint of the container's network: {ledger:#}");
    assert!(bytes(&ledger, "jemalloc metadata") > 0.0, "the agent behind the container's root: {ledger:#}");
    assert_ne!(ledger["pid"].as_u64(), Some(1), "the pid is ours, not the container's: {ledger:#}");
}
