//! The commands that ask a running host, on a real service.

use crate::kit::{Service, build, json, offheap, succeed};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn service(name: &str) -> Service {
    Service::start(&build("cstring", name, &[], &[]), 14, &[])
}

/// The leak handler, often enough that it stands out.
fn leak(service: &Service) {
    for _ in 0..20 {
        service.get("/name?n=500&size=1000");
    }
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn ps_lists_the_host_with_its_socket() {
    let service = service("cstring-ps");
    let listed = json(offheap().args(["ps", "--json"]));
    assert_eq!(listed["schema"], "offheap.ps/1");
    let processes = listed["processes"].as_array().expect("a list");
    let row = processes
        .iter()
        .find(|row| row["pid"].as_u64().is_some_and(|pid| pid.to_string() == service.pid()))
        .expect("the service is listed");
    assert_eq!((&row["agent"], &row["go"], &row["allocator"]), (&true.into(), &true.into(), &"offheap".into()));
    assert_eq!(row["socket"], service.socket().display().to_string());
}

#[test]
fn a_target_is_a_pid_a_socket_or_a_name() {
    let service = service("cstring-name");
    let socket = service.socket().display().to_string();
    for target in [&service.pid(), &socket, "cstring-name"] {
        let stats = json(offheap().args(["stats", "--json", target]));
        assert_eq!(stats["schema"], "offheap.stats/1", "{target}");
        for key in ["allocated", "active", "metadata", "resident", "mapped", "rss", "page_size", "narenas", "taken_at"]
        {
            assert!(stats[key].as_f64().is_some_and(|value| value > 0.0), "{target}: {key} in {stats}");
        }
        let bin = &stats["bins"][0];
        for key in ["size", "nregs", "slab_size", "curregs", "curslabs", "nonfull_slabs"] {
            assert!(bin[key].is_u64(), "{target}: {key} in {bin}");
        }
    }
    let table = succeed(offheap().args(["stats", "--bins", "--arenas", &socket]), 0);
    assert!(String::from_utf8_lossy(&table.stdout).contains("Small size classes"), "{table:?}");
}

#[test]
fn a_process_without_the_agent_is_told_how_to_get_it() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep is everywhere");
    let output = offheap().args(["stats", &sleeper.id().to_string()]).output().expect("the command can be started");
    sleeper.kill().and_then(|()| sleeper.wait()).expect("it is ours");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("runs without the agent"), "{output:?}");
}

#[test]
fn profiling_is_stopped_reset_and_started_again() {
    let service = service("cstring-profile");
    let state =
        |words: &[&str]| json(offheap().args(["profile", words[0], &service.pid(), "--json"]).args(&words[1..]));
    assert_eq!(state(&["status"])["active"], true);
    let stopped = state(&["stop"]);
    assert_eq!((&stopped["active"], stopped["recording_since"].is_null()), (&false.into(), false), "{stopped}");
    assert!(state(&["reset"])["recording_since"].is_null());
    let started = state(&["start", "--lg-sample", "12"]);
    assert_eq!((&started["active"], &started["lg_sample"]), (&true.into(), &12.into()), "{started}");
}

#[test]
fn a_dump_for_a_while_holds_what_was_allocated_meanwhile() {
    let service = service("cstring-while");
    succeed(offheap().args(["profile", "stop", &service.pid()]), 0);
    succeed(offheap().args(["profile", "reset", &service.pid()]), 0);
    let file = service.file("while.pb.gz");
    let mut dump = offheap()
        .args(["dump", &service.pid(), "--for", "1h", "--lg-sample", "12", "-o"])
        .arg(&file)
        .spawn()
        .expect("the command can be started");
    // Recording has begun when the agent says so; then it is time to leak, and to interrupt the hour.
    while json(offheap().args(["profile", "status", "--json", &service.pid()]))["active"] != true {
        std::thread::yield_now();
    }
    leak(&service);
    let pid = i32::try_from(dump.id()).expect("pids are small");
    // SAFETY: the process is our child and not yet waited for, so that the pid is its own.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    assert_eq!(dump.wait().expect("it ends").code(), Some(0));
    let state = json(offheap().args(["profile", "status", "--json", &service.pid()]));
    assert_eq!(state["active"], false, "what dump started it also stopped");
    let top = json(offheap().arg("top").arg(&file).args(["--by", "go", "--json", "-n", "1"]));
    assert_eq!(top["rows"][0]["name"], "main.handleName", "{top}");
}

#[test]
fn a_raw_dump_is_jemalloc_s_own_text() {
    let service = service("cstring-raw");
    leak(&service);
    let file = service.file("raw.heap");
    succeed(offheap().args(["dump", "--raw", &service.pid(), "-o"]).arg(&file), 0);
    let text = std::fs::read_to_string(&file).expect("it was written");
    assert!(text.starts_with("heap_v2/16384\n") && text.contains("MAPPED_LIBRARIES:"), "{:.100}", text);
}

#[test]
fn frag_and_purge_measure_and_give_back() {
    let service = service("cstring-frag");
    let frag = json(offheap().args(["frag", "--json", &service.pid()]));
    for key in ["index", "slab_waste", "cached", "unreturned", "metadata", "retained", "outside"] {
        assert!(frag[key].is_number(), "{key} in {frag}");
    }
    let parts: i64 = ["slab_waste", "large_padding"].iter().filter_map(|key| frag[key].as_i64()).sum();
    let lost = frag["active"].as_i64().zip(frag["allocated"].as_i64()).map(|(active, allocated)| active - allocated);
    assert_eq!(Some(parts), lost, "{frag}");
    let purge = json(offheap().args(["purge", "--json", &service.pid()]));
    assert!(purge["resident_after"].as_u64() <= purge["resident_before"].as_u64(), "{purge}");
}

#[test]
fn attach_without_a_terminal_prints_a_line_a_reading() {
    let service = service("cstring-attach");
    let output = succeed(offheap().args(["attach", &service.pid(), "--every", "100ms", "--count", "3"]), 0);
    let lines: Vec<String> = output.stdout.lines().map_while(Result::ok).collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines.iter().all(|line| line.contains(" rss ") && line.contains(" index 0.")), "{lines:#?}");

    // It ends in order when the host does.
    let mut attach = offheap()
        .args(["attach", &service.pid(), "--every", "100ms", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut lines = BufReader::new(attach.stdout.take().expect("a pipe")).lines();
    let first: Value = serde_json::from_str(&lines.next().expect("a line").expect("UTF-8")).expect("JSON");
    let rss: u64 = first["ledger"].as_array().expect("rows").iter().filter_map(|row| row["bytes"].as_u64()).sum();
    assert!(rss > 1 << 20, "{first}");
    drop(service);
    assert!(lines.all(|line| line.is_ok()));
    assert_eq!(attach.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_recording_ends_with_the_host_and_keeps_the_leak() {
    let service = service("cstring-record");
    leak(&service);
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let file = dir.path().join("series.jsonl");
    let mut record = offheap()
        .args(["record", &service.pid(), "--every", "50ms", "-o"])
        .arg(&file)
        .spawn()
        .expect("the command can be started");
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    while lines().len() < 4 {
        std::thread::yield_now();
    }
    drop(service);
    assert_eq!(record.wait().expect("it ends").code(), Some(0));
    let lines = lines();
    assert_eq!((&lines[0]["kind"], &lines[0]["schema"]), (&"header".into(), &"offheap.record/1".into()));
    assert_eq!(lines.last().expect("lines")["reason"], "the process ended");
    assert_eq!(lines[1]["sites"][0]["name"], "main.handleName", "{}", lines[1]["sites"]);
    let times: Vec<f64> = lines.iter().filter_map(|line| line["taken_at"].as_f64()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn doctor_reads_limits_and_go_settings_of_a_real_process() {
    let program = build("cstring", "cstring-doctor", &[], &[]);
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let mut child = offheap()
        .args(["run", "--agent"])
        .arg(crate::kit::agent())
        .args(["--malloc-conf", "dirty_decay_ms:-1", "--socket"])
        .arg(dir.path().join("s"))
        .arg("--")
        .arg(program)
        .env("GOGC", "off")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("the service prints its address");
    let findings = json(offheap().args(["doctor", "--json", &child.id().to_string()]));
    child.kill().and_then(|()| child.wait()).expect("it is ours");
    assert_eq!(findings["schema"], "offheap.doctor/1");
    let rows = findings["findings"].as_array().expect("a list");
    for id in ["gogc-off-without-limit", "dirty-pages-kept"] {
        let row = rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no {id} in {findings}"));
        assert!(["severity", "evidence", "why", "remedy"].iter().all(|key| row[key].is_string()), "{row}");
    }
}

#[test]
fn a_rule_that_holds_leaves_a_whole_file() {
    let service = service("cstring-trigger");
    leak(&service);
    let folder = service.file("dumps");
    let rules = json(
        offheap()
            .args(["trigger", &service.pid(), "--rss", "1MiB", "--index", "0.99", "--keep", "2", "--json", "--dir"])
            .arg(&folder),
    );
    let ids: Vec<u64> =
        rules["triggers"].as_array().expect("rules").iter().filter_map(|rule| rule["id"].as_u64()).collect();
    assert_eq!(ids.len(), 2, "{rules}");
    // The agent looks at its rules about once a second.
    let file = loop {
        let rules = json(offheap().args(["trigger", &service.pid(), "--json"]));
        if let Some(file) = rules["triggers"][0]["last_file"].as_str() {
            break file.to_owned();
        }
        assert!(rules["triggers"][0]["last_error"].is_null(), "{rules}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let top = json(offheap().args(["top", &file, "--by", "go", "--json", "-n", "1"]));
    assert_eq!(top["rows"][0]["name"], "main.handleName", "{top}");
    let left = json(
        offheap()
            .args(["trigger", &service.pid(), "--json", "--remove", &ids[0].to_string(), "--remove"])
            .arg(ids[1].to_string()),
    );
    assert_eq!(left["triggers"].as_array().map(Vec::len), Some(0), "{left}");
}
