//! The Go heap beside what the same process holds outside of it.

use crate::kit::{Service, build, json, offheap, succeed};
use std::path::Path;
use std::process::Command;

/// One allocation in 16 KiB is sampled.
const LG_SAMPLE: u32 = 14;

fn leaking() -> Service {
    let service = Service::start(&build("cstring", "cstring-beside", &[], &[]), LG_SAMPLE, &[]);
    for _ in 0..40 {
        service.get("/name?n=1000&size=1000");
        service.get("/compress?n=2");
        service.get("/visit?n=500&size=900");
    }
    service
}

/// What jemalloc holds for so many bytes: four size classes a doubling.
fn size_class(size: u64) -> u64 {
    let spacing = 1 << (size - 1).ilog2().saturating_sub(2);
    size.next_multiple_of(spacing.max(16))
}

#[test]
fn size_classes_are_jemallocs() {
    for (size, class) in [(900, 1024), (1001, 1024), (1024, 1024), (1025, 1280), (4000, 4096), (276_840, 327_680)] {
        assert_eq!(size_class(size), class, "{size}");
    }
}

#[test]
fn each_handler_has_its_bytes_within_the_sampling_error() {
    let service = leaking();
    let pid = format!("pid:{}", service.pid());
    let table = json(offheap().args(["diff", "--go", "auto", &pid, "--json"]));
    let truth = service.truth();
    // The service counts what it asked for, the profile what that holds: the truth is put into size classes. A context
    // of zstd consists of allocations that only zstd knows, up to a quarter of a class apart.
    for (function, handler, asked) in [
        ("main.handleName", "main.handleName", Some(1001)),
        ("main.goVisit", "main.handleVisit", Some(900)),
        ("main.handleCompress", "main.handleCompress", None),
    ] {
        let truth = truth[handler].as_f64().expect("the service knows");
        let rows = table["functions"].as_array().expect("functions");
        let row = rows.iter().find(|row| row["name"] == function).unwrap_or_else(|| panic!("{function}: {table:#}"));
        let (native, error) = (row["native"].as_f64().expect("bytes"), row["native_error"].as_f64().expect("an error"));
        let (low, high) = match asked {
            Some(asked) => {
                let held = truth * size_class(asked) as f64 / asked as f64;
                (held - 4.0 * error, held + 4.0 * error)
            }
            None => (truth - 4.0 * error, 1.25 * truth + 4.0 * error),
        };
        assert!((low..=high).contains(&native), "{function}: {native} ± {error}, expected {low} to {high}");
        assert!(error < 0.1 * native, "{function}: the error is small: {error} of {native}");
    }
    let total: f64 = table["native_total"].as_f64().expect("a total");
    let named: f64 =
        table["functions"].as_array().expect("functions").iter().filter_map(|f| f["native"].as_f64()).sum();
    let without = table["native_without_go"].as_f64().expect("bytes");
    assert!((named + without - total).abs() < 1.0, "flat values add up to the total: {named} + {without} of {total}");
}

fn pprof(arguments: &[&str], files: &[&Path]) -> (bool, String) {
    let output = Command::new("go").args(["tool", "pprof"]).args(arguments).args(files).output().expect("go is there");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn the_pair_that_stock_pprof_refuses() {
    let service = leaking();
    let (go, native) = (service.file("go_heap.pb.gz"), service.file("native.heap"));
    std::fs::write(&go, service.get("/debug/pprof/heap")).expect("the file can be written");
    succeed(offheap().args(["dump", &service.pid(), "--raw", "-o"]).arg(&native), 0);
    let (accepted, said) = pprof(&["-top", "-base", go.to_str().expect("UTF-8")], &[&native]);
    assert!(!accepted && said.contains("unrecognized profile format"), "{said}");
    let table = succeed(offheap().args(["diff", "--go"]).arg(&go).arg(&native), 0);
    assert!(String::from_utf8_lossy(&table.stdout).contains("main.handleName"), "{table:?}");

    // Merged, both totals stand apart, for stock tools too.
    let merged = service.file("merged.pb.gz");
    succeed(offheap().arg("merge").args([&go, &native]).arg("-o").arg(&merged), 0);
    let total = |profile: &Path| json(offheap().arg("top").arg(profile).args(["--json", "-n", "1"]))["total"].as_f64();
    let (go_total, native_total) = (total(&go).expect("a total"), total(&native).expect("a total"));
    for (origin, expected) in [("go", go_total), ("native", native_total)] {
        let (_, said) =
            pprof(&["-top", "-unit=B", "-nodefraction=0", &format!("-tagfocus=origin={origin}")], &[&merged]);
        let shown =
            said.lines().find_map(|line| line.strip_prefix("Showing nodes accounting for ")?.split("B,").next());
        let shown: f64 = shown.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{origin}: {said}"));
        assert!((shown - expected).abs() <= 1.0, "{origin}: stock pprof says {shown}, offheap {expected}");
    }
}
