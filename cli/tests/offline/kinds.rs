//! Inputs of the kinds of `testdata/field` that are not in it: what is said about each, how the command ends, and that a
//! result is written or nothing.

use crate::kit::{offheap, read, scratch, text};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Two stacks of three objects each.
const DUMP: &str = "heap_v2/524288
  t*: 6: 4145152 [0: 0]
  t0: 3: 12288 [0: 0]
  t3: 3: 4132864 [0: 0] worker
@ 0x7f10c0020111 0x55d0a0030333
  t*: 3: 12288 [0: 0]
  t0: 3: 12288 [0: 0]
@ 0x7f10c0020555 0x55d0a0030444
  t*: 3: 4132864 [0: 0]
  t3: 3: 4132864 [0: 0]

MAPPED_LIBRARIES:
55d0a0020000-55d0a00c0000 r-xp 00010000 fd:01 4242                       /srv/demo/bin/ledgerd
7f10c0010000-7f10c0090000 r-xp 00010000 fd:01 9001                       /usr/lib/libpebblestore.so.3
";
/// Its bytes in use, corrected.
const WHOLE: i64 = 6_033_740;
/// Those of the first stack alone, and of the second.
const FIRST: i64 = 1_579_016;
const SECOND: i64 = 4_454_724;

const LEGACY: &str = "heap profile:      6:  4145152 [     6:  4145152] @ heap_v2/524288
     3:    12288 [     3:    12288] @ 0x7f10c0020111 0x55d0a0030333
     3:  4132864 [     3:  4132864] @ 0x7f10c0020555 0x55d0a0030444
MAPPED_LIBRARIES:
55d0a0020000-55d0a00c0000 r-xp 00010000 fd:01 4242                       /srv/demo/bin/ledgerd
";

/// What is made of an input: exit code, bytes in use where there is a profile, and what must be said.
struct Row<'a> {
    label: &'a str,
    file: &'a str,
    bytes: Vec<u8>,
    code: i32,
    total: Option<i64>,
    said: &'a [&'a str],
}

fn row<'a>(label: &'a str, bytes: impl AsRef<[u8]>, code: i32, total: i64, said: &'a [&'a str]) -> Row<'a> {
    Row { label, file: "in.heap", bytes: bytes.as_ref().to_vec(), code, total: Some(total), said }
}

fn refused<'a>(label: &'a str, bytes: impl AsRef<[u8]>, said: &'a [&'a str]) -> Row<'a> {
    Row { total: None, ..row(label, bytes, 1, 0, said) }
}

fn folded<'a>(label: &'a str, text: &str, code: i32, total: i64, said: &'a [&'a str]) -> Row<'a> {
    Row { file: "in.folded", ..row(label, text, code, total, said) }
}

#[track_caller]
fn check(rows: &[Row<'_>]) {
    let folder = scratch();
    for Row { label, file, bytes, code, total, said } in rows {
        let (input, out) = (folder.path().join(file), folder.path().join("out.pb.gz"));
        let _ = std::fs::remove_file(&out);
        std::fs::write(&input, bytes).expect("the folder can be written");
        let run = offheap(&["convert", text(&input), "-o", text(&out)]);
        assert_eq!(run.code, Some(*code), "{label}: {}", run.stderr);
        assert_eq!(out.exists(), total.is_some(), "{label}: a file is written unless the command failed");
        let run = run.mentions(said);
        assert!(*code == 0 || run.stderr.contains(file), "{label}: the input is named: {}", run.stderr);
        let Some(total) = total else { continue };
        let top = offheap(&["top", text(&out), "--json"]);
        let json: serde_json::Value = serde_json::from_str(&top.stdout).expect("JSON");
        assert_eq!(json["total"], *total, "{label}");
        // Nothing is left beside the result.
        assert_eq!(std::fs::read_dir(folder.path()).expect("it exists").count(), 2, "{label}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    gzip_at(Compression::fast(), bytes)
}

fn gzip_at(level: Compression, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

/// The dump with one thing replaced everywhere.
fn with(from: &str, to: &str) -> String {
    assert!(DUMP.contains(from), "{from}");
    DUMP.replace(from, to)
}

/// The dump up to the end of this text.
fn up_to(end: &str) -> &'static str {
    &DUMP[..DUMP.find(end).expect("it is there") + end.len()]
}

#[test]
fn dumps_that_are_cut() {
    // The headers of gzip and of a block that is stored as it is take 15 bytes.
    let first_stack = 15 + DUMP.find("@ 0x7f10c0020555").expect("it is there");
    check(&[
        refused("in the name of the format", up_to("heap_"), &["text that begins with `heap_`"]),
        refused("before the rate", up_to("heap_v2/"), &["no sampling period", "`heap_v2/524288`"]),
        row("in a thread of the header", up_to("t3: 3: 41"), 4, 0, &["line 4", "cut"]),
        row("in an address", up_to("0x7f10c0020111 0x55d0"), 4, 0, &["line 5: this stack is not whole"]),
        row(
            "between two stacks",
            &DUMP[..DUMP.find("@ 0x7f10c0020555").expect("it is there")],
            4,
            FIRST,
            &["the dump is cut"],
        ),
        row("in counts", up_to("  t*: 3: 4132864 [0"), 4, FIRST, &["line 9"]),
        row("in the heading of the maps", up_to("\nMAPPED_LIB"), 4, FIRST + SECOND, &["cut"]),
        row("in a permission", up_to("55d0a00c0000 r-"), 4, WHOLE, &["line 13: the map section is cut"]),
        row("in a path", up_to("/usr/lib/libpebb"), 4, WHOLE, &["line 14: the map section is cut"]),
        row(
            "compressed and cut",
            &gzip_at(Compression::none(), DUMP.as_bytes())[..first_stack],
            4,
            FIRST,
            &["the gzip stream is cut"],
        ),
        refused("in a table of names", "--- symbol\nbinary=/srv/app\n0x7f10 f", &["cut inside the table of names"]),
        refused(
            "behind a table of names",
            "--- symbol\nbinary=/srv/app\n0x7f10 f\n---\n--- heap\n",
            &["no heap follows", "jeprof --raw"],
        ),
        refused("in the header of the older form", &LEGACY[..30], &["no whole header", "heap_v2/524288"]),
        row(
            "in a line of the older form",
            &LEGACY[..LEGACY.find("555").expect("it is there")],
            4,
            FIRST,
            &["line 3", "cut"],
        ),
    ]);
}

#[test]
fn dumps_in_odd_wrappings() {
    let three = [&DUMP[..100], &DUMP[100..300], &DUMP[300..]].map(|part| gzip(part.as_bytes())).concat();
    let many_names: String =
        (0..30_000).map(|n| format!("0x{n:x} some::function_{n}(unsigned long, char const*)\n")).collect();
    assert!(many_names.len() > 1 << 20);
    check(&[
        row("three members", three, 0, WHOLE, &[]),
        row("compressed twice", gzip(&gzip(DUMP.as_bytes())), 0, WHOLE, &[]),
        row("text after the gzip stream", [gzip(DUMP.as_bytes()), b"text".to_vec()].concat(), 4, WHOLE, &["gzip"]),
        row("byte order mark and CRLF", format!("\u{feff}{}", DUMP.replace('\n', "\r\n")), 0, WHOLE, &[]),
        row("log lines", format!("INFO a\n\nWARN b\n{DUMP}"), 0, WHOLE, &["skipped 3 lines before the header"]),
        row(
            "a mark after a log line",
            format!("INFO\n\u{feff}{DUMP}"),
            0,
            WHOLE,
            &["skipped 1 line before the header"],
        ),
        row(
            "a log line in the middle",
            with("@ 0x7f10c0020555", "INFO x\n@ 0x7f10c0020555"),
            4,
            WHOLE,
            &["line 8", "INFO x"],
        ),
        row(
            "names larger than a megabyte",
            format!("--- symbol\nbinary=/a\n{many_names}---\n--- heap\n{DUMP}"),
            0,
            WHOLE,
            &[],
        ),
        row("two dumps in a file", DUMP.repeat(2), 4, WHOLE, &["line 15: a second profile begins here"]),
        row(
            "two dumps without maps",
            up_to("t3: 3: 4132864 [0: 0]\n\n").repeat(2),
            4,
            WHOLE,
            &["a second profile begins here"],
        ),
        refused("UTF-16", [&b"\xff\xfe"[..], b"h\0e\0"].concat(), &["UTF-16", "UTF-8"]),
    ]);
}

#[test]
fn rates_and_numbers_at_their_limits() {
    check(&[
        row("a rate of 1", with("524288", "1"), 0, 4_145_152, &[]),
        row("a rate as people write it", with("524288", "512k"), 0, WHOLE, &[]),
        refused("a rate that is none", with("524288", "524288abc"), &["no sampling period", "`heap_v2/524288abc`"]),
        refused("a negative rate", with("524288", "-1"), &["no sampling period"]),
        row(
            "a rate near 2^63",
            with("524288", "9223372036854775807"),
            4,
            0,
            &["line 6: numbers that cannot be", "2^60"],
        ),
        row(
            "a counter below zero",
            with("3: 12288", "3: 18446744073709539328"),
            4,
            SECOND,
            &["line 6: numbers that cannot be"],
        ),
        row(
            "more digits than fit",
            with("3: 12288", "3: 99999999999999999999999"),
            4,
            SECOND,
            &["line 6: numbers that cannot be"],
        ),
        row("the older form, in k", LEGACY.replace("524288", "512k"), 0, WHOLE, &[]),
        row(
            "the older form, as gperftools had it first",
            LEGACY.replace("heap_v2/524288", "heap/1048576"),
            0,
            WHOLE,
            &[],
        ),
        row("the older form, not sampled", LEGACY.replace("heap_v2/524288", "heapprofile"), 0, 4_145_152, &[]),
        row(
            "a bare stack",
            "heap_v2/524288\n  t*: 3: 12288 [0: 0]\n@\n  t*: 3: 12288 [0: 0]\n\nMAPPED_LIBRARIES:\n",
            0,
            FIRST,
            &["at most one frame", "unwinding was broken"],
        ),
    ]);
}

#[test]
fn odd_map_lines_and_thread_names() {
    let maps = |lines: &str| format!("{}\nMAPPED_LIBRARIES:\n{lines}", up_to("t3: 3: 4132864 [0: 0]\n"));
    check(&[
        row("names that look like lines", with("worker", "@ t9: 3: 4 [0: 0] \u{1b}[31m;x"), 0, WHOLE, &[]),
        row(
            "pseudo files",
            maps("55d0a0020000-55d0a00c0000 r-xs 00000000 00:01 18446744073709551615 /memfd:a b (deleted)\n"),
            0,
            WHOLE,
            &[],
        ),
        row(
            "a major number in hex",
            maps("55d0a0020000-55d0a00c0000 r-xp 0 103:0a 42 /srv/a\\012b c (x)\n"),
            0,
            WHOLE,
            &[],
        ),
        row(
            "smaps",
            maps("55d0a0020000-55d0a00c0000 r-xp 0 fd:01 42 /srv/a\nRss:      4 kB\nVmFlags: rd ex\n"),
            0,
            WHOLE,
            &[],
        ),
        row(
            "no line end after a repeated path",
            maps(
                "55d0a0010000-55d0a0020000 r--p 0 fd:01 42 /srv/a\n55d0a0020000-55d0a00c0000 r-xp 10000 fd:01 42 /srv/a",
            ),
            4,
            WHOLE,
            &["line 14: the map section is cut behind this mapping"],
        ),
        row(
            "a line of another kind",
            maps("55d0a0020000-55d0a00c0000 r-xp 0 fd:01 42 /srv/a\nexit code 0\n"),
            4,
            WHOLE,
            &["exit code 0"],
        ),
    ]);
}

#[test]
fn go_text_that_is_cut_or_negative() {
    let go = String::from_utf8(read("g01-debug1.txt")).expect("a text");
    let cut = |end: &str| go[..go.find(end).expect("it is there") + end.len()].to_owned();
    const LIVE: i64 = 1_212_697;
    check(&[
        row("its first line after others", format!("HTTP/1.1 200 OK\r\n\r\n{go}"), 0, LIVE, &["skipped 2 lines"]),
        row("negative in use", go.replace("1: 1048576 [", "-1: -1048576 ["), 0, -LIVE, &[]),
        row("in a stack", cut("@ 0x4a1b2c 0x4a2"), 4, 0, &["line 2: the profile is cut here"]),
        row("in a name", cut("example.test/ing"), 4, LIVE, &["line 3: the profile is cut here"]),
        row("before the statistics", cut("batch.go:77\n"), 4, LIVE, &["the profile is cut"]),
        row("in a statistic", cut("# HeapAlloc = 105"), 4, LIVE, &["the statistics are cut here"]),
        row("in its last line end", go.trim_end(), 4, LIVE, &["the statistics are cut here"]),
    ]);
}

#[test]
fn folded_stacks_of_all_sorts() {
    check(&[
        folded("one frame deep", "main 7\n", 0, 7, &[]),
        folded("blank", "\n \n", 3, 0, &["no stacks"]),
        folded("only remarks", "# nothing\n", 3, 0, &["no stacks"]),
        folded("negative", "a;b -5\na;c 12\n", 0, 7, &[]),
        folded("fractions", "a;b 0.25\na;c 1.6\n", 0, 2, &["2 values are fractions", "1 of them to 0"]),
        folded("exponents", "a;b 1e+06\na;c 1\n", 0, 1_000_001, &[]),
        folded(
            "a value that does not fit",
            "a;b 99999999999999999999\na;c 5\n",
            4,
            5,
            &["line 1: a value that does not fit"],
        ),
        folded("blanks, semicolons, brackets", "m;std::f<void (int)>::g(int);h 1 x 4\n;;m 3\n", 0, 7, &[]),
        folded("tabs and CRLF", "a;b\t5\r\na;c\t6\r\n", 0, 11, &[]),
        folded("a line without a value", "a;b 5\nrubbish\n", 4, 5, &["line 2: not a stack"]),
        Row { total: None, ..folded("a difference", "a;b 5 7\na;c 6 6\n", 1, 0, &["two numbers", "offheap diff"]) },
        Row { total: None, ..folded("no values", "a;b\na;c\n", 1, 0, &["text that begins with `a;b`"]) },
    ]);
}

#[test]
fn files_that_are_no_profiles() {
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    let cpu = [0_u64, 3, 0, 10_000, 0, 1, 1, 4096].map(u64::to_le_bytes).concat();
    check(&[
        refused("goroutines", "goroutine profile: total 7\n1 @ 0x1\n", &["goroutine profile", "/debug/pprof/heap"]),
        refused("a panic", "goroutine 1 [running]:\nmain.main()\n", &["listing of goroutines"]),
        refused("a mutex profile", "--- mutex:\ncycles/second=1\n", &["mutex profile"]),
        refused("a CPU profile of gperftools", cpu, &["CPU profile of gperftools"]),
        refused("a JVM's heap", "JAVA PROFILE 1.0.2\0\0", &["heap dump of a JVM"]),
        refused("an archive", gzip(&tar), &["tar archive", "unpack"]),
        refused("maps", "55d0a0020000-55d0a00c0000 r-xp 0 fd:01 42 /srv/a\n", &["/proc/PID/maps", "--maps"]),
        refused("another document", "{\"schema\":\"offheap.top/1\"}", &["JSON that is no sample table"]),
        refused("perf script", "swapper 0 [000] 1.5: 1 cycles:\n\tffff f\n", &["text that begins with `swapper"]),
        refused("nothing, compressed", gzip(b""), &["empty"]),
        refused("zstd", b"\x28\xb5\x2f\xfd123", &["zstd", "decompress"]),
        refused("a table without its samples", "{\"schema\":\"offheap.samples/1\",\"lg_sample\":19", &["cut at byte"]),
        refused("a table of a later version", "{\"schema\":\"offheap.samples/9\"}", &["newer offheap"]),
    ]);
}

#[test]
fn places_that_are_no_files() {
    let folder = scratch();
    let socket = folder.path().join("s.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket can be made");
    offheap(&["top", text(&socket)]).code(1).mentions(&["a socket", "pid:N"]);
    offheap(&["top", "/dev/zero"]).code(1).mentions(&["/dev/zero: a device"]);
    offheap(&["top", "h01-plain.heap/x"]).code(1).mentions(&["a part of the path is a file itself"]);
    offheap(&["convert", "h01-plain.heap", "-o", "h01-plain.heap/x"])
        .code(1)
        .mentions(&["a part of the path is a file itself"]);
    for option in ["--binary", "--symbols", "--sysroot", "--maps"] {
        offheap(&["top", "h01-plain.heap", option, "nowhere"]).code(1).mentions(&["nowhere", "no such file"]);
    }
    offheap(&["top", "h09-no-maps.heap", "--maps", "g01-debug1.txt"]).code(1).mentions(&["no executable mapping"]);
}

/// jeprof would take any file that it is given for the program.
#[test]
fn a_program_for_a_dump_that_has_none() {
    let folder = scratch();
    let dump = folder.path().join("libraries.heap");
    std::fs::write(
        &dump,
        "heap_v2/524288\n  t*: 1: 1048576 [0: 0]\n@ 0x7f0000001010 0x7f0000001020\n  t*: 1: 1048576 [0: 0]\n\n\
         MAPPED_LIBRARIES:\n7f0000001000-7f0000002000 r-xp 00001000 08:01 7 /srv/libstore.so.6\n",
    )
    .expect("it can be written");
    let told = ["--binary /bin/true: not used", "libraries alone"];
    offheap(&["top", text(&dump), "--binary", "/bin/true"]).code(0).mentions(&told);
}
