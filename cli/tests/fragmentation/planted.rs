//! A program whose waste is known.

use crate::kit::{agent, json, offheap, succeed};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

/// Regions of a slab of the class, and their size.
const REGIONS: u64 = 64;
const SIZE: u64 = 448;
/// jemalloc gives a sampled allocation an extent of its own, so sampling itself moves survivors out of their slabs: at
/// 2^18 it is one in 585, which leaves some 14 of the 8192 to be seen and takes a fifth of a percent of the waste.
const LG_SAMPLE: &str = "--profile=18";

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fragmentation/planted.c");
        succeed(Command::new("cc").args(["-g", "-O1", "-fno-omit-frame-pointer", "-o"]).arg(&out).arg(source), 0);
        out
    })
}

/// The program under the agent; it ends when dropped.
pub(crate) struct Planted {
    child: Child,
    _stdin: ChildStdin,
    dir: tempfile::TempDir,
    /// Live sessions.
    pub(crate) kept: u64,
}

impl Planted {
    pub(crate) fn start(mode: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let mut child = offheap()
            .args(["run", LG_SAMPLE, "--agent"])
            .arg(agent())
            .arg("--socket")
            .arg(dir.path().join("s"))
            .arg("--")
            .arg(program())
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command can be started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is a pipe")).read_line(&mut line).expect("it prints a line");
        let kept = line
            .strip_prefix("ready ")
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("not ready: `{line}`"));
        let stdin = child.stdin.take().expect("stdin is a pipe");
        Self { child, _stdin: stdin, dir, kept }
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_waste_of_the_class_is_found_and_the_surviving_site_comes_first() {
    let planted = Planted::start("fragmented");
    let truth = (planted.kept * (REGIONS - 1) * SIZE) as f64;
    let found = json(offheap().arg("frag").arg(planted.socket()).arg("--json"));
    assert_eq!(found["verdict"], "fragmented", "{found:#}");
    let class = &found["classes"][0];
    assert_eq!(class["size"], SIZE, "{found:#}");
    let waste = class["waste"].as_f64().expect("a number");
    assert!((waste - truth).abs() < truth / 100.0, "the truth is {truth}, found {waste}");
    assert!(found["index"].as_f64().expect("a number") > 0.35, "{found:#}");

    let sites = found["sites"].as_array().expect("profiling is on, so there are sites");
    assert_eq!(sites[0]["name"], "session_new", "{found:#}");
    assert!(sites[0]["waste"].as_f64().expect("a number") > truth * 0.95, "{found:#}");
    let shared: i64 = sites.iter().map(|site| site["waste"].as_i64().expect("a number")).sum();
    assert_eq!(Some(shared), found["slab_waste"].as_i64(), "the shares add up to the slab waste");

    let text = String::from_utf8(succeed(offheap().arg("frag").arg(planted.socket()), 0).stdout).expect("UTF-8");
    assert!(text.contains("session_new: ") && text.contains("448-byte objects pin "), "{text}");

    let svg = planted.file("waste.svg");
    let source = format!("pid:{}", planted.socket().display());
    succeed(offheap().args(["flame", &source, "--by", "waste", "-o"]).arg(&svg), 0);
    let drawn = std::fs::read_to_string(&svg).expect("the picture exists");
    assert!(drawn.contains("session_new"), "the picture names the site");
}

#[test]
fn the_heap_map_shows_one_survivor_a_slab() {
    let planted = Planted::start("fragmented");
    let svg = planted.file("map.svg");
    let found = json(offheap().arg("frag").arg(planted.socket()).args(["--no-sites", "--json", "--map"]).arg(&svg));
    let map = &found["heap_map"];
    let class =
        map["classes"].as_array().expect("classes").iter().find(|class| class["size"] == SIZE).expect("the class");
    let slabs = class["slabs"].as_u64().expect("a number");
    assert!(slabs.abs_diff(planted.kept) <= planted.kept / 100, "{slabs} slabs for {} survivors", planted.kept);
    let nearly_empty = class["histogram"][0].as_u64().expect("a number");
    assert!(nearly_empty >= slabs * 95 / 100, "{class:#}");
    // Two ways to measure the same: the map's free regions, which count cached ones as used too, and the statistics.
    let (mapped, counted) =
        (class["waste"].as_f64().expect("a number"), found["classes"][0]["waste"].as_f64().expect("a number"));
    assert!((mapped - counted).abs() < counted / 100.0, "map {mapped}, statistics {counted}");
    let drawn = std::fs::read_to_string(&svg).expect("the picture exists");
    assert!(drawn.matches("h4v4h-4z").count() as u64 >= slabs, "one cell a slab");
}

#[test]
fn the_same_live_bytes_without_fragmentation_are_ok() {
    let planted = Planted::start("healthy");
    let svg = planted.file("map.svg");
    let found = json(offheap().arg("frag").arg(planted.socket()).arg("--json").arg("--map").arg(&svg));
    assert_eq!(found["verdict"], "ok", "{found:#}");
    let class = found["heap_map"]["classes"].as_array().expect("classes").iter().find(|class| class["size"] == SIZE);
    assert!(class.expect("the class")["utilization"].as_f64().expect("a number") > 0.9, "{found:#}");
}

#[test]
fn the_four_exit_codes_in_a_script() {
    let (fragmented, healthy) = (Planted::start("fragmented"), Planted::start("healthy"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = succeed(
        Command::new("sh")
            .arg(here.join("tests/fragmentation/exit-codes.sh"))
            .arg(env!("CARGO_BIN_EXE_offheap"))
            .args([fragmented.socket(), healthy.socket()])
            .arg(here.join("../testdata/field/r05-live-go126-debug1.txt"))
            .arg(fragmented.file("state.json")),
        0,
    );
    let text = String::from_utf8_lossy(&output.stdout);
    for line in ["0 OK: ", "1 WARNING: HighMemoryFragmentation", "2 CRITICAL: ", "3 UNKNOWN: "] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line} in\n{text}");
    }
}
