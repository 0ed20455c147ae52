//! Programs that nobody here wrote do the same with and without the agent.

mod kit;

use kit::{agent, host, is_installed, run, under_agent};
use std::process::Command;

/// Output and exit code, plain and under the agent with every allocation path being sampled.
fn same(program: &str, arguments: &[&str], input: &str) {
    if !program.starts_with('/') && !is_installed(program) {
        kit::skip(&format!("{program} is not installed"));
        return;
    }
    let plain = run(Command::new(program).args(arguments), input);
    for environment in
        [&[][..], &[("OFFHEAP_PROFILE", "10")][..], &[("OFFHEAP_CHILDREN", "1"), ("OFFHEAP_PROFILE", "12")]]
    {
        let with = run(under_agent(program).args(arguments).envs(environment.iter().copied()), input);
        assert_eq!(plain.status.code(), with.status.code(), "{program} {arguments:?} {environment:?}");
        assert_eq!(
            String::from_utf8_lossy(&plain.stdout),
            String::from_utf8_lossy(&with.stdout),
            "{program} {arguments:?} {environment:?}"
        );
        assert_eq!(
            String::from_utf8_lossy(&plain.stderr),
            String::from_utf8_lossy(&with.stderr),
            "{program} {arguments:?} {environment:?}"
        );
    }
}

#[test]
fn shell() {
    same("bash", &["-c", "for i in 1 2 3; do echo $i | cat; done; (exit 3); echo $?; exit 9"], "");
    let unset = run(under_agent("sh").args(["-c", "echo ${LD_PRELOAD-unset}; exit 4"]), "");
    assert_eq!((unset.stdout.as_slice(), unset.status.code()), (b"unset\n".as_slice(), Some(4)));
}

#[test]
fn coreutils() {
    same("ls", &["-la", "/usr"], "");
    same("sort", &[], &(0..20000).map(|n| format!("{}\n", n * 7919 % 20011)).collect::<String>());
    same("ls", &["/no/such/place"], "");
}

#[test]
fn python() {
    same("python3", &["-m", "json.tool"], r#"{"b": [1, 2.5, "ü"], "a": {"c": null}}"#);
    same("python3", &["-m", "json.tool"], "{broken");
    same(
        "python3",
        &[
            "-c",
            "import os,subprocess,threading\nprint(subprocess.run(['echo','x'],capture_output=True).stdout)\n\
           p=os.fork()\nif p==0: os._exit(5)\nprint(os.waitstatus_to_exitcode(os.waitpid(p,0)[1]))\n\
           print(open(0,closefd=False).fileno(), os.open('/dev/null',0))",
        ],
        "",
    );
}

#[test]
fn perl_with_fork() {
    same(
        "perl",
        &[
            "-e",
            "my $p=fork; if(!$p){my @a=(1..100000); exit 3} waitpid($p,0); print $?>>8,qq{\\n}; print `echo hi`; exit 2",
        ],
        "",
    );
}

#[test]
fn git() {
    same("git", &["--version"], "");
    same("git", &["-C", env!("CARGO_MANIFEST_DIR"), "log", "-3", "--stat"], "");
    same("git", &["-C", "/", "rev-parse", "--git-dir"], "");
}

#[test]
fn threads_in_c() {
    same(host("threads").to_str().unwrap(), &[], "");
}

#[test]
fn namespaces_that_need_a_single_thread() {
    same("unshare", &["--user", "--map-root-user", "id", "-u"], "");
    same("unshare", &["--user", "--mount", "true"], "");
    let enter = "import ctypes,os,time\ntime.sleep(0.2)\nc=ctypes.CDLL(None,use_errno=True)\n\
                 print(c.unshare(0x10000000), ctypes.get_errno(), len(os.listdir('/proc/self/task'))>0)";
    same("python3", &["-c", enter], "");
}

#[test]
fn it_can_be_switched_off() {
    let with = run(under_agent("sh").args(["-c", "echo ok"]).env("OFFHEAP", "off"), "");
    assert_eq!(with.stdout, b"ok\n");
    assert!(with.stderr.is_empty());
}

#[test]
fn children_get_the_agent_only_when_asked() {
    let count = "grep -c offheap_agent /proc/self/maps || true";
    let without = run(under_agent("bash").args(["-c", count]), "");
    assert_eq!(without.stdout, b"0\n");
    let with = run(under_agent("bash").args(["-c", count]).env("OFFHEAP_CHILDREN", "1"), "");
    assert_ne!(with.stdout, b"0\n");
}

#[test]
fn other_preloads_stay() {
    let other = "libdl.so.2";
    let preload = format!("{}:{other}", agent().display());
    let output = run(Command::new("bash").args(["-c", "echo $LD_PRELOAD"]).env("LD_PRELOAD", preload), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), other);
}
