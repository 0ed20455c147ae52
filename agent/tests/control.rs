//! The control socket.

mod kit;

use kit::{Host, SocketDir, ask, await_that, compile, host, read_answer, run, under_agent};
use offheap_wire::{Info, ProfileState, Purge, SampleTable, Stats, Triggers};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn start(environment: &[(&str, &str)]) -> Host {
    Host::start(&host("interactive"), &[], environment)
}

fn read<T: serde::de::DeserializeOwned>(host: &Host, method: &str, path: &str) -> T {
    serde_json::from_value(host.json(method, path)).unwrap()
}

#[test]
fn info_says_who_it_is() {
    let host = start(&[]);
    let info: Info = read(&host, "GET", "/v1/info");
    assert_eq!(info.schema, "offheap.info/1");
    assert_eq!(info.pid, host.pid());
    assert!(info.exe.unwrap().ends_with("interactive"));
    assert!(info.jemalloc_version.starts_with("5.3.1"));
    assert_eq!(info.socket, host.socket().to_str().unwrap());
    assert_eq!(info.jemalloc.opt["dirty_decay_ms"], "1000");
    assert_eq!(info.jemalloc.opt["prof"], "true");
    assert!(info.profile.available && !info.profile.active && info.profile.prof_unbias);
    assert_eq!(info.profile.lg_sample, 19);
}

#[test]
fn the_users_malloc_conf_wins() {
    let host = start(&[("MALLOC_CONF", "lg_prof_sample:14,dirty_decay_ms:5,prof_unbias:false")]);
    let info: Info = read(&host, "GET", "/v1/info");
    assert_eq!(info.profile.lg_sample, 14);
    assert!(!info.profile.prof_unbias);
    assert_eq!(info.jemalloc.opt["dirty_decay_ms"], "5");
    assert_eq!(info.jemalloc.opt["muzzy_decay_ms"], "1000");
}

#[test]
fn stats_add_up_and_move() {
    let mut host = start(&[]);
    let before: Stats = read(&host, "GET", "/v1/stats");
    host.tell("leak 3000 10000");
    let held = 10_000 * 3072; // 3000 bytes live in the 3072-byte class
    let mut after = before.clone();
    await_that("new statistics", || {
        after = read(&host, "GET", "/v1/stats");
        // The agent's own memory for the first answer may be gone by the second.
        after.allocated.unwrap() + (1 << 20) >= before.allocated.unwrap() + held
    });
    let class = |stats: &Stats| stats.bins.iter().find(|bin| bin.size == 3072).unwrap().curregs;
    assert!(class(&after) - class(&before) >= 10_000);
    assert!(after.rss.unwrap() > held && after.page_size.unwrap() >= 4096);
    assert!(after.arenas.iter().any(|arena| arena.agent), "the agent's own arena is told apart");
    assert!(host.json("GET", "/v1/stats/jemalloc")["jemalloc"]["stats"]["allocated"].as_u64().unwrap() > held);
    let metrics = host.ask("GET", "/metrics").text();
    for name in ["jemalloc_allocated_bytes ", "jemalloc_retained_bytes ", "offheap_fragmentation_index 0."] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name}\n{metrics}");
    }
}

#[test]
fn profiling_starts_stops_resets_and_dumps() {
    let mut host = start(&[]);
    let state: ProfileState = read(&host, "POST", "/v1/profile/start?lg_sample=12");
    assert!(state.active && state.lg_sample == 12 && state.recording_since.is_some());
    host.tell("leak 4000 5000");
    let stopped: ProfileState = read(&host, "POST", "/v1/profile/stop");
    assert!(!stopped.active && stopped.recording_since == state.recording_since);
    let dump = host.ask("GET", "/v1/profile/heap").text();
    assert!(dump.starts_with("heap_v2/4096\n"), "{}", &dump[..100]);
    assert!(dump.contains("\nMAPPED_LIBRARIES:\n") && dump.contains("interactive"));
    let bytes: u64 = dump.lines().nth(1).unwrap().split(' ').nth(4).unwrap().parse().unwrap();
    assert!((10_000_000..40_000_000).contains(&bytes), "{bytes} of 20,480,000");
    // jemalloc's frames are left out: the leaf is the program's own call of malloc.
    let agent = dump.lines().find(|line| line.contains(" r-xp ") && line.ends_with("liboffheap_agent.so")).unwrap();
    let (low, high) = agent.split(' ').next().unwrap().split_once('-').unwrap();
    let range = u64::from_str_radix(low, 16).unwrap()..u64::from_str_radix(high, 16).unwrap();
    for stack in dump.lines().filter(|line| line.starts_with("@ ")) {
        let frames = stack.split(' ').skip(1).map(|at| u64::from_str_radix(at.trim_start_matches("0x"), 16).unwrap());
        assert!(frames.clone().count() >= 3, "{stack}");
        assert!(frames.clone().all(|at| !range.contains(&at)), "{stack}");
    }
    let info: Info = read(&host, "GET", "/v1/info");
    assert_eq!(info.agent.dumps, 1);
    assert_eq!(info.agent.stack_ends["root"], info.agent.stacks, "{:?}", info.agent);
    read::<ProfileState>(&host, "POST", "/v1/profile/reset");
    let dump = host.ask("GET", "/debug/pprof/jemalloc/dump").text();
    assert!(!dump.lines().any(|line| line.starts_with("@ ")), "{dump}");
    assert!(read::<ProfileState>(&host, "GET", "/debug/pprof/jemalloc/start").active);
    assert!(!read::<ProfileState>(&host, "GET", "/debug/pprof/jemalloc/stop").active);
}

#[test]
fn a_client_that_waits_to_be_told_is_told_to_go_on() {
    let host = start(&[]);
    let mut stream = UnixStream::connect(host.socket()).unwrap();
    let head = "PUT /v1/mallctl/arena.0.dirty_decay_ms HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"777").unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!((answer.status, answer.text().contains("777")), (200, true), "{}", answer.text());
}

#[test]
fn clients_that_ask_at_once_share_one_table() {
    const CLIENTS: usize = 40;
    let mut host = start(&[("OFFHEAP_PROFILE", "10")]);
    host.tell("leak 1000 3000");
    let ask = |host: &Host| read::<SampleTable>(host, "GET", "/v1/profile/samples");
    let tables: Vec<SampleTable> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| ask(&host))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(tables.iter().all(|table| table.pid == host.pid() && !table.sites.is_empty()));
    let made: BTreeSet<u64> = tables.iter().map(|table| table.taken_at.to_bits()).collect();
    assert!(made.len() <= CLIENTS / 2, "{} tables were made for {CLIENTS} clients", made.len());
    // What is asked for later is as of later.
    host.tell("free");
    let live = |table: &SampleTable| table.sites.iter().map(|site| site.live.len()).sum::<usize>();
    assert!(live(&ask(&host)) + 1000 < live(&tables[0]));
}

#[test]
fn samples_are_exact_and_go_when_freed() {
    let mut host = start(&[]);
    let state: ProfileState = read(&host, "POST", "/v1/profile/start?lg_sample=10");
    host.tell("leak 100000 300");
    let table: SampleTable = read(&host, "GET", "/v1/profile/samples");
    assert_eq!((table.schema.as_str(), table.lg_sample), ("offheap.samples/1", 10));
    assert_eq!((table.pid, table.recording_since), (host.pid(), state.recording_since));
    let leaked = |table: &SampleTable| {
        let live = table.sites.iter().flat_map(|site| &site.live);
        live.filter(|sample| sample.size == 100_000 && sample.usable >= 100_000).count()
    };
    // At 1 KiB a sample, each allocation of 100,000 bytes is one, but for those before the first threshold that was
    // drawn at the earlier rate.
    assert!((250..=300).contains(&leaked(&table)), "{}", leaked(&table));
    let site = table.sites.iter().max_by_key(|site| site.live.len()).unwrap();
    assert!(site.stack.len() >= 6 && site.alloc_samples >= 250, "{site:?}");
    assert!(site.live.iter().all(|sample| sample.age >= 0.0 && sample.age < 60.0));
    assert!(table.threads.contains_key(&u64::from(host.pid())), "{:?}", table.threads);
    let exe = table.modules.iter().find(|module| module.path.ends_with("interactive")).unwrap();
    assert!(exe.build_id.len() == 40 && site.stack.iter().any(|at| (exe.start..exe.end).contains(at)), "{exe:?}");
    assert!(table.maps.contains("liboffheap_agent.so"));
    host.tell("free");
    let table: SampleTable = read(&host, "GET", "/v1/profile/samples");
    assert_eq!(leaked(&table), 0);
    assert!(table.sites.iter().any(|site| site.alloc_samples >= 250), "cumulative counts stay");
    read::<ProfileState>(&host, "POST", "/v1/profile/reset");
    let info: Info = read(&host, "GET", "/v1/info");
    assert_eq!((info.agent.samples_live, info.agent.samples_dropped), (0, 0));
}

#[test]
fn the_first_allocations_of_the_main_thread_are_sampled_at_the_rate_asked_for() {
    // 200 KiB at a sample per KiB: were the first distance still the one drawn at 512 KiB, two runs of three would see
    // nothing at all, and hardly one would see most of it.
    for _ in 0..4 {
        let mut host = start(&[("OFFHEAP_PROFILE", "10")]);
        host.tell("leak 2048 100");
        let table: SampleTable = read(&host, "GET", "/v1/profile/samples");
        let live = table.sites.iter().flat_map(|site| &site.live).filter(|sample| sample.size == 2048).count();
        // A sample is taken of 1 - e^-2 of them, 86 of 100.
        assert!((60..=100).contains(&live), "{live}");
    }
}

#[test]
fn triggers_write_whole_files_and_keep_few() {
    let directory = tempfile::tempdir().unwrap();
    let mut host = start(&[]);
    let rule = format!("rss>1M,every=0,keep=2,dir={}; rss>900T", directory.path().display());
    let answer = ask(host.socket(), "POST", "/v1/triggers", &rule);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(read::<Info>(&host, "GET", "/v1/info").profile.active, "a trigger needs a recording");
    host.tell("leak 1000000 20");
    let fired = |host: &Host| read::<Triggers>(host, "GET", "/v1/triggers").triggers[0].fired;
    await_that("four files", || fired(&host) >= 4);
    let list: Triggers = read(&host, "GET", "/v1/triggers");
    assert_eq!(list.triggers[1].fired, 0);
    assert!(list.triggers[0].value > Some(1048576.0) && list.triggers[0].threshold == 1048576.0);
    let answer = ask(host.socket(), "DELETE", &format!("/v1/triggers/{}", list.triggers[0].id), "");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let files = || {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    await_that("the last file's end", || files().iter().all(|path| !path.to_string_lossy().contains(".partial")));
    await_that("old files to go", || files().len() <= 2);
    for path in files() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.contains(&format!("-{}-", host.pid())) && name.ends_with("-rss.samples.json"), "{name}");
        let table: SampleTable = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(!table.modules.is_empty() && !table.maps.is_empty());
    }
    assert_eq!(ask(host.socket(), "DELETE", "/v1/triggers/99", "").status, 404);
    let answer = ask(host.socket(), "POST", "/v1/triggers", "rss>lots");
    assert!(answer.status == 400 && answer.text().contains("1.5G"), "{}", answer.text());
}

#[test]
fn a_trigger_can_come_from_the_environment_and_needs_no_socket() {
    let directory = tempfile::tempdir().unwrap();
    let rule = format!("allocated>10M,every=1000,dir={}", directory.path().display());
    let mut child = under_agent(host("interactive"))
        .env("OFFHEAP_TRIGGER", rule)
        .env("OFFHEAP_SOCKET", "/no/such/directory/socket")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(b"leak 1000000 20\n").unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    await_that("a file", || {
        std::fs::read_dir(directory.path()).unwrap().map(name).any(|name| name.ends_with("-allocated.samples.json"))
    });
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn the_environment_can_start_profiling() {
    let host = start(&[("OFFHEAP_PROFILE", "13")]);
    let info: Info = read(&host, "GET", "/v1/info");
    assert!(info.profile.active && info.profile.lg_sample == 13);
    let host = start(&[("OFFHEAP_PROFILE", "1")]);
    let info: Info = read(&host, "GET", "/v1/info");
    assert!(info.profile.active && info.profile.lg_sample == 19);
}

#[test]
fn without_profiling_the_answer_says_why() {
    let host = start(&[("MALLOC_CONF", "prof:false")]);
    for (method, path) in [("POST", "/v1/profile/start"), ("GET", "/v1/profile/heap")] {
        let answer = host.ask(method, path);
        assert_eq!(answer.status, 409);
        assert!(answer.text().contains("prof:false"), "{}", answer.text());
    }
}

#[test]
fn a_library_loaded_while_recording_is_unwound() {
    let library = compile("library", ".so", &["-O2", "-shared", "-fPIC"]);
    let mut host = start(&[("OFFHEAP_PROFILE", "10")]);
    let load = format!("dlopen {}", library.display());
    assert_eq!(host.tell(&load), "loaded");
    // The first calls may come before the agent thread has seen the library; later ones are whole.
    await_that("whole stacks through the library", || {
        let info: Info = read(&host, "GET", "/v1/info");
        let before = info.agent.stack_ends["root"];
        host.tell(&load);
        let info: Info = read(&host, "GET", "/v1/info");
        info.agent.stack_ends["root"] >= before + 90
    });
}

#[test]
fn purge_gives_pages_back() {
    let mut host = start(&[("MALLOC_CONF", "dirty_decay_ms:-1,muzzy_decay_ms:-1")]);
    host.tell("leak 100000 1000");
    host.tell("free");
    let purge: Purge = read(&host, "POST", "/v1/purge");
    assert!(purge.resident_before >= purge.resident_after + 50_000_000, "{purge:?}");
    assert!(purge.rss_after < purge.rss_before, "{purge:?}");
}

#[test]
fn mallctl_reads_anything_and_writes_little() {
    let host = start(&[]);
    assert_eq!(host.json("GET", "/v1/mallctl/opt.prof")["value"], true);
    let answer = ask(host.socket(), "PUT", "/v1/mallctl/arenas.dirty_decay_ms", "123");
    assert_eq!((answer.status, answer.text().contains("123")), (200, true), "{}", answer.text());
    let answer = ask(host.socket(), "PUT", "/v1/mallctl/thread.arena", "1");
    assert_eq!(answer.status, 404);
    let answer = ask(host.socket(), "PUT", "/v1/mallctl/opt.abort", "true");
    assert_eq!((answer.status, answer.text().contains("can be set")), (403, false), "{}", answer.text());
}

#[test]
fn errors_are_named() {
    let host = start(&[]);
    for (method, path, status, part) in [
        ("GET", "/v1/nothing", 404, "/v1/stats"),
        ("DELETE", "/v1/stats", 405, "GET"),
        ("POST", "/v1/profile/start?lg_sample=512k", 400, "512k"),
        ("POST", "/v1/profile/start?lg_sample=99", 400, "99"),
    ] {
        let answer = host.ask(method, path);
        assert_eq!(answer.status, status, "{path}");
        let body: offheap_wire::ErrorBody = serde_json::from_slice(&answer.body).unwrap();
        assert!(body.error.contains(part), "{}", body.error);
    }
    let mut stream = UnixStream::connect(host.socket()).unwrap();
    stream.write_all(b"\x16\x03\x01 not http\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut stream).status, 400);
}

#[test]
fn heads_are_asked_for_alone() {
    let host = start(&[]);
    let mut stream = UnixStream::connect(host.socket()).unwrap();
    stream.write_all(b"HEAD http://offheap/metrics HTTP/1.1\r\nHost: offheap\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Type: text/plain"), "{head}");
    assert!(head.contains("Content-Length: ") && !head.contains("Content-Length: 0"), "{head}");
    assert_eq!(body, "");
}

#[test]
fn idle_and_dying_clients_hinder_nobody() {
    let host = start(&[]);
    let descriptors = || kit::descriptors(host.pid());
    let threads = || std::fs::read_dir(format!("/proc/{}/task", host.pid())).unwrap().count();
    host.json("GET", "/v1/stats");
    await_that("workers to end", || threads() <= 3);
    let (descriptors_before, threads_before) = (descriptors(), threads());
    let mut idle = Vec::new();
    for index in 0..500 {
        let Ok(mut stream) = UnixStream::connect(host.socket()) else { break };
        match index % 4 {
            0 => {}
            1 => stream.write_all(b"GET /v1/st").unwrap(),
            2 => stream.write_all(b"GET /v1/info HTTP/1.1\r\n\r\n").unwrap(),
            _ => drop(stream.write_all(b"GET /v1/stats/jemalloc HTTP/1.1\r\n\r\n")),
        }
        if index % 8 == 7 {
            drop(stream);
        } else {
            idle.push(stream);
        }
        if index % 100 == 99 {
            host.json("GET", "/v1/info");
        }
    }
    let most = std::fs::read_dir(format!("/proc/{}/task", host.pid())).unwrap().count();
    assert!(most <= 8, "{most} threads");
    drop(idle);
    await_that("descriptors to be closed", || descriptors() <= descriptors_before);
    await_that("workers to end", || threads() <= threads_before);
    assert_eq!(host.end(), Some(7));
}

#[test]
fn a_slow_reader_of_a_dump_delays_no_other() {
    let mut host = start(&[("OFFHEAP_PROFILE", "6")]);
    host.tell("leak 100 20000");
    let mut slow = UnixStream::connect(host.socket()).unwrap();
    slow.write_all(b"GET /v1/stats/jemalloc HTTP/1.1\r\n\r\n").unwrap();
    let begin = Instant::now();
    for _ in 0..20 {
        host.json("GET", "/v1/stats");
    }
    // Not a measurement: a server that waited for the slow client would take its stall limit of ten seconds.
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(read_answer(&mut slow).status, 200);
}

#[test]
fn the_default_socket_is_private_and_removed_at_exit() {
    let program = host("interactive");
    let mut child = under_agent(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // SAFETY: no preconditions.
    let uid = unsafe { libc::geteuid() };
    let directory = format!("/tmp/offheap-{uid}");
    let socket = format!("{directory}/{}.sock", child.id());
    await_that("the default socket", || UnixStream::connect(&socket).is_ok());
    assert_eq!(std::fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().mode() & 0o777, 0o600);
    await_that("an answer", || ask(Path::new(&socket), "GET", "/v1/info", "").status == 200);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert!(!Path::new(&socket).exists());
}

#[test]
fn what_is_in_the_socks_way_is_kept_and_the_host_runs_on() {
    let directory = SocketDir::new();
    let too_long = format!("/tmp/{}", "x".repeat(200));
    let file = directory.socket();
    std::fs::write(&file, "precious").unwrap();
    let live = directory.socket().with_extension("live");
    let _listener = UnixListener::bind(&live).unwrap();
    let missing = "/no/such/directory/socket";
    for path in [too_long.as_str(), file.to_str().unwrap(), live.to_str().unwrap(), missing] {
        let mut child = under_agent(host("interactive"))
            .env("OFFHEAP_SOCKET", path)
            .env("OFFHEAP_LOG", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut log).unwrap();
        assert!(log.starts_with("offheap: no control socket"), "{path}: {log}");
        child.stdin.take().unwrap().write_all(b"leak 1000 1000\nthreads 2\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{path}");
        assert_eq!(output.stdout, b"ready\nleaked\njoined\n");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(live.exists());
}

#[test]
fn a_forked_child_allocates_and_has_no_socket() {
    let mut host = start(&[("OFFHEAP_PROFILE", "10")]);
    for _ in 0..20 {
        assert_eq!(host.tell("fork"), "child 42");
    }
    host.json("GET", "/v1/info");
}

#[test]
fn a_host_that_closes_everything_keeps_its_descriptors() {
    let mut host = start(&[("OFFHEAP_PROFILE", "10")]);
    assert_eq!(host.tell("close"), "closed");
    assert_eq!(host.tell("leak 1000 1000"), "leaked");
    assert_eq!(host.ask("GET", "/v1/profile/heap").status, 200, "the agent has a table of its own");
    assert_eq!(host.tell("leak 1000 1000"), "leaked");
    assert_eq!(host.end(), Some(7));
}

#[test]
fn the_agent_takes_no_descriptor_of_its_hosts() {
    let listed = |pid: u32| {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect::<BTreeSet<u32>>()
    };
    let mut plain = Command::new(host("interactive")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(plain.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let (expected, mut host) = (listed(plain.id()), start(&[("OFFHEAP_PROFILE", "10")]));
    let with = listed(host.pid());
    // One end of a pair, out of the way of the numbers that a host gets.
    let more: Vec<_> = with.difference(&expected).collect();
    assert!(expected.is_subset(&with) && more.len() == 1 && *more[0] >= 700, "{more:?}");
    let _clients: Vec<_> = (0..50).map(|_| UnixStream::connect(host.socket()).unwrap()).collect();
    host.json("GET", "/v1/info");
    assert_eq!(listed(host.pid()), with);
    assert_eq!(host.tell("fork"), "child 42");
    drop(plain.stdin.take());
    plain.wait().unwrap();
}

#[test]
fn another_user_is_refused_with_a_reason() {
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        kit::skip("needs root to become another user");
        return;
    }
    let (host_uid, peer_uid) = (4_000_001, 4_000_002);
    let directory = SocketDir::new();
    let socket = directory.socket();
    std::fs::set_permissions(socket.parent().unwrap(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut child = under_agent("sleep").arg("1000").env("OFFHEAP_SOCKET", &socket).uid(host_uid).spawn().unwrap();
    await_that("the socket", || UnixStream::connect(&socket).is_ok());
    assert_eq!(ask(&socket, "GET", "/v1/info", "").status, 200, "root is admitted");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    let client = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                  s.sendall(b'GET /v1/info HTTP/1.1\\r\\n\\r\\n')\nsys.stdout.write(s.makefile().read())";
    let output = run(Command::new("python3").args(["-c", client]).arg(&socket).uid(peer_uid), "");
    child.kill().unwrap();
    child.wait().unwrap();
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}{}", String::from_utf8_lossy(&output.stderr));
    assert!(answer.contains("uid 4000001") && answer.contains("uid 4000002"), "{answer}");
    assert!(!answer.contains("jemalloc"), "{answer}");
}
