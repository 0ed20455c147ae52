//! Totals against `jeprof`, on every dump that it reads rightly.

use offheap_symbolizer::formats::parse;
use offheap_symbolizer::profile::{GroupBy, Profile};
use std::path::{Path, PathBuf};
use std::process::Command;

fn field(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/field").join(name)
}

/// What `jeprof --text` prints: the total and the flat bytes of each row, largest first.
///
/// The program does not matter for totals; any executable will do.
fn jeprof(dump: &Path, option: &str) -> Option<(i64, Vec<i64>)> {
    let output = Command::new("jeprof").args(["--text", option]).arg("/bin/true").arg(dump).output();
    let output = match output {
        Ok(output) => output,
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        Err(error) => {
            eprintln!("SKIPPED: jeprof cannot be run ({error}); scripts/setup installs it");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let total = text.lines().find_map(|line| line.strip_prefix("Total: ")?.split_whitespace().next()?.parse().ok());
    // Where there is nothing it prints nothing, not even a total.
    let total = total.unwrap_or_else(|| {
        assert_eq!(text.trim(), "", "{}: no total", dump.display());
        0
    });
    let rows = text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    Some((total, rows))
}

fn read(dump: &Path) -> Profile {
    let bytes = std::fs::read(dump).unwrap_or_else(|e| panic!("{}: {e}", dump.display()));
    parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", dump.display())).profile
}

/// jeprof drops the fraction of each stack.
fn agree(ours: i64, theirs: i64, stacks: usize) -> bool {
    (ours - theirs).unsigned_abs() as usize <= stacks
}

#[test]
fn totals_of_bytes_agree_to_rounding() {
    for name in [
        "h01-plain.heap",
        "h02-mixed-sizes.heap",
        "h03-no-stacks.heap",
        "h07-accum-only-stack.heap",
        "h09-no-maps.heap",
        "h10-crlf.heap",
        "h14-pseudo-maps.heap",
        "h15-arm32.heap",
        "h21-legacy-one-line.heap",
        "h23a-rate-1.heap",
        "h25a-255-frames.heap",
        "h26-musl-static.heap",
        "h28-go-cgo.heap",
        "h35-arm64-64k-pages.heap",
        "r01-live-mixed-530.heap",
    ] {
        let dump = field(name);
        let profile = read(&dump);
        let Some((total, _)) = jeprof(&dump, "--show_bytes") else { return };
        assert!(agree(profile.total(3), total, profile.samples.len()), "{name}: {} and {total}", profile.total(3));
    }
}

#[test]
fn totals_of_the_other_values_agree_to_rounding() {
    for name in ["h01-plain.heap", "h07-accum-only-stack.heap", "r01-live-mixed-530.heap"] {
        let dump = field(name);
        let profile = read(&dump);
        for (value, option) in [(0, "--alloc_objects"), (2, "--inuse_objects")] {
            let Some((total, _)) = jeprof(&dump, option) else { return };
            assert!(agree(profile.total(value), total, profile.samples.len()), "{name} {option}: {total}");
        }
    }
}

#[test]
fn rows_by_address_agree_to_rounding() {
    let dump = field("r01-live-mixed-530.heap");
    let Some((_, theirs)) = jeprof(&dump, "--show_bytes") else { return };
    let mut profile = read(&dump);
    // jeprof cuts the frames of the library that exports `malloc` off, as pruning does.
    assert_eq!(profile.prune_allocator(), 3);
    let rows = profile.rank(3, GroupBy::Function).rows;
    let ours: Vec<i64> = rows.iter().map(|row| row.flat).filter(|&flat| flat != 0).collect();
    let theirs: Vec<i64> = theirs.into_iter().filter(|&flat| flat != 0).collect();
    assert_eq!(ours.len(), theirs.len(), "{ours:?} and {theirs:?}");
    assert!(ours.iter().zip(&theirs).all(|(&a, &b)| agree(a, b, 3)), "{ours:?} and {theirs:?}");
}

/// The bytes of a stack without frames are lost there, and kept here.
#[test]
fn a_bare_stack_is_where_jeprof_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("bare.heap");
    let text = "heap_v2/524288\n  t*: 3: 12288 [0: 0]\n@\n  t*: 2: 8192 [0: 0]\n@ 0x10 0x20\n  t*: 1: 4096 [0: 0]\n\n\
                MAPPED_LIBRARIES:\n";
    std::fs::write(&dump, text).expect("a file");
    let Some((total, _)) = jeprof(&dump, "--show_bytes") else { return };
    assert_eq!((total, read(&dump).total(3)), (526_338, 526_339 + 1_052_677));
}
