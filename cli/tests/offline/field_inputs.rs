//! Every input of the field folder: what is said about it and how the command ends.

use crate::kit::{offheap, scratch, text};

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
    ("s01-fragmented-51.txt", 1, &["malloc_stats_print", "offheap stats"]),
    ("r04-live-stats-530.json", 1, &["offheap stats"]),
];

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
fn wrong_usage_is_told_from_failure() {
    offheap(&["top"]).code(2);
    offheap(&["top", "h01-plain.heap", "--by", "colour"]).code(2).mentions(&["function", "thread"]);
    offheap(&["top", "h01-plain.heap", "--focus", "("]).code(2).mentions(&["--focus"]);
    offheap(&["top", "h01-plain.heap", "--sample", "cpu"]).code(1).mentions(&["inuse_space", "alloc_objects"]);
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
