//! The Go heap beside what lies outside of it.

use crate::kit::{Run, offheap, run, scratch, text};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Go heap of the field folder: 1 MiB and some through `main.main` and `example.test/ingest.load`.
const GO: &str = "g03-four-types.pb.gz";

/// A dump of the same functions calling into C: 3 MiB through `ingest.load` and 1 MiB on a thread of a C library. All
/// allocations are as large as 64 sampling periods, so that correction changes nothing.
fn native(folder: &Path) -> PathBuf {
    let path = folder.join("native.heap");
    let dump = "--- symbol\n\
        binary=/srv/ingest\n\
        0x1010 store_put\n\
        0x2010 runtime.asmcgocall.abi0\n\
        0x2020 runtime.cgocall\n\
        0x2030 example.test/ingest._Cfunc_store_put\n\
        0x2040 example.test/ingest.load\n\
        0x2050 main.main\n\
        0x2060 runtime.main\n\
        0x1020 worker\n\
        ---\n\
        --- heap\n\
        heap_v2/1024\n\
        \x20 t*: 4: 4194304 [0: 0]\n\
        @ 0x1010 0x2010 0x2020 0x2030 0x2040 0x2050 0x2060\n\
        \x20 t*: 3: 3145728 [0: 0]\n\
        @ 0x1010 0x1020\n\
        \x20 t*: 1: 1048576 [0: 0]\n\
        \n\
        MAPPED_LIBRARIES:\n\
        00001000-00002000 r-xp 00000000 fd:01 9001 /usr/lib/libstore.so\n\
        00002000-00003000 r-xp 00000000 fd:01 9002 /srv/ingest\n";
    std::fs::write(&path, dump).expect("it can be written");
    path
}

fn json(run: Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout).expect("JSON")
}

fn go_total() -> i64 {
    json(offheap(&["top", GO, "--json"]).code(0))["total"].as_i64().expect("a total")
}

#[test]
fn each_go_function_has_both_sides() {
    let folder = scratch();
    let native = native(folder.path());
    let table = json(offheap(&["diff", "--go", GO, text(&native), "--json"]).code(0));
    assert_eq!((table["go_total"].as_i64(), table["native_total"].as_i64()), (Some(go_total()), Some(4 << 20)));
    assert_eq!(table["native_without_go"], 1 << 20);
    let load = &table["functions"][0];
    assert_eq!(load["name"], "example.test/ingest.load");
    assert_eq!((load["go"].as_i64(), load["native"].as_i64()), (Some(go_total()), Some(3 << 20)));
    let shown = offheap(&["diff", "--go", GO, text(&native)]).code(0);
    assert!(shown.stdout.contains("as of its last garbage collection"), "{}", shown.stdout);
    assert!(shown.stdout.contains("3.00 MiB"), "{}", shown.stdout);
}

/// Sum of the flat column of `go tool pprof -top`.
#[track_caller]
fn pprof_sum(arguments: &[&str]) -> i64 {
    let arguments = [&["tool", "pprof", "-top", "-unit=bytes", "-nodefraction=0"], arguments].concat();
    let shown = run(Command::new("go").args(arguments)).code(0).stdout;
    let rows = shown.lines().skip_while(|line| !line.trim_start().starts_with("flat")).skip(1);
    let flat = |row: &str| row.split_whitespace().next()?.trim_end_matches('B').parse::<i64>().ok();
    rows.map(|row| flat(row).unwrap_or_else(|| panic!("no bytes in {row}\n{shown}"))).sum()
}

#[test]
fn stock_tools_tell_the_origins_of_a_merged_file_apart() {
    let folder = scratch();
    let native = native(folder.path());
    let merged = folder.path().join("merged.pb.gz");
    offheap(&["merge", GO, text(&native), "-o", text(&merged)])
        .code(0)
        .mentions(&["on the Go heap", "native.heap: 4.00 MiB native"]);
    assert_eq!(pprof_sum(&["-tagfocus", "origin=native", text(&merged)]), 4 << 20);
    assert_eq!(pprof_sum(&["-tagfocus", "origin=go", text(&merged)]), go_total());
    let difference = folder.path().join("difference.pb.gz");
    offheap(&["diff", "--go", GO, text(&native), "-o", text(&difference)]).code(0);
    assert_eq!(pprof_sum(&["-tagfocus", "origin=go", text(&difference)]), -go_total());
    assert_eq!(pprof_sum(&[text(&difference)]), (4 << 20) - go_total());
}

#[test]
fn what_cannot_be_compared_is_refused() {
    offheap(&["diff", "h01-plain.heap"]).code(2).mentions(&["diff needs two profiles", "--go"]);
    offheap(&["diff", "--go", "auto", "h01-plain.heap"]).code(2).mentions(&["--go auto asks the process", "pid:N"]);
    let folder = scratch();
    let out = folder.path().join("x.pb.gz");
    offheap(&["merge", GO, "f05-all-zero.folded", "-o", text(&out)]).code(1).mentions(&["measure different things"]);
}
