//! Hosts that know jemalloc: linked against Debian's, with one of their own inside, or using its extended functions.

mod kit;

use kit::{Host, agent, run, scratch_dir, skip, under_agent};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian's packages put their libraries; `None` when they are not installed.
fn debian(name: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    if path.is_absolute() {
        return Some(path);
    }
    skip(&format!("{name} is not installed (Debian's libjemalloc-dev)"));
    None
}

fn build(compiler: &str, source: &str, program: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(source);
    let program = scratch_dir().join(program);
    let mut command = Command::new(compiler);
    command.args(["-O1", "-fno-builtin", "-pthread", "-o"]).args([&program, &source]).args(flags).args(["-ldl", "-lm"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs under these preloads and gives what it printed.
fn output(program: &Path, preload: &str) -> String {
    let output = run(Command::new(program).env("LD_PRELOAD", preload).env("OFFHEAP_PROFILE", "8"), "");
    let how = format!("{} under {preload:?}: {output:?}", program.display());
    assert_eq!(output.status.code(), Some(5), "{how}");
    assert!(output.stderr.is_empty(), "{how}");
    String::from_utf8(output.stdout).unwrap()
}

/// Plain, under the agent, and with Debian's jemalloc preloaded before or after it.
fn same_in_any_company(program: &Path) {
    let plain = output(program, "");
    let agent = agent().display().to_string();
    let company = debian("libjemalloc.so.2").map(|path| path.display().to_string());
    let mut preloads = vec![agent.clone()];
    preloads.extend(company.iter().flat_map(|other| [format!("{agent}:{other}"), format!("{other}:{agent}")]));
    for preload in preloads {
        assert_eq!(output(program, &preload), plain, "{} under {preload}", program.display());
    }
}

#[test]
fn operators_of_cpp_and_the_functions_of_c_mix() {
    same_in_any_company(&build("c++", "operators.cpp", "operators", &["-std=c++17"]));
    same_in_any_company(&build("c++", "operators.cpp", "operators-static", &["-std=c++17", "-static-libstdc++"]));
    if debian("libjemalloc.so").is_some() {
        let linked = ["-std=c++17", "-Wl,--no-as-needed", "-ljemalloc"];
        same_in_any_company(&build("c++", "operators.cpp", "operators-linked", &linked));
    }
    if let Some(archive) = debian("libjemalloc_pic.a") {
        let linked = ["-std=c++17", archive.to_str().unwrap()];
        same_in_any_company(&build("c++", "operators.cpp", "operators-inside", &linked));
    }
}

#[test]
fn what_cpp_allocates_is_seen_though_debians_jemalloc_is_linked() {
    if debian("libjemalloc.so").is_none() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/cpp_new.cpp");
    let program = build("c++", source.to_str().unwrap(), "cpp_new-linked", &["-Wl,--no-as-needed", "-ljemalloc"]);
    let mut running = Host::start(&program, &[], &[]);
    assert_eq!(running.line(), "allocated");
    let allocated = running.json("GET", "/v1/stats")["allocated"].as_u64().unwrap();
    assert!(allocated >= 100_000_000, "{allocated}");
}

#[test]
fn the_extended_functions() {
    if debian("libjemalloc.so").is_none() {
        return;
    }
    same_in_any_company(&build("cc", "extended.c", "extended", &["-ljemalloc"]));
    let Some(archive) = debian("libjemalloc_pic.a") else { return };
    same_in_any_company(&build("cc", "extended.c", "extended-inside", &[archive.to_str().unwrap()]));
    // With a prefix, as most programs that bring their own have it: then both allocators live side by side.
    let prefixed = scratch_dir().join("libprefixed.a");
    let list = scratch_dir().join("prefixed.names");
    let names = ["malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "memalign", "valloc"];
    let more = ["malloc_usable_size", "mallctl", "mallctlnametomib", "mallctlbymib", "mallocx", "rallocx", "xallocx"];
    let rest = ["sallocx", "dallocx", "sdallocx", "nallocx", "malloc_stats_print", "malloc_conf", "malloc_message"];
    let renames: String = names.iter().chain(&more).chain(&rest).map(|name| format!("{name} my_{name}\n")).collect();
    std::fs::write(&list, renames).unwrap();
    let status = Command::new("objcopy").arg("--redefine-syms").args([&list, &archive, &prefixed]).status().unwrap();
    assert!(status.success());
    let flags = ["-DPREFIX=my_", prefixed.to_str().unwrap(), "-lstdc++"];
    same_in_any_company(&build("cc", "extended.c", "extended-prefixed", &flags));
}

#[test]
fn an_allocator_inside_is_noticed() {
    let Some(archive) = debian("libjemalloc_pic.a") else { return };
    let program = build("cc", "interactive.c", "interactive-inside", &[archive.to_str().unwrap(), "-lstdc++"]);
    let mut running = Host::start(&program, &[], &[("OFFHEAP_PROFILE", "8")]);
    assert_eq!(running.json("GET", "/v1/info")["malloc_is_ours"], false);
    assert_eq!(running.tell("leak 1000 1000"), "leaked");
    assert_eq!(running.tell("fork"), "child 42");
    assert_eq!(running.tell("threads 4"), "joined");
    for path in ["/v1/stats", "/v1/profile/heap", "/v1/heap_map", "/v1/profile/samples"] {
        assert_eq!(running.ask("GET", path).status, 200, "{path}");
    }
    assert_eq!(running.end(), Some(7));
    let output = run(under_agent(program).env("OFFHEAP", "off"), "owner\n");
    assert_eq!(output.status.code(), Some(7));
}
