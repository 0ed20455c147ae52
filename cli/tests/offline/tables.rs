//! Tables, documents and folded stacks, whole.

use crate::kit::{command, offheap, read, run};
use std::io::Write;
use std::process::Stdio;

#[test]
fn rankings() {
    offheap(&["top", "h20-symbolized.heap"]).code(0).golden("h20.top.txt");
    offheap(&["top", "h20-symbolized.heap", "--cum", "-n", "3"]).code(0).golden("h20.top-cum.txt");
    offheap(&["top", "h20-symbolized.heap", "--by", "module"]).code(0).golden("h20.top-module.txt");
    offheap(&["top", "h01-plain.heap", "--by", "thread"]).code(0).golden("h01.top-thread.txt");
    offheap(&["top", "g03-four-types.pb.gz", "--by", "line"]).code(0).golden("g03.top-line.txt");
    offheap(&["top", "g05-negative-inuse.pb.gz"]).code(0).golden("g05.top.txt");
    offheap(&["top", "h20-symbolized.heap", "--json"]).code(0).golden("h20.top.json");
}

#[test]
fn call_graphs() {
    offheap(&["tree", "h20-symbolized.heap"]).code(0).golden("h20.tree.txt");
    offheap(&["peek", "h20-symbolized.heap", "reserve"]).code(0).golden("h20.peek.txt");
    offheap(&["peek", "h20-symbolized.heap", "reserve", "--json"]).code(0).golden("h20.peek.json");
}

#[test]
fn folded_stacks_and_documents() {
    offheap(&["convert", "h20-symbolized.heap", "--to", "folded", "-o", "-"]).code(0).prints(
        "ledgerd+0x30554;libpebblestore.so.3+0x30aa9 1052677\n\
         ledgerd+0x31443;ledgerd+0x30332;store::Table::open;store::Arena::reserve;store::Arena::grow 1579016\n",
    );
    offheap(&["convert", "h20-symbolized.heap", "--to", "json", "-o", "-"]).code(0).golden("h20.convert.json");
}

/// Every printed line is corrected by itself: the expectation came with the input.
#[test]
fn totals_are_those_of_corrected_lines() {
    let expected: serde_json::Value = serde_json::from_slice(&read("h02-mixed-sizes.expect.json")).expect("JSON");
    let top = offheap(&["top", "h02-mixed-sizes.heap", "--json"]).code(0);
    let ours: serde_json::Value = serde_json::from_str(&top.stdout).expect("JSON");
    let bytes = expected["unbias_t_star"][1].as_f64().expect("a number");
    assert_eq!(ours["total"].as_f64(), Some(bytes.round()));
    let top = offheap(&["top", "r01-live-mixed-530.heap", "--json"]).code(0);
    let ours: serde_json::Value = serde_json::from_str(&top.stdout).expect("JSON");
    assert_eq!(ours["total"], 169_387_306);
}

#[test]
fn selections() {
    let names = |arguments: &[&str]| {
        let top = offheap(&[&["top", "h20-symbolized.heap", "--json"], arguments].concat());
        let json: serde_json::Value = serde_json::from_str(&top.stdout).expect("JSON");
        let rows = json["rows"].as_array().expect("rows").clone();
        (json["total"].as_i64().expect("total"), rows.iter().map(|row| row["name"].to_string()).collect::<Vec<_>>())
    };
    assert_eq!(names(&["--focus", "Arena"]).0, 1_579_016);
    assert_eq!(names(&["--ignore", "Arena"]).0, 1_052_677);
    assert_eq!(
        names(&["--focus", "Arena", "--hide", "Arena|ledgerd"]),
        (1_579_016, vec!["\"store::Table::open\"".into()])
    );
    assert_eq!(names(&["--show", "Arena::grow"]).1, ["\"store::Arena::grow\""]);
    offheap(&["top", "h20-symbolized.heap", "--focus", "nowhere"])
        .code(3)
        .prints("")
        .mentions(&["--focus nowhere matches no function, file or image"]);
}

#[test]
fn standard_input_and_a_reader_that_leaves() {
    let pipe = |name: &str| {
        let mut command = command();
        command.args(["top", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        child.stdin.take().expect("a pipe").write_all(&read(name)).expect("it reads");
        child.wait_with_output().expect("it ends")
    };
    let output = pipe("h20-symbolized.heap");
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("· standard input\n"));

    let mut shell = std::process::Command::new("bash");
    shell
        .current_dir(crate::kit::field())
        .args(["-c", "\"$0\" convert h25b-40000-frames.heap --to json -o - | head -c 10; echo ${PIPESTATUS[0]}"]);
    run(shell.arg(env!("CARGO_BIN_EXE_offheap"))).code(0).prints("{\"schema\":0\n").mentions(&[]);
}

#[test]
fn names_from_foreign_processes_cannot_drive_the_terminal() {
    let top = offheap(&["top", "f01-hostile-names.folded"]).code(0);
    assert!(top.stdout.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", top.stdout);
}

#[test]
fn ages_are_refused_where_none_are_known() {
    offheap(&["top", "h01-plain.heap", "--age", "10m"])
        .code(1)
        .prints("")
        .mentions(&["h01-plain.heap: ages are known from the agent's sample table alone", "pid:N"]);
}

#[test]
fn each_command_has_a_manual_page_and_completions() {
    let folder = crate::kit::scratch();
    offheap(&["man", "--all", crate::kit::text(folder.path())]).code(0);
    let help = offheap(&["help"]).code(0).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Descriptions may go on in a second line, far more indented.
    let names = commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let page = std::fs::read_to_string(folder.path().join(format!("offheap-{name}.1"))).expect("a page");
        assert!(page.contains(".TH offheap-") && page.contains(".SH OPTIONS"), "{page}");
    }
    offheap(&["man", "tpo"]).code(2).mentions(&["no command is called `tpo`"]);
    for shell in ["bash", "zsh", "fish"] {
        assert!(offheap(&["completions", shell]).code(0).stdout.contains("offheap"), "{shell}");
    }
}
