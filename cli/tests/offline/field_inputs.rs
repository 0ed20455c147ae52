//! Every input of the field folder: what is said about it and how the command ends.

use crate::kit::{field, offheap, scratch, text};

/// Input, exit code of `convert`, and parts of what must be said.
const ROWS: &[(&str, i32, &[&str])] = &[
    ("h01-plain.heap", 0, &[]),
    ("h02-mixed-sizes.heap", 0, &[]),
    ("h03-no-stacks.heap", 3, &["h03-no-stacks.heap", "prof:false", "prof_active:false", "nothing was sampled"]),
    ("h04-empty.heap", 1, &["h04-empty.heap", "empty", "expected a jemalloc heap dump"]),
    ("h05-header-only.heap", 3, &["prof_active:false"]),
    ("h05b-header-no-newline.heap", 3, &["prof_active:false"]),
    ("h07-accum-only-stack.heap", 0, &[]),
    ("h07b-zero-count-nonzero-bytes.heap", 0, &["bytes but no objects"]),
    ("h08a-cut-in-counts.heap", 4, &["the dump is cut", "line 10", "this stack is not whole"]),
    ("h08c-cut-in-maps.heap", 4, &["line 18", "the map section is cut"]),
    ("h09-no-maps.heap", 0, &["no map section", "--maps", "--binary"]),
    ("h09b-maps-heading-only.heap", 0, &["no map section", "--maps", "--binary"]),
    ("h10-crlf.heap", 0, &[]),
    ("h11-gzip-misnamed.heap", 0, &[]),
    ("h11c-gzip-two-members.heap.gz", 0, &[]),
    ("h12-leading-noise.heap", 0, &["skipped 2 lines before the header"]),
    ("h14-pseudo-maps.heap", 0, &[]),
    ("h15-arm32.heap", 0, &[]),
    ("h16-macos-maps.heap", 0, &[]),
    ("h20-symbolized.heap", 0, &[]),
    ("h21-legacy-one-line.heap", 0, &[]),
    ("h23a-rate-1.heap", 0, &[]),
    ("h23b-rate-0.heap", 0, &[]),
    ("h25a-255-frames.heap", 0, &[]),
    ("h25b-40000-frames.heap", 0, &[]),
    ("h26-musl-static.heap", 0, &[]),
    ("h28-go-cgo.heap", 0, &[]),
    ("h29a-not-a-dump.heap", 1, &["h29a-not-a-dump.heap", "text that begins with `404 page not found`"]),
    ("h29b-elf.heap", 1, &["an ELF file"]),
    ("h34-20000-map-lines.heap", 0, &[]),
    ("h35-arm64-64k-pages.heap", 0, &[]),
    ("r01-live-mixed-530.heap", 0, &[]),
    ("g01-debug1.txt", 0, &[]),
    ("r05-live-go126-debug1.txt", 0, &[]),
    ("g02-empty.pb.gz", 1, &["empty"]),
    ("g02b-ten-bytes.pb.gz", 1, &["gzip", "cut"]),
    ("g02c-html.pb.gz", 1, &["an HTML page", "gateway timeout"]),
    ("g03-four-types.pb.gz", 0, &[]),
    ("g03b-uncompressed.pb", 0, &[]),
    ("g03c-cut.pb.gz", 1, &["gzip", "cut"]),
    ("g04-two-types.pb.gz", 0, &[]),
    ("g05-negative-inuse.pb.gz", 0, &[]),
    ("g07-sparse-ids.pb.gz", 0, &[]),
    ("g10-no-mapping.pb.gz", 0, &[]),
    ("g12-normalised-mapping-zeroed.pb.gz", 0, &[]),
    ("g13-empty-but-valid.pb.gz", 3, &["no samples"]),
    ("f01-hostile-names.folded", 0, &[]),
    ("f02-deep-40000.folded", 0, &[]),
    ("f03-empty.folded", 3, &["no stacks"]),
    ("f05-all-zero.folded", 3, &["only stacks of value 0"]),
    // Right files for another command.
    ("s01-fragmented-51.txt", 1, &["malloc_stats_print", "offheap stats"]),
    ("r04-live-stats-530.json", 1, &["offheap stats"]),
];

/// Input, exit code of `stats`, and parts of what must be said.
const STATISTICS: &[(&str, i32, &[&str])] = &[
    ("s01-fragmented-51.txt", 0, &[]),
    ("s02-4x-huge-no-retained.txt", 0, &["invalid numbers near 2^64"]),
    ("s03-52-rate-columns.txt", 0, &[]),
    ("s03b-same-hard-wrapped-100.txt", 0, &["lines are wrapped", "only the summary line"]),
    ("s04-64k-pages.txt", 0, &[]),
    ("s07-all-zero.txt", 3, &["another allocator instance"]),
    ("s08-allocated-above-active.txt", 0, &[]),
    ("s09-stats-disabled.txt", 3, &["without statistics", "another allocator instance"]),
    ("s11-cut.txt", 4, &["cut in line 10"]),
    ("s12-small-heap.txt", 0, &[]),
    ("s20-53.json", 0, &[]),
    ("s20b-cut.json", 4, &["the JSON is cut"]),
    ("s20d-old-keys-missing.json", 0, &[]),
    ("r04-live-stats-530.txt", 0, &[]),
    ("r04-live-stats-530.json", 0, &[]),
    ("r03-mallctl-widths.out", 1, &["r03-mallctl-widths.out", "malloc_stats_print"]),
    ("h01-plain.heap", 1, &["h01-plain.heap", "malloc_stats_print"]),
    ("h04-empty.heap", 1, &["h04-empty.heap", "empty"]),
];

/// What goes with other files of the folder.
const NO_INPUTS: [&str; 3] = ["README.md", "h02-mixed-sizes.expect.json", "r01-mix.c"];

#[test]
fn every_input_of_the_folder_has_its_row() {
    let rows = || ROWS.iter().chain(STATISTICS).map(|(row, ..)| *row).chain(NO_INPUTS);
    let mut names: Vec<String> = std::fs::read_dir(field())
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .filter(|name| rows().all(|row| row != name))
        .collect();
    names.sort();
    assert_eq!(names, [""; 0], "inputs without a row");
}

#[test]
fn every_input_ends_as_stated() {
    let folder = scratch();
    let out = folder.path().join("out.pb.gz");
    for (input, code, parts) in ROWS {
        // What the command wrote before must not stand in for what it writes now.
        let _ = std::fs::remove_file(&out);
        offheap(&["convert", input, "-o", text(&out)]).code(*code).mentions(parts);
        let written = out.exists();
        assert_eq!(written, *code != 1, "{input}: a file is written unless the command failed");
    }
    for (input, code, parts) in STATISTICS {
        offheap(&["stats", input]).code(*code).mentions(parts);
    }
}

#[test]
fn lenient_overlooks_damage_but_still_tells() {
    let folder = scratch();
    let out = folder.path().join("out.pb.gz");
    for input in ["h08a-cut-in-counts.heap", "h08c-cut-in-maps.heap"] {
        offheap(&["convert", input, "--lenient", "-o", text(&out)]).code(0).mentions(&["cut"]);
    }
}

#[test]
fn damage_is_what_the_exit_code_says_in_every_command() {
    let folder = scratch();
    let svg = folder.path().join("x.svg");
    offheap(&["top", "h08a-cut-in-counts.heap"]).code(4);
    offheap(&["tree", "h08a-cut-in-counts.heap"]).code(4);
    offheap(&["peek", "h08a-cut-in-counts.heap", "lib"]).code(4);
    offheap(&["flame", "h08a-cut-in-counts.heap", "-o", text(&svg)]).code(4);
    offheap(&["top", "h03-no-stacks.heap"]).code(3).prints("");
    offheap(&["tree", "h03-no-stacks.heap"]).code(3).prints("");
    offheap(&["peek", "h03-no-stacks.heap", "."]).code(3).prints("");
    offheap(&["flame", "h03-no-stacks.heap", "-o", text(&svg)]).code(3);
}

#[test]
fn what_does_not_exist_is_never_fetched_nor_guessed() {
    offheap(&["top", "h01-plian.heap"]).code(1).prints("").says(
        "offheap: h01-plian.heap: no such file; a PROFILE is a file, `-`, a URL, or `pid:N` for a process with the agent\n",
    );
    offheap(&["top", "."]).code(1).mentions(&[".: a directory; name the dump in it"]);
    offheap(&["top", "http://127.0.0.1:1/debug/pprof/heap"])
        .code(1)
        .mentions(&["http://127.0.0.1:1/debug/pprof/heap: connection refused"]);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = scratch();
    let nowhere = folder.path().join("missing/out.pb.gz");
    offheap(&["convert", "h01-plain.heap", "-o", text(&nowhere)])
        .code(1)
        .mentions(&["missing/out.pb.gz", "its directory does not exist"]);
    offheap(&["convert", "h01-plain.heap", "-o", text(folder.path())]).code(1).mentions(&["a directory"]);
    let left = std::fs::read_dir(folder.path()).expect("it exists").count();
    assert_eq!(left, 0, "nothing is left behind");
}
