//! jemalloc heap dumps: `h*` and `r01`.

use crate::kit::{field, modules, read, refused, return_addresses, totals};
use offheap_symbolizer::formats::{Origin, ParseOptions, parse, parse_with};
use offheap_symbolizer::profile::GroupBy;

/// What a plain dump of 3 objects of 12,288 bytes and 2 of 8,192 holds, corrected: k of 4096 bytes is 128.5.
const PLAIN: [i64; 4] = [0, 0, 643, 2_631_693];

#[test]
fn whole_dumps_hold_what_they_state() {
    // file, samples, mappings, totals
    let table: &[(&str, usize, usize, [i64; 4])] = &[
        ("h01-plain.heap", 2, 4, PLAIN),
        ("h02-mixed-sizes.heap", 1, 4, [0, 0, 131_115, 18_876_960]),
        ("h07-accum-only-stack.heap", 2, 4, [903, 6_867_075, 129, 526_339]),
        ("h07b-zero-count-nonzero-bytes.heap", 1, 4, [0, 0, 0, 8]),
        ("h09-no-maps.heap", 2, 0, PLAIN),
        ("h09b-maps-heading-only.heap", 2, 0, PLAIN),
        ("h10-crlf.heap", 2, 4, PLAIN),
        ("h11-gzip-misnamed.heap", 2, 4, PLAIN),
        ("h11c-gzip-two-members.heap.gz", 2, 4, PLAIN),
        ("h12-leading-noise.heap", 2, 4, PLAIN),
        ("h14-pseudo-maps.heap", 4, 8, [0, 0, 516, 2_105_356]),
        ("h15-arm32.heap", 1, 3, [0, 0, 8, 5_695_665]),
        ("h16-macos-maps.heap", 1, 2, [1, 8, 1, 8]),
        ("h20-symbolized.heap", 2, 4, PLAIN),
        ("h21-legacy-one-line.heap", 2, 4, [1157, 4_737_048, 643, 2_631_693]),
        ("h23a-rate-1.heap", 2, 4, [0, 0, 5, 20_480]),
        ("h23b-rate-0.heap", 2, 4, [0, 0, 5, 20_480]),
        ("h25a-255-frames.heap", 1, 4, [0, 0, 129, 526_339]),
        ("h25b-40000-frames.heap", 1, 4, [0, 0, 129, 526_339]),
        ("h26-musl-static.heap", 1, 1, [0, 0, 129, 526_339]),
        ("h28-go-cgo.heap", 2, 4, [0, 0, 2, 33_554_432]),
        ("h34-20000-map-lines.heap", 1, 4, [0, 0, 129, 526_339]),
        ("h35-arm64-64k-pages.heap", 1, 2, [0, 0, 129, 526_339]),
        ("r01-live-mixed-530.heap", 3, 9, [0, 0, 65_564, 169_387_306]),
    ];
    for &(name, samples, mappings, expected) in table {
        let parsed = read(name);
        assert_eq!(parsed.damage, [], "{name}");
        assert_eq!(parsed.profile.samples.len(), samples, "{name}");
        assert_eq!(parsed.profile.mappings.len(), mappings, "{name}: {:?}", modules(&parsed));
        assert_eq!(totals(&parsed), expected, "{name}");
        assert_eq!(parsed.origin, Origin::Native, "{name}");
    }
}

#[test]
fn threads_add_up_to_their_stack() {
    let by_thread = ParseOptions { by_thread: true, ..ParseOptions::default() };
    let parsed = parse_with(&field("h02-mixed-sizes.heap"), &by_thread).expect("valid");
    // By themselves the lines of the threads are 131,076 objects of 18,874,402 bytes, and the stack's own line is more.
    assert_eq!(totals(&parsed), totals(&read("h02-mixed-sizes.heap")));
    let bytes: Vec<i64> = parsed.profile.samples.iter().map(|sample| sample.values[3]).collect();
    assert_eq!(bytes, [2_097_468, 16_779_492]);
    let parsed = parse_with(&field("r01-live-mixed-530.heap"), &by_thread).expect("valid");
    let value = parsed.profile.value_index("inuse_space").expect("a heap profile");
    let rows = parsed.profile.rank(value, GroupBy::Thread).rows;
    let rows: Vec<(&str, i64)> = rows.iter().map(|row| (&*row.node.name, row.flat)).collect();
    assert_eq!(rows, [("t1", 167_772_180), ("ro:low [0] @9 (t2)", 1_048_592), ("mix (t0)", 566_534)]);
}

#[test]
fn every_sample_says_whose_it_is_and_how_large_its_objects_are() {
    let parsed = read("h07-accum-only-stack.heap");
    let sample = &parsed.profile.samples[0];
    assert_eq!(sample.label_text("origin"), Some("native"));
    assert_eq!(sample.label_number("bytes"), Some(8192));
    assert_eq!(sample.picked, Some(0));
    let types: Vec<String> = parsed.profile.value_types.iter().map(|t| format!("{}/{}", t.kind, t.unit)).collect();
    assert_eq!(types, ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]);
    assert_eq!((parsed.profile.period, parsed.profile.default_value_type.as_deref()), (524_288, None));
}

#[test]
fn empty_dumps_are_valid_and_say_why_they_may_be() {
    for name in ["h03-no-stacks.heap", "h05-header-only.heap", "h05b-header-no-newline.heap"] {
        let parsed = read(name);
        assert_eq!((parsed.profile.samples.len(), parsed.damage.len()), (0, 0), "{name}");
        for reason in ["prof:false", "prof_active:false", "nothing was sampled yet"] {
            assert!(parsed.notes.iter().any(|note| note.contains(reason)), "{name}: {:?}", parsed.notes);
        }
    }
}

#[test]
fn what_is_no_dump_is_named() {
    for (name, words) in
        [("h04-empty.heap", "empty"), ("h29a-not-a-dump.heap", "404 page not found"), ("h29b-elf.heap", "ELF")]
    {
        let message = refused(name).to_string();
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[test]
fn of_cut_dumps_the_whole_stacks_are_kept() {
    for (name, samples, mappings, bytes, line) in
        [("h08a-cut-in-counts.heap", 1, 0, 1_579_016, 10), ("h08c-cut-in-maps.heap", 2, 1, 2_631_693, 18)]
    {
        let parsed = read(name);
        assert_eq!(parsed.profile.samples.len(), samples, "{name}");
        assert_eq!(parsed.profile.mappings.len(), mappings, "{name}");
        assert_eq!(totals(&parsed)[3], bytes, "{name}");
        assert!(parsed.damage.iter().any(|d| d.line == Some(line)), "{name}: {:?}", parsed.damage);
    }
}

/// Wherever a dump is cut, what is read is a beginning of the whole, and every address in it is a whole one.
#[test]
fn a_cut_address_is_never_used() {
    let whole = field("h01-plain.heap");
    let addresses =
        [0x7f10_c002_0111, 0x7f10_c002_1222, 0x55d0_a003_0333, 0x55d0_a003_1444, 0x7f10_c003_0aaa, 0x55d0_a003_0555];
    let header_end = 1 + whole.iter().position(|&b| b == b'\n').expect("lines");
    let maps = whole.windows(16).position(|w| w == b"MAPPED_LIBRARIES").expect("a map section");
    for length in header_end..whole.len() {
        let parsed = parse(&whole[..length]).unwrap_or_else(|e| panic!("cut at {length}: {e}"));
        for sample in 0..parsed.profile.samples.len() {
            let stack = return_addresses(&parsed, sample);
            assert!(stack.iter().all(|a| addresses.contains(a)), "cut at {length}: {stack:x?}");
        }
        // Between the last stack and the map section nothing tells a cut dump from one without that section.
        let says_so = !parsed.damage.is_empty() || length == header_end || (maps - 30..maps + 18).contains(&length);
        let at_line_end = b"\n]".contains(&whole[length - 1]);
        assert!(says_so || (length > maps && at_line_end), "cut at {length} without a word");
    }
}

#[test]
fn dumps_without_maps_keep_their_addresses_and_say_what_is_missing() {
    for name in ["h09-no-maps.heap", "h09b-maps-heading-only.heap"] {
        let mut parsed = read(name);
        assert_eq!(return_addresses(&parsed, 1), [0x7f10_c003_0aaa, 0x55d0_a003_0555], "{name}");
        assert!(parsed.notes.iter().any(|n| n.contains("--maps") && n.contains("--binary")), "{:?}", parsed.notes);
        let maps = field("h01-plain.heap");
        let at = maps.windows(14).position(|w| w == b"55d0a0000000-5").expect("a map section");
        parsed.use_maps(&maps[at..]);
        assert_eq!(modules(&parsed), ["ledgerd", "libpebblestore.so.3", "[vdso]", "[vsyscall]"], "{name}");
        assert!(parsed.profile.locations.iter().all(|l| l.mapping.is_some()), "{name}");
    }
}

#[test]
fn pseudo_files_are_named_and_are_no_files() {
    let parsed = read("h14-pseudo-maps.heap");
    assert_eq!(
        modules(&parsed),
        [
            "ledgerd",
            "memfd:jit-cache",
            "[anon:text hugepages]",
            "anon",
            "[uprobes]",
            "libpebblestore.so.3",
            "[vdso]",
            "[vsyscall]"
        ]
    );
    let files: Vec<&str> = parsed.profile.mappings.iter().filter(|m| m.is_file()).map(|m| m.base_name()).collect();
    assert_eq!(files, ["ledgerd", "libpebblestore.so.3"]);
    let memfd = &parsed.profile.mappings[1];
    assert_eq!((&*memfd.path, memfd.deleted, memfd.inode), ("/memfd:jit-cache", true, Some(2049)));
    assert!(parsed.profile.locations.iter().all(|l| l.mapping.is_some()));
}

#[test]
fn frames_outside_every_mapping_are_unknown() {
    for (name, sample, known) in [
        ("h15-arm32.heap", 0, vec![true, true, true]),
        ("h16-macos-maps.heap", 0, vec![true, true, false]),
        ("h28-go-cgo.heap", 1, vec![true, true, true, false, false, false]),
        ("h26-musl-static.heap", 0, vec![true, true]),
        ("h35-arm64-64k-pages.heap", 0, vec![true, true]),
    ] {
        let parsed = read(name);
        let profile = &parsed.profile;
        let stack = profile.samples[sample].locations.iter().map(|&id| profile.location(id));
        let names: Vec<_> = stack.map(|location| profile.fallback_name(location) != "[unknown]").collect();
        assert_eq!(names, known, "{name}");
    }
}

#[test]
fn log_lines_before_the_header_are_skipped_and_counted() {
    let parsed = read("h12-leading-noise.heap");
    assert!(parsed.notes.iter().any(|n| n.contains("skipped 2 lines")), "{:?}", parsed.notes);
}

#[test]
fn bytes_without_objects_are_flagged() {
    let parsed = read("h07b-zero-count-nonzero-bytes.heap");
    assert!(parsed.notes.iter().any(|n| n.contains("bytes but no objects")), "{:?}", parsed.notes);
}

#[test]
fn a_symbol_table_names_what_nothing_else_does() {
    let mut parsed = read("h20-symbolized.heap");
    assert_eq!(parsed.input_names.binary.as_deref(), Some("/srv/demo/bin/ledgerd"));
    assert_eq!(parsed.input_names.apply(&mut parsed.profile), 2);
    let value = parsed.profile.value_index("inuse_space").expect("a heap profile");
    let rows = parsed.profile.rank(value, GroupBy::Function).rows;
    let names: Vec<&str> = rows.iter().map(|row| &*row.node.name).collect();
    assert_eq!(rows[0].flat, 1_579_016);
    assert_eq!(names[0], "store::Arena::grow");
    for name in ["store::Arena::reserve", "store::Table::open", "ledgerd+0x30332"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn stacks_of_any_depth_are_read_whole() {
    for (name, depth) in [("h25a-255-frames.heap", 255), ("h25b-40000-frames.heap", 40_000)] {
        let parsed = read(name);
        assert_eq!(parsed.profile.samples[0].locations.len(), depth, "{name}");
    }
}

/// A stack without a single frame keeps its bytes; jeprof loses them.
#[test]
fn a_bare_stack_keeps_its_bytes() {
    let dump = b"heap_v2/524288\n  t*: 1: 4096 [0: 0]\n@\n  t*: 1: 4096 [0: 0]\n\nMAPPED_LIBRARIES:\n";
    let parsed = parse(dump).expect("valid");
    assert_eq!(parsed.damage, []);
    let table = parsed.profile.rank(3, GroupBy::Function);
    assert_eq!((&*table.rows[0].node.name, table.rows[0].flat), ("[no stack]", 526_339));
}

/// The header's sum shows what no line does: that the file ends between two stacks.
#[test]
fn a_cut_between_two_stacks_is_noticed() {
    let whole = field("r01-live-mixed-530.heap");
    let second = whole.windows(3).position(|w| w == b"\n@ ").expect("stacks") + 1;
    let third = second + 1 + whole[second + 1..].windows(3).position(|w| w == b"\n@ ").expect("stacks");
    let parsed = parse(&whole[..third]).expect("partly valid");
    assert_eq!(parsed.profile.samples.len(), 1);
    assert_eq!(parsed.damage, [], "what is missing is within the rounding of the print");
    let plain = field("h01-plain.heap");
    let last = plain.windows(3).rposition(|w| w == b"\n@ ").expect("stacks") + 1;
    let parsed = parse(&plain[..last]).expect("partly valid");
    assert!(parsed.damage[0].what.contains("1579016 of the 2631693"), "{:?}", parsed.damage);
}
