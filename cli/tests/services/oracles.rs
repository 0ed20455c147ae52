//! What stock tools make of the same process.

use crate::kit::{Service, build, json, offheap, succeed};
use std::process::Command;

/// A RocksDB service that has leaked through its export handler.
fn leaking() -> Service {
    let service = Service::start(&build("rocksdb", "rocksdb-service", &[], &[]), 15, &["-writers", "2"]);
    for _ in 0..10 {
        service.get("/export?n=10");
    }
    service
}

fn pprof(arguments: &[&str], files: &[&std::path::Path]) -> String {
    let output = succeed(Command::new("go").args(["tool", "pprof"]).args(arguments).args(files), 0);
    String::from_utf8(output.stdout).expect("pprof prints UTF-8")
}

#[test]
fn go_tool_pprof_names_the_handler_and_merges_with_the_go_heap() {
    let service = leaking();
    let (native, go, merged) = (service.file("native.pb.gz"), service.file("go.pb.gz"), service.file("merged.pb.gz"));
    std::fs::write(&go, service.get("/debug/pprof/heap")).expect("the file can be written");
    succeed(offheap().args(["dump", &service.pid(), "-o"]).arg(&native), 0);

    let top = pprof(&["-top", "-cum"], &[&native]);
    assert!(top.contains("Type: inuse_space"), "{top}");
    assert!(top.contains("main.handleExport"), "{top}");
    assert!(!top.contains("operator new"), "the allocator's frames are cut off: {top}");
    succeed(offheap().args(["dump", &service.pid(), "--raw-frames", "-o"]).arg(&native), 0);
    let top = pprof(&["-top", "-cum"], &[&native]);
    // `operator new` is the agent's own, and frames of the agent are not recorded: there is none to keep.
    assert!(top.contains("main.handleExport") && !top.contains("operator new"), "{top}");

    let merged_path = merged.to_str().expect("a temporary path is UTF-8");
    pprof(&["-proto", "-output", merged_path], &[&go, &native]);
    let raw = pprof(&["-raw"], &[&merged]);
    assert!(
        raw.contains("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"),
        "four sample types survive: {}",
        &raw[..raw.len().min(600)]
    );
    let top = pprof(&["-top"], &[&merged]);
    assert!(top.contains("Type: inuse_space"), "inuse_space stays the default: {top}");
}

#[test]
fn totals_agree_with_jeprof_on_the_same_dump() {
    let service = leaking();
    let dump = service.file("service.heap");
    succeed(offheap().args(["dump", &service.pid(), "--raw", "-o"]).arg(&dump), 0);
    let output = succeed(
        Command::new("jeprof")
            .args(["--show_bytes", "--text"])
            .arg(build("rocksdb", "rocksdb-service", &[], &[]))
            .arg(&dump),
        0,
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let total: f64 = text
        .lines()
        .find_map(|line| line.strip_prefix("Total: ")?.strip_suffix(" B")?.parse().ok())
        .unwrap_or_else(|| panic!("jeprof prints a total: {text}"));
    let top = json(offheap().arg("top").arg(&dump).args(["--json", "--raw-frames"]));
    let ours = top["total"].as_f64().expect("total is a number");
    // jeprof adds unrounded values; ours are rounded once a stack.
    assert!((ours - total).abs() <= 500.0, "jeprof says {total}, offheap {ours}");
}
