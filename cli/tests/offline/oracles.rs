//! What the established tools make of the same dumps.

use crate::kit::{Run, command, repository, run, scratch, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Dumps of `testdata/programs/series.cpp`, oldest first, and the program.
struct Recorded {
    program: PathBuf,
    dumps: Vec<PathBuf>,
}

/// Built and run once for all tests here, under Debian's jemalloc.
fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("series");
        // Dumps of an earlier run have another process id.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        let program = folder.join("program");
        let source = repository().join("testdata/programs/series.cpp");
        run(Command::new("g++").args(["-g", "-O2", "-o"]).arg(&program).arg(source).arg("-ldl")).code(0);
        let configuration = format!("prof:true,lg_prof_sample:14,prof_prefix:{}", folder.join("jeprof").display());
        run(Command::new(&program).env("LD_PRELOAD", "libjemalloc.so.2").env("MALLOC_CONF", configuration)).code(0);
        let entries = std::fs::read_dir(&folder).expect("it was made").map(|entry| entry.expect("readable").path());
        let mut dumps: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "heap")).collect();
        // Fewer than ten: sorted as text they are in order.
        dumps.sort();
        assert_eq!(dumps.len(), 3, "{dumps:?}");
        Recorded { program, dumps }
    })
}

fn offheap(arguments: &[&str]) -> Run {
    run(command().args(arguments))
}

fn json(run: Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[track_caller]
fn pprof(arguments: &[&str]) -> String {
    run(Command::new("go").args(["tool", "pprof"]).args(arguments)).code(0).stdout
}

/// Rows of `go tool pprof -top -unit=bytes`: name, flat, cum.
#[track_caller]
fn pprof_top(arguments: &[&str]) -> Vec<(String, i64, i64)> {
    let shown =
        pprof(&[&["-top", "-unit=bytes", "-nodecount=1000", "-nodefraction=0", "-edgefraction=0"], arguments].concat());
    let bytes = |text: &str| text.trim_end_matches('B').parse().unwrap_or_else(|_| panic!("no bytes: {text}\n{shown}"));
    let rows = shown.lines().skip_while(|line| !line.trim_start().starts_with("flat")).skip(1);
    rows.map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        (fields[5..].join(" ").trim_end_matches(" (inline)").to_owned(), bytes(fields[0]), bytes(fields[3]))
    })
    .collect()
}

#[test]
fn totals_agree_with_jeprof() {
    let recorded = recorded();
    for dump in &recorded.dumps {
        let jeprof = run(Command::new("jeprof").args(["--show_bytes", "--text"]).arg(&recorded.program).arg(dump))
            .code(0)
            .stdout;
        let total = jeprof.lines().find_map(|line| line.strip_prefix("Total: ")?.strip_suffix(" B"));
        let total: i64 = total.and_then(|t| t.parse().ok()).unwrap_or_else(|| panic!("a total in {jeprof}"));
        let ours = json(offheap(&["top", text(dump), "--json", "--raw-frames"]).code(0));
        // Ours are rounded stack by stack.
        assert!((ours["total"].as_i64().expect("a number") - total).abs() <= 50, "jeprof {total}, offheap {ours}");
    }
}

#[test]
fn the_table_is_that_of_go_tool_pprof_on_our_file() {
    let folder = scratch();
    let file = folder.path().join("native.pb.gz");
    let dump = text(&recorded().dumps[2]);
    offheap(&["convert", dump, "-o", text(&file)]).code(0);
    let ours = json(offheap(&["top", dump, "--json"]).code(0));
    let row = |row: &serde_json::Value| {
        (row["name"].as_str().expect("a name").to_owned(), row["flat"].as_i64(), row["cum"].as_i64())
    };
    let mut ours: Vec<_> = ours["rows"].as_array().expect("rows").iter().map(row).collect();
    let mut theirs: Vec<_> =
        pprof_top(&[text(&file)]).into_iter().map(|(name, flat, cum)| (name, Some(flat), Some(cum))).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
}

#[test]
fn functions_have_their_names_and_their_bytes() {
    let ours = json(offheap(&["top", text(&recorded().dumps[2]), "--json"]).code(0));
    let cum = |name: &str| {
        let rows = ours["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).and_then(|row| row["cum"].as_i64()).unwrap_or(0) as f64
    };
    // 3000 buffers in the size class of 10240; one in 16 KiB sampled leaves an error of a few percent.
    let leaked = 3000.0 * 10240.0;
    assert!((cum("leak") / leaked - 1.0).abs() < 0.2, "{} of {leaked}", cum("leak"));
    assert!(cum("insert") > 0.8 * 3000.0 * 4096.0, "{}", cum("insert"));
    assert_eq!(cum("cache"), 0.0, "it is gone by then");
}

#[test]
fn a_difference_has_the_values_of_go_tool_pprof() {
    let folder = scratch();
    let file = |name: &str| folder.path().join(name);
    let (base, new, ours) = (file("base.pb.gz"), file("new.pb.gz"), file("diff.pb.gz"));
    let dumps: Vec<&str> = recorded().dumps.iter().map(|path| text(path)).collect();
    offheap(&["convert", dumps[0], "-o", text(&base)]).code(0);
    offheap(&["convert", dumps[2], "-o", text(&new)]).code(0);
    offheap(&["diff", text(&base), text(&new), "-o", text(&ours)]).code(0);
    let mut theirs = pprof_top(&["-diff_base", text(&base), text(&new)]);
    let mut ours = pprof_top(&[text(&ours)]);
    theirs.sort();
    ours.sort();
    assert!(!ours.is_empty());
    assert_eq!(ours, theirs);
}

#[test]
fn a_difference_says_what_grew_and_what_is_gone() {
    let dumps: Vec<&str> = recorded().dumps.iter().map(|path| text(path)).collect();
    // All three: a series, of which the ends are compared, whatever the order on the command line.
    let run = offheap(&["diff", dumps[2], dumps[0], dumps[1], "--cum", "--json"]).code(0);
    assert!(
        run.stderr.contains("the 3 dumps are of one process") && run.stderr.contains("is the base"),
        "{}",
        run.stderr
    );
    let diff = json(run);
    let row = |name: &str| {
        let rows = diff["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {diff}")).clone()
    };
    assert_eq!(row("leak")["state"], "grew");
    let delta = row("leak")["delta"].as_f64().expect("a number");
    assert!((delta / (2500.0 * 10240.0) - 1.0).abs() < 0.2, "{delta}");
    assert_eq!(row("cache")["state"], "gone");
    let sum = |key: &str| diff[key].as_i64().expect("a number");
    assert_eq!(sum("new_total") - sum("base_total"), sum("delta"));
    // A profile against itself: nothing is left to show, and this is no failure.
    let run = offheap(&["diff", dumps[1], dumps[1]]).code(0);
    assert!(run.stdout.lines().count() == 2 && run.stdout.contains("are the same"), "{}", run.stdout);
}

#[test]
fn readings_of_one_process_are_not_added_up() {
    let folder = scratch();
    let out = folder.path().join("sum.pb.gz");
    let dumps: Vec<&str> = recorded().dumps.iter().map(|path| text(path)).collect();
    offheap(&["merge", dumps[0], dumps[1], "-o", text(&out)])
        .code(1)
        .mentions(&["readings of one process", "offheap diff"]);
    assert!(!out.exists());
}
