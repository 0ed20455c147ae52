//! The JSON of every command has the keys that `docs/json.md` lists for it: none is missing there, none is made up.

use crate::kit::{Service, build, json, offheap, succeed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Keys of maps whose keys are data.
const FREE: [&str; 2] = ["labels", "numbers"];

/// Every key of a document, however deep.
fn keys_of(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                into.insert(key.clone());
                if !FREE.contains(&key.as_str()) {
                    keys_of(value, into);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys_of(value, into)),
        _ => {}
    }
}

/// The words in backticks of a cell of the table.
fn words(cell: &str) -> BTreeSet<String> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.flat_map(str::split_whitespace).map(|word| word.trim_end_matches("[]").to_owned()).collect()
}

/// What the page lists for a command, `schema` included.
fn documented(command: &str) -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md");
    let page = std::fs::read_to_string(page).expect("the page of the documents");
    let row = page.lines().filter(|line| line.starts_with("| `")).find_map(|line| {
        let mut cells = line.trim_matches('|').split(" | ");
        cells.next().filter(|name| name.trim().split(", ").any(|name| name.trim_matches('`') == command))?;
        cells.next()
    });
    let mut keys = words(row.unwrap_or_else(|| panic!("`{command}` has no row")));
    keys.insert("schema".into());
    keys
}

/// Compare; `absent` are keys that this document cannot show.
#[track_caller]
fn agrees(command: &str, documents: &[Value], absent: &[&str]) {
    let mut keys = BTreeSet::new();
    documents.iter().for_each(|document| keys_of(document, &mut keys));
    let mut listed = documented(command);
    for beside in ["null", "--interval", "attach"] {
        listed.remove(beside);
    }
    if command.starts_with("frag --map") {
        listed.extend(documented("frag"));
        listed.remove("null");
    }
    if matches!(command, "attach" | "record") {
        listed.extend(documented("profile"));
        listed.extend(documented("stats"));
    }
    if command == "record" {
        listed.extend(documented("attach"));
    }
    let missing: Vec<_> = keys.difference(&listed).collect();
    assert!(missing.is_empty(), "{command}: not in docs/json.md: {missing:?}");
    let invented: Vec<_> = listed.difference(&keys).filter(|key| !absent.contains(&key.as_str())).collect();
    assert!(invented.is_empty(), "{command}: in docs/json.md and not in the document: {invented:?}");
}

fn lines(text: &[u8]) -> Vec<Value> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("a line of JSON"))
        .collect()
}

fn schema(document: &Value) -> &str {
    document["schema"].as_str().unwrap_or("none")
}

#[test]
fn every_document_has_the_keys_that_are_documented() {
    let service = Service::start(&build("cstring", "cstring-documents", &[], &[]), 12, &[]);
    service.get("/name?n=2000");
    let pid = service.pid();
    let (before, after) = (service.file("before.pb.gz"), service.file("after.pb.gz"));
    let (go, map, series) = (service.file("go.pb.gz"), service.file("map.svg"), service.file("series"));
    succeed(offheap().args(["dump", &pid, "-o"]).arg(&before), 0);
    service.get("/name?n=2000");
    succeed(offheap().args(["dump", &pid, "-o"]).arg(&after), 0);
    std::fs::write(&go, service.get("/debug/pprof/heap")).expect("a file of the test");

    let run = |arguments: &[&str], files: &[&Path]| -> Command {
        let mut command = offheap();
        command.args(arguments).args(files).arg("--json");
        command
    };
    // The command as it stands in the page, how it is called, and what this service cannot make it say.
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a Path], &'a [&'a str]);
    let trigger = ["trigger", &pid, "--rss", "900TB"];
    let cases: [Case<'_>; 14] = [
        ("stats", &["stats", &pid], &[], &[]),
        ("profile", &["profile", "status", &pid], &[], &[]),
        ("trigger", &trigger, &[], &[]),
        ("top", &["top"], &[&after], &[]),
        ("tree", &["tree"], &[&after], &[]),
        ("diff", &["diff"], &[&before, &after], &[]),
        ("diff --go", &["diff", "--go"], &[&go, &after], &[]),
        ("frag", &["frag", &pid], &[], &[]),
        ("frag --map", &["frag", &pid, "--map"], &[&map], &[]),
        ("ledger", &["ledger", &pid, "--go", "auto", "--interval", "100ms"], &[], &[]),
        ("check", &["check", &pid, "--go", "auto", "--for", "0"], &[], &["error"]),
        ("doctor", &["doctor", &pid], &[], &["id", "severity", "evidence", "why", "remedy"]),
        ("ps", &["ps"], &[], &[]),
        ("purge", &["purge", &pid], &[], &[]),
    ];
    for (command, arguments, files, absent) in cases {
        let document = json(&mut run(arguments, files));
        assert_eq!(schema(&document), format!("offheap.{}/1", arguments[0]), "{command}");
        agrees(command, &[document], absent);
    }
    let peek = json(offheap().arg("peek").arg(&after).args(["handleName", "--json"]));
    agrees("peek", &[peek], &[]);
    let converted = succeed(offheap().arg("convert").arg(&after).args(["--to", "json", "-o", "-"]), 0);
    let converted: Value = serde_json::from_slice(&converted.stdout).expect("JSON");
    assert_eq!(schema(&converted), "offheap.convert/1");
    agrees("convert --to json", &[converted], &[]);

    // Arenas are many and change little: a series is read without them.
    let arenas = [
        "index nthreads small_allocated large_allocated slab_waste dirty_decay_ms muzzy_decay_ms agent",
        "curlextents", // No large object need be alive.
    ];
    let absent: Vec<&str> = arenas.iter().flat_map(|words| words.split(' ')).collect();
    let attached = succeed(&mut run(&["attach", &pid, "--count", "1"], &[]), 0);
    let attached = lines(&attached.stdout);
    assert_eq!(schema(&attached[0]), "offheap.attach/1");
    agrees("attach", &attached, &absent);
    succeed(offheap().args(["record", &pid, "--for", "200ms", "--every", "100ms", "-o"]).arg(&series), 0);
    let recorded = lines(&std::fs::read(&series).expect("the recording"));
    assert_eq!((&recorded[0]["kind"], schema(&recorded[0])), (&Value::from("header"), "offheap.record/1"));
    agrees("record", &recorded, &absent);

    let failed = succeed(offheap().args(["check", "no-such-process", "--json"]), 3);
    let failed: Value = serde_json::from_slice(&failed.stdout).expect("JSON");
    assert!(failed["error"].is_string(), "{failed}");
}
