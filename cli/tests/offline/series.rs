//! Several dumps of one process are a series, not a sum.

use crate::kit::{offheap, read, scratch, text};

/// Two dumps with the addresses of one process, the second with twice the bytes, under names that jemalloc gives.
fn two_dumps(folder: &std::path::Path, names: [&str; 2]) -> [String; 2] {
    let first = String::from_utf8(read("h20-symbolized.heap")).expect("a text");
    let second = first.replace("t*: 3: 12288", "t*: 6: 24576").replace("t0: 3: 12288", "t0: 6: 24576");
    let paths = names.map(|name| folder.join(name));
    std::fs::write(&paths[0], first).expect("it can be written");
    std::fs::write(&paths[1], second).expect("it can be written");
    paths.map(|path| text(&path).to_owned())
}

fn total(arguments: &[&str]) -> (i64, String) {
    let run = offheap(arguments).code(0);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    (json["total"].as_i64().expect("total"), run.stderr)
}

#[test]
fn the_last_is_taken_and_this_is_said() {
    let folder = scratch();
    let [first, second] = two_dumps(folder.path(), ["jeprof.4711.9.i9.heap", "jeprof.4711.10.i10.heap"]);
    let alone = total(&["top", "--json", &second]).0;
    // Whatever the order on the command line, and sorted as text `10` comes before `9`.
    for order in [[&first, &second], [&second, &first]] {
        let (sum, said) = total(&["top", "--json", order[0], order[1]]);
        assert_eq!(sum, alone);
        assert!(said.contains("taken as a series") && said.contains("jeprof.4711.10.i10.heap is shown"), "{said}");
        assert!(said.contains("not added up"), "{said}");
    }
}

/// As `go tool pprof` does with several files.
#[test]
fn dumps_of_different_processes_are_added_up() {
    let folder = scratch();
    let [first, second] = two_dumps(folder.path(), ["jeprof.1.0.i0.heap", "jeprof.2.0.i0.heap"]);
    let (sum, said) = total(&["top", "--json", &first, &second]);
    assert_eq!(sum, total(&["top", "--json", &first]).0 + total(&["top", "--json", &second]).0);
    assert!(said.contains("the 2 profiles are of different processes and are added up"), "{said}");
    // Of each process the last one counts.
    let third = folder.path().join("jeprof.2.1.i1.heap");
    std::fs::copy(&second, &third).expect("it can be copied");
    let (again, said) = total(&["top", "--json", &first, &second, text(&third)]);
    assert_eq!(again, sum);
    assert!(said.contains("jeprof.2.1.i1.heap is shown"), "{said}");
    let top = offheap(&["top", &first, &second]).code(0).stdout;
    assert!(top.lines().next().is_some_and(|head| head.contains("jeprof.1.0.i0.heap + ")), "{top}");
}

/// Without a word on the process, adding them up may count twice what lives on.
#[test]
fn dumps_of_unknown_processes_are_refused() {
    offheap(&["top", "h09-no-maps.heap", "h09b-maps-heading-only.heap"])
        .code(1)
        .prints("")
        .mentions(&["nothing in them tells whether they are of one process", "offheap merge"]);
}
