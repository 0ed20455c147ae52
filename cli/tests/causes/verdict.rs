//! Services with one planted cause each, and one without.

use crate::kit::{Service, build, json, offheap};
use crate::ledger::{bytes, ledger};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;

/// Start the service with this cause, plant `steps` of it.
fn plant(cause: &str, steps: &[&str]) -> Service {
    let program: PathBuf = build("causes", &format!("causes-{cause}"), &[], &[]);
    let service = Service::start(&program, 19, &["-cause", cause]);
    for step in steps {
        service.get(step);
    }
    service
}

fn cause(ledger: &Value) -> &str {
    ledger["verdict"].as_str().unwrap_or_else(|| panic!("no cause: {ledger:#}"))
}

#[track_caller]
fn expect(service: &Service, expected: &str) -> Value {
    let ledger = ledger(service, &["--go", "auto"]);
    assert_eq!(cause(&ledger), expected, "{ledger:#}");
    let reasons = ledger["reasons"].as_array().expect("reasons");
    let numbers = reasons.iter().filter_map(Value::as_str).any(|reason| reason.contains('%'));
    assert!(numbers, "the numbers that decided are named: {ledger:#}");
    ledger
}

/// Within a tenth: size classes, pages and what the service holds anyway.
#[track_caller]
fn about(ledger: &Value, owner: &str, truth: f64) {
    let found = bytes(ledger, owner);
    assert!((found - truth).abs() < 0.1 * truth, "{owner}: truth {truth}, found {found}: {ledger:#}");
}

fn planted(service: &Service) -> f64 {
    service.truth()["planted"].as_f64().expect("the service knows")
}

#[test]
fn a_leak_in_c() {
    let service = plant("c-leak", &["/step?mb=100"]);
    let ledger = expect(&service, "live native growth");
    about(&ledger, "jemalloc live", planted(&service));
}

#[test]
fn a_leak_in_c_between_two_readings() {
    let service = plant("c-leak", &["/step?mb=10"]);
    let mut reading = offheap()
        .args(["ledger", &service.pid(), "--json", "--interval", "3s"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    // The first reading has been taken once the agent was asked for statistics; whatever is planted until the second one
    // is growth, so planting goes on until the command ends.
    while reading.try_wait().expect("it can be awaited").is_none() {
        service.get("/step?mb=2");
    }
    let output = reading.wait_with_output().expect("it ends");
    let ledger: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(cause(&ledger), "live native growth", "{ledger:#}");
    assert_eq!(ledger["growing"], true, "{ledger:#}");
    assert!(ledger["numbers"]["bytes_per_second"].as_f64() > Some(0.0), "{ledger:#}");
    assert!(ledger["before"]["rss"].as_u64() < ledger["rss"].as_u64(), "{ledger:#}");
}

#[test]
fn a_leak_in_go() {
    let service = plant("go-leak", &["/step?mb=100"]);
    let ledger = expect(&service, "Go heap");
    about(&ledger, "Go heap in use", planted(&service));
}

#[test]
fn slabs_pinned_after_a_burst() {
    let service = plant("fragmentation", &["/step?mb=100"]);
    let ledger = expect(&service, "fragmentation");
    // One session of 64 stayed; the other 63 are waste.
    about(&ledger, "jemalloc slab waste", 63.0 * planted(&service));
}

#[test]
fn an_idle_go_heap_after_a_burst() {
    let service = plant("go-idle", &["/step?mb=20"]);
    let ledger = expect(&service, "Go idle memory");
    about(&ledger, "Go heap idle, not yet released", planted(&service));
}

#[test]
fn memory_mapped_by_c() {
    let service = plant("mmap", &["/step?mb=100"]);
    let ledger = expect(&service, "outside both allocators");
    about(&ledger, "other anonymous", planted(&service));
}

#[test]
fn a_healthy_service_raises_no_alarm() {
    let service = plant("healthy", &["/step?mb=50", "/step?mb=50", "/gc"]);
    expect(&service, "healthy");
    let two = json(offheap().args(["ledger", &service.pid(), "--go", "auto", "--json", "--interval", "1s"]));
    assert_eq!(cause(&two), "healthy", "{two:#}");
    assert_eq!(two["growing"], false, "{two:#}");
}
