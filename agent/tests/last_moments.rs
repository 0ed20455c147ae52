//! What is on the disk when the host did not live to see it: whole files or none.

mod kit;

use kit::{await_that, host, under_agent};
use offheap_wire::SampleTable;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Kills in the middle of writing.
const KILLS: usize = 12;
/// Deaths by the kernel's hand.
const OOM_RUNS: usize = 10;
/// Memory limit of the control group.
const LIMIT_BYTES: u64 = 256 << 20;

fn files(directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let paths = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("entry").path());
    paths.partition(|path| path.extension().is_some_and(|extension| extension == "json"))
}

fn table(path: &Path) -> SampleTable {
    let bytes = fs::read(path).expect("readable");
    let table: SampleTable =
        serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{} is not whole: {e}", path.display()));
    assert!(!table.modules.is_empty() && !table.maps.is_empty(), "{} lacks what analysis needs", path.display());
    table
}

/// Live bytes that the samples stand for: each one for 1/(1 − e^(−size/R)) allocations of its size.
fn estimate(table: &SampleTable) -> f64 {
    let period = (1u64 << table.lg_sample) as f64;
    let live = table.sites.iter().flat_map(|site| &site.live);
    live.map(|sample| sample.size as f64 / -(-(sample.usable as f64) / period).exp_m1()).sum()
}

/// The child with a rule that fires again and again, and a profile large enough that writing takes a while.
fn writer(directory: &Path) -> Child {
    let mut child = under_agent(host("churn"))
        .arg("2")
        .env("OFFHEAP_PROFILE", "10")
        .env("OFFHEAP_TRIGGER", format!("rss>1M,every=0,keep=1000,dir={}", directory.display()))
        .env("OFFHEAP_SOCKET", directory.join("socket"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("spawn");
    use std::io::Write;
    child.stdin.as_mut().expect("stdin").write_all(b"work 400000\nwork 100000000\n").expect("write");
    child
}

#[test]
fn a_kill_in_the_middle_of_writing_leaves_no_cut_file() {
    let mut interrupted = 0;
    for number in 0..KILLS {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = writer(directory.path());
        // The file before is whole, another one has been begun.
        await_that("a file, and another one in writing", || {
            let (whole, others) = files(directory.path());
            whole.len() > number % 3 && others.iter().any(|path| path.to_string_lossy().contains("partial"))
        });
        child.kill().expect("kill -9");
        child.wait().expect("wait");
        let (whole, others) = files(directory.path());
        interrupted += usize::from(others.iter().any(|path| path.to_string_lossy().contains("partial")));
        assert!(!whole.is_empty());
        for path in whole {
            table(&path);
        }
    }
    assert!(interrupted > 0, "no kill met a file in writing: the test shows nothing");
}

/// A memory control group, version 1; gone when dropped.
struct Group(PathBuf);

impl Group {
    /// `None` where there is no such controller or it may not be used.
    fn new() -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/memory/offheap-test-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        fs::write(group.0.join("memory.limit_in_bytes"), LIMIT_BYTES.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let path = self.0.clone();
        // The last member may still be on its way out.
        await_that("the control group to be empty", || fs::remove_dir(&path).is_ok());
    }
}

#[test]
fn the_file_is_there_before_the_kernel_kills() {
    let Some(group) = Group::new() else {
        eprintln!("not run: needs root and the memory controller of cgroup v1 at /sys/fs/cgroup/memory");
        return;
    };
    for run in 0..OOM_RUNS {
        let directory = tempfile::tempdir().expect("a directory");
        // 100 MB/s: from the trigger at 80 % to the limit it takes half a second.
        let mut child = under_agent("/bin/sh")
            .args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""])
            .arg(&group.0)
            .arg(host("leaker"))
            .args(["100000", "1000"])
            .env("OFFHEAP_CHILDREN", "1")
            .env("OFFHEAP_PROFILE", "19")
            .env("OFFHEAP_TRIGGER", format!("cgroup>80%,every=60,dir={}", directory.path().display()))
            .env("OFFHEAP_SOCKET", directory.path().join("%p"))
            .stdout(Stdio::null())
            .spawn()
            .expect("spawn");
        let status = child.wait().expect("wait");
        assert_eq!(status.signal(), Some(libc::SIGKILL), "run {run}: it was to be killed, but {status}");
        let (whole, _) = files(directory.path());
        assert!(!whole.is_empty(), "run {run}: killed before the file was there");
        let held = estimate(&table(&whole[0]));
        let share = held / LIMIT_BYTES as f64;
        assert!((0.5..1.0).contains(&share), "run {run}: the file tells of {share:.2} of the limit");
        eprintln!("run {run}: {} tells of {:.0} % of the limit", whole[0].display(), share * 100.0);
    }
}
