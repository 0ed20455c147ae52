//! Stacks run from the C allocation through cgo into the Go functions that caused it.

use crate::kit::{Service, build, json, offheap, succeed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One allocation in 16 KiB is sampled: enough samples for tight bounds on a few MiB.
const LG_SAMPLE: u32 = 14;

struct Shown {
    /// Bytes below each Go function outside the runtime (cum).
    by_go: BTreeMap<String, i64>,
    /// The samples with their frames, leaf first.
    samples: Vec<(i64, Vec<String>)>,
    truth: Value,
}

/// Start a build of the `cstring` service, let every handler leak, dump, and read the dump back.
fn leak_and_dump(program: &Path) -> Shown {
    let service = Service::start(program, LG_SAMPLE, &[]);
    for _ in 0..20 {
        service.get("/name?n=500&size=1000");
        service.get("/compress?n=4");
        service.get("/visit?n=500&size=900");
    }
    let dump = service.file("native.pb.gz");
    succeed(offheap().args(["dump", &service.pid(), "-o"]).arg(&dump), 0);
    let table = json(offheap().arg("top").arg(&dump).args(["--by", "go", "--json", "-n", "1000"]));
    let by_go = table["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (text(&row["name"]), row["cum"].as_i64().expect("cum is a number")))
        .collect();
    let out = service.file("native.json");
    succeed(offheap().arg("convert").arg(&dump).args(["--to", "json", "-o"]).arg(&out), 0);
    let all: Value = serde_json::from_slice(&std::fs::read(&out).expect("the output exists")).expect("JSON");
    let space = all["sample_types"]
        .as_array()
        .expect("sample types")
        .iter()
        .position(|t| t == "inuse_space" || t["type"] == "inuse_space")
        .expect("a dump has inuse_space");
    let samples = all["samples"]
        .as_array()
        .expect("samples")
        .iter()
        .map(|sample| {
            let frames = sample["frames"].as_array().expect("frames").iter().map(|f| text(&f["function"])).collect();
            (sample["values"][space].as_i64().expect("a value is a number"), frames)
        })
        .collect();
    Shown { by_go, samples, truth: service.truth() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Is this a Go function of the main package, net/http or the runtime?
fn is_go(name: &str) -> bool {
    ["main.", "net/http.", "runtime.", "runtime/"].iter().any(|package| name.starts_with(package))
}

fn check(shown: &Shown) {
    // Each handler stands with about its own bytes. Thousands of samples: 10 % is many standard errors, and size classes
    // add up to an eighth.
    for handler in ["main.handleName", "main.handleCompress"] {
        let truth = shown.truth[handler].as_f64().expect("the service reports each handler");
        let found = shown.by_go.get(handler).copied().unwrap_or(0) as f64;
        assert!(
            found > truth * 0.9 && found < truth * 1.3,
            "{handler}: truth {truth}, found {found}\n{:?}",
            shown.by_go
        );
    }
    let visit = shown.truth["main.handleVisit"].as_f64().expect("the service reports each handler");
    let found = shown.by_go.get("main.goVisit").copied().unwrap_or(0) as f64;
    assert!(found > visit * 0.9 && found < visit * 1.3, "goVisit: truth {visit}, found {found}\n{:?}", shown.by_go);

    // What was allocated on goroutines passed `asmcgocall`; of those bytes 99 % reach the goroutine's start.
    let crossed = |frames: &[String]| frames.iter().any(|f| f.starts_with("runtime.asmcgocall"));
    let complete = |frames: &[String]| frames.last().is_some_and(|f| f.starts_with("runtime.goexit"));
    let on_goroutines: i64 = shown.samples.iter().filter(|(_, f)| crossed(f)).map(|(bytes, _)| bytes).sum();
    let reached: i64 = shown.samples.iter().filter(|(_, f)| crossed(f) && complete(f)).map(|(bytes, _)| bytes).sum();
    assert!(on_goroutines > 1_000_000, "only {on_goroutines} bytes were seen on goroutines");
    assert!(reached as f64 >= 0.99 * on_goroutines as f64, "{reached} of {on_goroutines} bytes reach goexit");

    // Below the callback: C, then Go (goVisit), then C (visit_all), then Go (handleVisit).
    let callback = shown
        .samples
        .iter()
        .map(|(_, frames)| frames)
        .find(|frames| frames.iter().any(|f| f == "main.goVisit"))
        .expect("a stack runs through the callback");
    let position = |name: &str| callback.iter().position(|f| f == name);
    let inner = position("main.goVisit").expect("just found");
    let outer = position("main.handleVisit").unwrap_or_else(|| panic!("no handler below the callback: {callback:#?}"));
    assert!(inner < outer, "{callback:#?}");
    assert!(!is_go(&callback[0]), "the leaf is C: {callback:#?}");
    assert!(callback[inner..outer].iter().any(|f| !is_go(f) && !f.starts_with("_cgoexp")), "C between: {callback:#?}");
}

fn main_functions(shown: &Shown) -> BTreeSet<&str> {
    shown.by_go.keys().map(String::as_str).filter(|name| name.starts_with("main.")).collect()
}

#[test]
fn three_builds_of_a_service_name_the_same_functions() {
    let plain = leak_and_dump(&build("cstring", "cstring-plain", &[], &[]));
    check(&plain);
    let stripped = leak_and_dump(&build("cstring", "cstring-stripped", &["-ldflags", "-w -s"], &[]));
    check(&stripped);
    let pie = leak_and_dump(&build("cstring", "cstring-pie", &["-buildmode=pie"], &[]));
    check(&pie);
    assert_eq!(main_functions(&plain), main_functions(&stripped));
    assert_eq!(main_functions(&plain), main_functions(&pie));
}
