//! Hosts that an agent could harm, and stacks that an unwinder could fall into.

mod kit;

use kit::{Host, compile, host, run, under_agent};
use offheap_wire::{HeapMap, Info, SampleTable};

fn info(host: &Host) -> Info {
    serde_json::from_value(host.json("GET", "/v1/info")).unwrap()
}

/// Every allocation is walked: 5000 bytes each, at one byte a sample.
fn hostile(mode: &str) -> Info {
    let every = "prof_active:true,lg_prof_sample:0";
    let mut running = Host::start(&host("hostile"), &[mode], &[("MALLOC_CONF", every)]);
    assert_eq!(running.line(), "done", "{mode}");
    let info = info(&running);
    assert!(info.agent.stacks >= 200, "{mode}: {:?}", info.agent);
    let walked: u64 = info.agent.stack_ends.values().sum();
    assert_eq!((walked, info.agent.more["stacks_busy"]), (info.agent.stacks, 0), "{mode}");
    assert_eq!(running.end(), Some(0), "{mode}");
    info
}

#[test]
fn frame_pointers_that_name_nothing() {
    let info = hostile("garbage");
    let truncated: u64 =
        info.agent.stack_ends.iter().filter(|(reason, _)| *reason != "root").map(|(_, count)| count).sum();
    assert!(truncated >= 500, "{:?}", info.agent.stack_ends);
}

#[test]
fn frame_pointers_that_loop() {
    let info = hostile("loop");
    assert!(info.agent.stack_ends["root"] < 100, "{:?}", info.agent.stack_ends);
}

#[test]
fn frame_pointers_into_unmapped_pages() {
    let info = hostile("unmapped");
    assert!(info.agent.stack_ends["unreadable"] >= 900, "{:?}", info.agent.stack_ends);
}

#[test]
fn a_stack_at_the_edge_of_its_mapping() {
    hostile("edge");
}

#[test]
fn signal_handlers_on_alternate_stacks() {
    let info = hostile("signal");
    assert!(info.agent.stack_ends["root"] >= 1000, "walks through the signal frame: {:?}", info.agent.stack_ends);
}

#[test]
fn threads_with_small_stacks() {
    hostile("small");
}

#[test]
fn libraries_that_come_and_go() {
    let library = compile("library", ".so", &["-O2", "-shared", "-fPIC"]);
    let output = run(under_agent(host("loading")).arg(library).arg("300").env("OFFHEAP_PROFILE", "8"), "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(6), b"done\n".as_slice()), "{output:?}");
}

#[test]
fn libraries_that_prefer_their_own_dependencies() {
    let library = compile("library", ".deep.so", &["-O2", "-shared", "-fPIC"]);
    let run_path = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
    let program = compile("deepbind", "", &["-O2", &run_path]);
    // By a bare name: it is found only if the loader still sees who calls.
    let output = run(under_agent(program).arg(library.file_name().unwrap()), "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), b"done\n".as_slice()), "{output:?}");
}

#[test]
fn a_host_with_an_allocator_of_its_own() {
    let program = compile("own_jemalloc", "", &["-O1", "-fno-builtin"]);
    let mut running = Host::start(&program, &[], &[("OFFHEAP_PROFILE", "10")]);
    let info = info(&running);
    assert!(!info.malloc_is_ours);
    assert_ne!(info.jemalloc.opt["narenas"], "3", "the host's malloc_conf was read");
    running.json("POST", "/v1/purge");
    let table: SampleTable = serde_json::from_value(running.json("GET", "/v1/profile/samples")).unwrap();
    assert!(table.sites.iter().all(|site| site.live.len() < 100));
    assert_eq!(running.tell("hello"), "alive");
    assert_eq!(running.end(), Some(0));
}

/// What its socket looks like after a host has gone into a sandbox of this kind.
fn sandboxed(kind: &str) -> bool {
    let environment = [("OFFHEAP_PROFILE", "8"), ("OFFHEAP_TRIGGER", "rss>1T")];
    let mut running = Host::start(&host("sandboxed"), &[kind], &environment);
    assert_eq!(running.tell("go"), "done", "{kind}");
    let served = running.socket().exists();
    assert_eq!(running.end(), Some(8), "{kind}");
    served
}

#[test]
fn a_sandbox_that_refuses_is_lived_with() {
    assert!(sandboxed("refuse"));
    assert!(sandboxed("fork"), "a child's sandbox is not its parent's");
}

#[test]
fn a_sandbox_that_kills_is_left_before_it_closes() {
    assert!(!sandboxed("kill") && !sandboxed("alone"));
}

#[test]
fn threads_by_the_thousand() {
    for lg in ["", "8"] {
        let output = run(under_agent(host("storm")).arg("15").env("OFFHEAP_PROFILE", lg), "");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), b"done\n".as_slice()), "2^{lg}");
    }
}

#[test]
fn signals_go_to_the_host() {
    // The threads that answer and write files too, while they live.
    let running = Host::start(
        &host("churn"),
        &["1"],
        &[("OFFHEAP_PROFILE", "12"), ("OFFHEAP_TRIGGER", "rss>1,every=0,dir=/dev/null/none")],
    );
    let mut seen = std::collections::BTreeSet::new();
    kit::await_that("all kinds of threads", || {
        running.json("GET", "/v1/stats");
        for task in std::fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().flatten() {
            let Ok(status) = std::fs::read_to_string(task.path().join("status")) else { continue };
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
            let name = field("Name:");
            if task.file_name().to_str() == Some(&running.pid().to_string()) {
                continue;
            }
            // All but SIGKILL and SIGSTOP, which nobody can block, and the two that libc keeps for itself.
            let blocked = u64::from_str_radix(field("SigBlk:"), 16).unwrap();
            assert_eq!(blocked | 1 << 31 | 1 << 32, !(1 << 8 | 1 << 18), "{name}");
            seen.insert(name.to_owned());
        }
        ["offheap", "offheap-job", "offheap-trigger", "jemalloc_bg_thd"].iter().all(|name| seen.contains(*name))
    });
}

#[test]
fn heap_maps_while_everything_moves() {
    // Pages that go back to the kernel at once, and extents that are unmapped instead of kept.
    for conf in ["", "retain:false,dirty_decay_ms:0,muzzy_decay_ms:0"] {
        let environment = [("MALLOC_CONF", conf), ("OFFHEAP_PROFILE", "10")];
        let running = Host::start(&host("mapping"), &["6"], &environment);
        let mut slabs = 0;
        for _ in 0..4 {
            let map: HeapMap = serde_json::from_value(running.json("GET", "/v1/heap_map")).unwrap();
            for class in &map.classes {
                assert!(class.slabs.iter().all(|&(_, free)| free <= class.nregs), "{} of {}", class.size, class.nregs);
                slabs += class.slabs.len();
            }
            running.json("GET", "/v1/stats");
        }
        assert!(slabs > 100, "{slabs}");
        assert_eq!(running.end(), Some(4), "{conf}");
    }
}

#[test]
fn every_core_at_a_high_rate() {
    let expected = run(&mut std::process::Command::new(host("threads")), "");
    for lg in ["10", "4"] {
        let output = run(under_agent(host("threads")).env("OFFHEAP_PROFILE", lg), "");
        assert_eq!((output.status.code(), output.stdout), (Some(5), expected.stdout.clone()), "2^{lg}");
    }
}
