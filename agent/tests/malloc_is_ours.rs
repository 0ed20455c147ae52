//! Which malloc a host gets. Its own test binary, since it is the claim on which everything else stands.

mod kit;

use kit::{Host, agent, host};

#[test]
fn malloc_resolves_to_the_agent() {
    let mut running = Host::start(&host("interactive"), &[], &[]);
    let owner = running.tell("owner");
    assert_eq!(std::fs::canonicalize(owner).unwrap(), std::fs::canonicalize(agent()).unwrap());
    assert_eq!(running.json("GET", "/v1/info")["malloc_is_ours"], true);
}

#[test]
fn allocations_are_counted_by_the_agents_jemalloc() {
    let mut running = Host::start(&host("interactive"), &[], &[]);
    let allocated = |host: &Host| host.json("GET", "/v1/mallctl/stats.allocated")["value"].as_u64().unwrap();
    let before = allocated(&running);
    assert_eq!(running.tell("leak 1000000 50"), "leaked");
    let after = allocated(&running);
    assert!(after - before >= 50_000_000, "{before} {after}");
    assert_eq!(running.tell("free"), "freed");
    assert!(allocated(&running) < before + 5_000_000);
}

#[test]
fn operator_new_arrives_too() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/cpp_new.cpp");
    let program = kit::scratch_dir().join("cpp_new");
    let built = std::process::Command::new("c++").args(["-O2", "-o"]).args([&program, &source]).status().unwrap();
    assert!(built.success());
    let mut running = Host::start(&program, &[], &[]);
    assert_eq!(running.line(), "allocated");
    let allocated = running.json("GET", "/v1/stats")["allocated"].as_u64().unwrap();
    assert!(allocated >= 100_000_000, "{allocated}");
}

#[test]
fn only_the_allocators_names_are_exported() {
    let output = std::process::Command::new("nm").args(["-D", "--defined-only"]).arg(agent()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    for name in ["malloc", "free", "calloc", "realloc", "posix_memalign", "mallctl", "mallocx", "malloc_stats_print"] {
        assert!(names.contains(&name), "{name} is not exported");
    }
    for name in ["unshare", "setns", "dlopen", "prctl", "syscall", "_Znwm", "_ZdlPvSt11align_val_t"] {
        assert!(names.contains(&name), "{name} is not interposed");
    }
    for name in &names {
        let foreign = ["malloc_conf", "rust", "offheap", "_rjem"].iter().any(|part| name.contains(part));
        assert!(!foreign, "{name} is exported");
    }
}
