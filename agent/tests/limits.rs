//! Hosts with little room, and hosts that leave what they were started with.

mod kit;

use kit::{Host, ask, await_that, compile, host, run, skip, under_agent};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// A limit that the host is started with.
type Limit = (libc::__rlimit_resource_t, u64);

fn limited(command: &mut Command, limits: &[Limit]) -> Output {
    let limits = limits.to_vec();
    // SAFETY: only setrlimit, which is async-signal-safe, on values that were copied before.
    unsafe {
        command.pre_exec(move || {
            for &(resource, value) in &limits {
                let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
                if libc::setrlimit(resource, &raw const limit) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    run(command, "")
}

/// The same with and without the agent, at rest and with every allocation of some size walked.
fn same_within(program: &Path, arguments: &[&str], limits: &[Limit]) {
    let plain = limited(Command::new(program).args(arguments), limits);
    assert_eq!(plain.stdout.as_slice(), b"ready\ndone\n", "{arguments:?} without the agent");
    for profile in ["", "8"] {
        let with = limited(under_agent(program).args(arguments).env("OFFHEAP_PROFILE", profile), limits);
        assert_eq!(
            (with.status.code(), &with.stdout, &with.stderr),
            (plain.status.code(), &plain.stdout, &plain.stderr),
            "{arguments:?} {limits:?} 2^{profile} ended by {:?}",
            std::os::unix::process::ExitStatusExt::signal(&with.status)
        );
    }
}

#[test]
fn small_stacks() {
    for mode in ["stack", "alternate", "coroutine"] {
        same_within(&host("tight"), &[mode], &[]);
    }
}

/// The unwinder makes no faults of its own: the host's handler would be asked about them.
#[test]
fn hosts_that_handle_their_faults() {
    same_within(&host("tight"), &["faults"], &[]);
}

#[test]
fn large_thread_local_storage() {
    // In the agent's own threads too: each of these leaves less of half a megabyte than the one before, or nothing.
    for bytes in ["450000", "510000", "5000000"] {
        let program = compile("tight", bytes, &["-O2", "-pthread", &format!("-DTLS={bytes}")]);
        same_within(&program, &["tls"], &[]);
        let mut running = Host::start(&program, &["tls"], &[("OFFHEAP_PROFILE", "8")]);
        assert_eq!(running.line(), "done", "{bytes}");
        for path in ["/v1/profile/heap", "/v1/profile/samples", "/v1/stats/jemalloc", "/v1/heap_map", "/metrics"] {
            assert_eq!(running.ask("GET", path).status, 200, "{path} with {bytes} bytes");
        }
        assert_eq!(running.end(), Some(8));
    }
}

#[test]
fn libraries_that_need_the_static_block() {
    let library = compile("local_library", ".so", &["-O2", "-shared", "-fPIC"]);
    same_within(&host("tight"), &["library", library.to_str().unwrap()], &[]);
}

#[test]
fn little_address_space_and_few_descriptors() {
    same_within(&host("tight"), &["memory"], &[(libc::RLIMIT_AS, 400 << 20)]);
    for descriptors in [5, 64, 1024] {
        same_within(&host("tight"), &["files"], &[(libc::RLIMIT_NOFILE, descriptors)]);
    }
    // Not even room for the tables of a recording.
    let limits = [(libc::RLIMIT_AS, 32 << 20), (libc::RLIMIT_NOFILE, 4)];
    let output = limited(under_agent(host("tight")).arg("stack").env("OFFHEAP_PROFILE", "8"), &limits);
    assert_eq!(output.stdout.as_slice(), b"ready\ndone\n", "{output:?}");
}

#[test]
fn no_thread_for_the_agent() {
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        skip("needs root to become a user of its own, who has no other processes");
        return;
    }
    let mut command = under_agent(host("tight"));
    command.arg("coroutine").env("OFFHEAP_PROFILE", "8").env("OFFHEAP_SOCKET", "/tmp/%p.none").uid(4_000_003);
    let output = limited(&mut command, &[(libc::RLIMIT_NPROC, 1)]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(8), b"ready\ndone\n".as_slice()), "{output:?}");
}

#[test]
fn a_host_whose_memory_ran_out_loses_its_agent_at_most() {
    let mut running = Host::start(&host("leaving"), &["memory"], &[("OFFHEAP_PROFILE", "10")]);
    let socket = running.socket().to_owned();
    assert_eq!(running.tell("go"), "done");
    // Whoever asks now may get an error, or no answer; what is asked for is more than there is.
    let clients: Vec<_> = ["/v1/profile/samples", "/v1/profile/heap", "/v1/heap_map", "/v1/stats/jemalloc"]
        .into_iter()
        .map(|path| {
            let socket = socket.clone();
            std::thread::spawn(move || {
                use std::io::{Read, Write};
                let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
                stream.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
                stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
                let _ = stream.read_to_end(&mut Vec::new());
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(running.tell("still there?"), "alive");
    assert_eq!(running.end(), Some(9));
}

/// Leaves by these ways, one after another, and is asked after each.
fn leaving(ways: &[&str], mut after: impl FnMut(&mut Host, &str)) {
    let mut running = Host::start(&host("leaving"), ways, &[("OFFHEAP_PROFILE", "8")]);
    for way in ways {
        assert_eq!(running.tell("go"), "done", "{way}");
        after(&mut running, way);
    }
    assert_eq!(running.tell("still there?"), "alive");
    assert_eq!(running.end(), Some(9), "{ways:?}");
}

#[test]
fn another_root_directory_and_another_user() {
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        skip("needs root to leave it");
        return;
    }
    leaving(&["root", "user"], |host, way| {
        // Without /proc there is no dump by jemalloc, and that is said; samples need none.
        let dump = host.ask("GET", "/v1/profile/heap");
        assert!(dump.status != 200 && dump.text().contains("/proc"), "{way}: {}", dump.text());
        for path in ["/v1/info", "/v1/stats", "/v1/profile/samples", "/metrics"] {
            assert_eq!(host.ask("GET", path).status, 200, "{way}: {path}");
        }
    });
}

#[test]
fn another_directory_and_other_namespaces() {
    leaving(&["directory", "namespace"], |host, way| {
        for path in ["/v1/profile/heap", "/v1/profile/samples"] {
            assert_eq!(host.ask("GET", path).status, 200, "{way}: {path}");
        }
    });
}

#[test]
fn a_namespace_that_is_entered() {
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        skip("needs root to enter a mount namespace");
        return;
    }
    leaving(&["entered", "entered"], |_, _| {});
}

#[test]
fn all_descriptors_closed() {
    leaving(&["files", "directory"], |host, _| {
        for path in ["/v1/profile/heap", "/v1/profile/samples"] {
            assert_eq!(host.ask("GET", path).status, 200, "the agent's descriptors are not the host's: {path}");
        }
    });
}

/// Runs a script in namespaces of its own, where it may mount; `$0` is the host, `$SOCKET` where its socket is to be.
fn with_mounts(script: &str, ask_for: &[&str]) -> Option<i32> {
    let probe = Command::new("unshare").args(["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip("needs unshare(1) and user namespaces in which one may mount");
        return None;
    }
    let directory = kit::SocketDir::new();
    let mut child = Command::new("unshare")
        .args(["-Urm", "sh", "-ec", script])
        .arg(host("leaving"))
        .env("AGENT", kit::agent())
        .env("SOCKET", directory.socket())
        .env("OFFHEAP_PROFILE", "8")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    if !ask_for.is_empty() {
        await_that("the socket", || std::os::unix::net::UnixStream::connect(directory.socket()).is_ok());
        for path in ask_for {
            assert_eq!(ask(&directory.socket(), "GET", path, "").status, 200, "{path}");
        }
    }
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout.as_slice(), b"ready\n");
    output.status.code()
}

#[test]
fn a_root_that_cannot_be_written() {
    // The socket's directory stays writable, as a volume of a container would be.
    let script =
        "mount --bind \"${SOCKET%/*}\" \"${SOCKET%/*}\"; mount -o remount,bind,ro /; ! touch /tmp/x 2>/dev/null
                  OFFHEAP_SOCKET=$SOCKET LD_PRELOAD=$AGENT exec \"$0\"";
    let asked = ["/v1/profile/heap", "/v1/profile/samples", "/v1/stats", "/v1/heap_map"];
    assert!(matches!(with_mounts(script, &asked), None | Some(9)));
}

#[test]
fn no_directory_for_temporary_files() {
    // Nothing in there and to be written by nobody; the socket is where it is by default. Programs stay within reach.
    let script = "mount -t tmpfs none /mnt; cp \"$0\" /mnt/host; cp \"$AGENT\" /mnt/liboffheap_agent.so
                  mount -t tmpfs -o ro none /tmp; LD_PRELOAD=/mnt/liboffheap_agent.so exec /mnt/host";
    assert!(matches!(with_mounts(script, &[]), None | Some(9)));
}
