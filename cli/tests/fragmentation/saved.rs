//! `stats`, `frag` and `check` on saved reports: what the field inputs must give.

use crate::kit::{json, offheap, succeed};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn field(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/field").join(name)
}

#[test]
fn verdict_and_exit_code_of_every_report() {
    for (name, verdict, index, code) in [
        ("s01-fragmented-51.txt", "fragmented", Some(0.825_747), 0),
        ("s02-4x-huge-no-retained.txt", "ok", Some(0.061_733), 0),
        ("s03-52-rate-columns.txt", "ok", Some(0.037_711), 0),
        ("s03b-same-hard-wrapped-100.txt", "ok", Some(0.037_711), 0),
        ("s04-64k-pages.txt", "ok", Some(0.071_030), 0),
        ("s07-all-zero.txt", "unknown", None, 3),
        ("s08-allocated-above-active.txt", "unreliable", Some(-0.000_987), 0),
        ("s09-stats-disabled.txt", "unknown", None, 3),
        ("s11-cut.txt", "ok", Some(0.037_711), 4),
        ("s12-small-heap.txt", "ok", Some(0.198_261), 0),
        ("s20-53.json", "fragmented", Some(0.825_747), 0),
        ("s20b-cut.json", "fragmented", Some(0.825_747), 4),
        ("s20d-old-keys-missing.json", "fragmented", Some(0.825_747), 0),
        ("r04-live-stats-530.txt", "ok", Some(0.000_568), 0),
        ("r04-live-stats-530.json", "ok", Some(0.000_568), 0),
    ] {
        let output = succeed(offheap().arg("frag").arg(field(name)).arg("--json"), code);
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(found["verdict"], verdict, "{name}: {found}");
        match index {
            Some(index) => {
                assert!((found["index"].as_f64().expect("an index") - index).abs() < 1e-6, "{name}: {found}")
            }
            None => assert!(found["index"].is_null(), "{name}: {found}"),
        }
        succeed(offheap().arg("stats").arg(field(name)), code);
        if code == 4 {
            succeed(offheap().arg("frag").arg(field(name)).arg("--lenient"), 0);
        }
        let text = succeed(offheap().arg("frag").arg(field(name)), code).stdout;
        assert_eq!(index.is_none(), String::from_utf8_lossy(&text).starts_with("fragmentation index n/a"), "{name}");
    }
}

#[test]
fn retained_address_space_enters_no_number_but_its_own() {
    let found = json(offheap().arg("frag").arg(field("s01-fragmented-51.txt")).arg("--json"));
    assert_eq!(found["retained"], 900_000_000);
    assert_eq!(found["unreturned"], 401_000_000_i64 - 369_164_288 - 9_000_000);
    assert_eq!(found["slab_waste"], 3 * 4096 - 5 * 8 + 90_000 * 4096 - 64_000_000);
    assert_eq!(found["classes"][0]["size"], 64);
    assert_eq!(found["classes"][0]["waste"], 90_000 * 4096 - 64_000_000);
}

#[test]
fn text_and_json_of_one_moment_print_the_same() {
    let print = |command: &str, name: &str| succeed(offheap().args([command, "--json"]).arg(field(name)), 0).stdout;
    for command in ["stats", "frag"] {
        assert_eq!(print(command, "r04-live-stats-530.txt"), print(command, "r04-live-stats-530.json"), "{command}");
    }
}

#[test]
fn check_judges_saved_reports() {
    for (name, options, code, says) in [
        ("s01-fragmented-51.txt", &["--min-rss", "300MB"][..], 1, "WARNING: HighMemoryFragmentation: index 0.826"),
        ("s01-fragmented-51.txt", &[], 0, "OK: index 0.826"),
        ("s01-fragmented-51.txt", &["--min-rss", "300MB", "--index", "0.9"], 0, "OK: "),
        ("s04-64k-pages.txt", &[], 0, "OK: index 0.071"),
        ("s12-small-heap.txt", &["--index", "0.1", "--min-rss", "1"], 0, "OK: "),
        ("s07-all-zero.txt", &[], 3, "UNKNOWN: "),
        ("s08-allocated-above-active.txt", &["--min-rss", "0", "--index", "0"], 3, "UNKNOWN: "),
        ("s09-stats-disabled.txt", &[], 3, "UNKNOWN: "),
        ("h04-empty.heap", &[], 3, "UNKNOWN: "),
        ("no-such-file.txt", &[], 3, "UNKNOWN: "),
    ] {
        let output = succeed(offheap().arg("check").arg(field(name)).args(options), code);
        let line = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(line.starts_with(says), "{name} {options:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{name}: {line}");
        let output = succeed(offheap().arg("check").arg(field(name)).args(options).arg("--json"), code);
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(found["state"], ["ok", "warning", "critical", "unknown"][usize::try_from(code).expect("a code")]);
    }
}

#[test]
fn wrong_usage_of_check_is_unknown_not_critical() {
    succeed(offheap().args(["check", "--indx", "0.5", "1"]), 3);
    succeed(offheap().args(["check", "1", "--for", "soon"]), 3);
    succeed(offheap().args(["check", "--help"]), 0);
    succeed(offheap().args(["frag", "--indx", "0.5", "1"]), 2);
}
