//! Hosts in states that `/proc` shows otherwise, and questions that go wrong.

use crate::kit::{json, offheap, succeed};
use crate::planted::Planted;
use serde_json::Value;
use std::process::Command;

#[test]
fn a_process_whose_first_thread_has_ended_is_examined_like_others() {
    let planted = Planted::start("headless");
    let pid = planted.pid();
    let state = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    assert!(state.contains("State:\tZ"), "the first thread has ended: {state}");

    let ledger = json(offheap().args(["ledger", &pid, "--json"]));
    let rows = ledger["rows"].as_array().expect("rows");
    let owned = |owner: &str| rows.iter().find(|row| row["owner"] == owner).and_then(|row| row["bytes"].as_u64());
    assert!(owned("jemalloc live").is_some_and(|bytes| bytes > 2 << 20), "{ledger:#}");
    let top = json(offheap().args(["top", &format!("pid:{pid}"), "--json"]));
    assert!(top["rows"].as_array().expect("rows").iter().any(|row| row["name"] == "record_new"), "{top:#}");
    let listed = json(offheap().args(["ps", "--json"]));
    let processes = listed["processes"].as_array().expect("processes");
    let row = processes.iter().find(|row| row["pid"].as_u64().map(|pid| pid.to_string()) == Some(pid.clone()));
    assert!(row.is_some_and(|row| row["agent"] == true), "{row:?}");
    let examined = String::from_utf8(succeed(offheap().args(["doctor", &pid]), 0).stdout).expect("UTF-8");
    assert!(examined.contains("mappings, the agent"), "{examined}");
    let stats = json(offheap().args(["stats", &pid, "--json"]));
    assert!(stats["rss"].as_u64().is_some_and(|bytes| bytes > 2 << 20), "{}", stats["rss"]);
}

#[test]
fn a_stopped_process_is_to_be_continued_not_configured() {
    let planted = Planted::start("healthy");
    succeed(Command::new("kill").args(["-STOP", &planted.pid()]), 0);
    let found = json(offheap().args(["doctor", &planted.pid(), "--json"]));
    let findings = found["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|finding| finding["id"] == "agent-unreachable").expect("it is found");
    let remedy = finding["remedy"].as_str().expect("text");
    assert!(remedy.contains(&format!("kill -CONT {}", planted.pid())), "{finding:#}");
    assert!(!remedy.contains("OFFHEAP_SOCKET"), "{finding:#}");
}

#[test]
fn a_rule_that_is_not_there_is_named_and_no_other_taken_back() {
    let planted = Planted::start("healthy");
    let trigger = |arguments: &[&str], code| {
        let output = succeed(offheap().arg("trigger").arg(planted.socket()).args(arguments), code);
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let nothing = trigger(&["--remove", "77"], 1);
    assert!(nothing.contains("--remove 77: no rule has this number; none is in force"), "{nothing}");
    let dir = planted.file("dumps").display().to_string();
    trigger(&["--rss", "900GiB", "--index", "0.99", "--dir", &dir], 0);
    let rules = || json(offheap().arg("trigger").arg(planted.socket()).arg("--json"))["triggers"].clone();
    let ids: Vec<u64> = rules().as_array().expect("rules").iter().filter_map(|rule| rule["id"].as_u64()).collect();
    let wrong = trigger(&["--remove", &ids[0].to_string(), "--remove", "77"], 1);
    assert!(wrong.contains(&format!("{}, {} are in force", ids[0], ids[1])) && !wrong.contains("/v1/"), "{wrong}");
    assert_eq!(rules().as_array().map(Vec::len), Some(2), "none was taken back");
}

#[test]
fn a_second_recording_keeps_the_first() {
    let planted = Planted::start("healthy");
    let file = planted.file("a.rec");
    for _ in 0..2 {
        succeed(offheap().arg("record").arg(planted.socket()).args(["--for", "0", "-o"]).arg(&file), 0);
    }
    let pid = |name: &str| {
        let text = std::fs::read_to_string(planted.file(name)).expect("the recording is there");
        let header: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        header["pid"].as_u64().map(|pid| pid.to_string())
    };
    assert_eq!((pid("a.rec"), pid("a.rec.1")), (Some(planted.pid()), Some(planted.pid())));
}
