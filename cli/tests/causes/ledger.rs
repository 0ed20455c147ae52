//! Rows add up, and nearly everything is explained.

use crate::kit::{Service, build, json, offheap, succeed};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The ledger of a service, whose rows have been added up.
#[track_caller]
pub(crate) fn ledger(service: &Service, arguments: &[&str]) -> Value {
    let ledger = json(offheap().args(["ledger", &service.pid(), "--json"]).args(arguments));
    let rows = ledger["rows"].as_array().expect("rows");
    let sum: u64 = rows.iter().map(|row| row["bytes"].as_u64().expect("bytes")).sum();
    assert_eq!(Some(sum), ledger["rss"].as_u64(), "rows add up to the byte: {ledger:#}");
    assert_eq!(ledger["unattributed"], rows.last().expect("a row")["bytes"], "{ledger:#}");
    assert!(rows.iter().all(|row| !row["measured_by"].as_str().expect("text").is_empty()), "{ledger:#}");
    ledger
}

/// Bytes of one owner.
pub(crate) fn bytes(ledger: &Value, owner: &str) -> f64 {
    let rows = ledger["rows"].as_array().expect("rows");
    rows.iter().filter(|row| row["owner"] == owner).filter_map(|row| row["bytes"].as_f64()).sum()
}

fn unexplained(ledger: &Value) -> f64 {
    ledger["unattributed"].as_f64().expect("a number") / ledger["rss"].as_f64().expect("a number")
}

#[track_caller]
fn explained(service: &Service, when: &str) -> Value {
    // The kernel, the agent and Go are read one after the other. Where something else has the cores, these moments lie
    // far apart, and under load the memory has moved on between them: then the reading is taken again.
    let mut reading = ledger(service, &["--go", "auto"]);
    for _ in 0..9 {
        if unexplained(&reading) <= 0.05 {
            break;
        }
        reading = ledger(service, &["--go", "auto"]);
    }
    assert!(
        unexplained(&reading) <= 0.05,
        "{when}: {:.1} % of RSS is unattributed: {reading:#}",
        100.0 * unexplained(&reading)
    );
    reading
}

#[test]
fn rocksdb_is_explained_before_under_and_after_load() {
    let program = build("rocksdb", "rocksdb-ledger", &[], &[]);
    // The service's own writers write one batch each and sleep: all further load comes from the requests below.
    let service = Service::start(&program, 19, &["-writers", "2", "-pause", "1h"]);
    let start = explained(&service, "at the start");
    let (done, request) = (AtomicBool::new(false), |path: &str| drop(service.get(path)));
    let loaded = std::thread::scope(|scope| {
        for path in ["/export?n=5", "/read?n=0"] {
            let (done, request) = (&done, &request);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    request(path);
                }
            });
        }
        while service.truth()["exported_batches"].as_u64() < Some(300) {
            request("/export?n=5");
        }
        // The threads end whatever the reading is.
        let ledger = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| explained(&service, "under load")));
        done.store(true, Ordering::Relaxed);
        ledger.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let after = explained(&service, "after load");
    let leaked = service.truth()["exported_bytes"].as_f64().expect("the service knows");
    // A batch doubles its buffer when it is full: what it has not written to yet is leaked as well, and no page of RSS.
    let held = bytes(&after, "jemalloc live") + after["native_untouched"].as_f64().expect("a number");
    assert!(held > leaked, "{leaked} bytes are leaked, and only {held} live: {after:#}");
    assert!(loaded["skew"]["agent_ms"].is_f64() && loaded["skew"]["go_ms"].is_f64(), "{loaded:#}");
    assert!(start["rss"].as_u64() < after["rss"].as_u64());
    assert!(after["anon_huge_pages"].is_u64() && after["lazy_free"].is_u64(), "what makes RSS lie is shown: {after:#}");
}

#[test]
fn the_agent_and_the_go_endpoint_each_add_their_part() {
    let program = build("causes", "causes-ledger", &[], &[]);
    let service = Service::start(&program, 19, &["-cause", "c-leak"]);
    service.get("/step?mb=20");
    let alone = ledger(&service, &[]);
    assert!(bytes(&alone, "Go heap, not split") > 0.0, "{alone:#}");
    assert!(alone["notes"].to_string().contains("--go"), "it says what an endpoint would add: {alone:#}");
    // Each page of the service is as good as the other, live or saved.
    let page = service.file("heap.txt");
    std::fs::write(&page, service.get("/debug/pprof/heap?debug=1")).expect("the file can be written");
    for go in ["auto", &service.url(), &format!("{}/debug/pprof/heap", service.url()), page.to_str().expect("UTF-8")] {
        let ledger = ledger(&service, &["--go", go]);
        assert!(bytes(&ledger, "Go heap in use") > 0.0 && bytes(&ledger, "Go stacks") > 0.0, "{go}: {ledger:#}");
        assert_eq!(bytes(&ledger, "Go heap, not split"), 0.0, "{go}: {ledger:#}");
    }

    // Without the agent the same process is told apart as far as the kernel goes.
    let mut child =
        Command::new(&program).args(["-cause", "c-leak"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut first = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().expect("a pipe")), &mut first)
        .expect("the service prints its address");
    let plain = json(offheap().args(["ledger", &child.id().to_string(), "--json"]));
    let text = succeed(offheap().args(["ledger", &child.id().to_string()]), 0);
    child.kill().and_then(|()| child.wait()).expect("it can be killed");
    assert!(bytes(&plain, "native allocators, not split") > 0.0, "{plain:#}");
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.contains("offheap run"), "it says what the agent would add: {text}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let gone = succeed(offheap().args(["ledger", "4194304"]), 1);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no process 4194304"), "{gone:?}");
    let own = std::process::id().to_string();
    let auto = succeed(offheap().args(["ledger", &own, "--go", "auto"]), 1);
    assert!(String::from_utf8_lossy(&auto.stderr).contains("listens on no port"), "{auto:?}");
    let page = succeed(offheap().args(["ledger", &own, "--go", "/nowhere"]), 1);
    assert!(String::from_utf8_lossy(&page.stderr).contains("/nowhere"), "{page:?}");
}

#[test]
fn watching_shows_the_go_side_too() {
    let service = Service::start(&build("causes", "causes-watched", &[], &[]), 19, &["-cause", "go-leak"]);
    service.get("/step?mb=10");
    let line = json(offheap().args(["attach", &service.pid(), "--go", "auto", "--count", "1", "--json"]));
    assert!(line.to_string().contains("Go heap in use"), "{line:#}");
}
