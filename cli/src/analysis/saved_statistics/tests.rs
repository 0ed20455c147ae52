//! Every statistics input of `testdata/field`, and others of its kinds.

use super::report::{NotStatistics, Report, read};
use std::path::Path;

fn field(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/field").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_field(name: &str) -> Report {
    read(&field(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn says(report: &Report, what: &str) -> bool {
    report.notes.iter().any(|note| note.contains(what))
}

/// Name, allocated, active, metadata, resident, mapped, retained, page size, bins, partial, a remark.
type Expected = (
    &'static str,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    u64,
    usize,
    bool,
    &'static str,
);

#[test]
fn totals_of_every_field_input() {
    let s = Some;
    #[rustfmt::skip]
    let table: [Expected; 14] = [
        ("s01-fragmented-51.txt", s(64327720), s(369164288), s(9000000), s(401000000), s(420000000), s(900000000), 4096, 3, false, ""),
        ("s02-4x-huge-no-retained.txt", s(55410400), s(59056128), s(2861824), s(61739008), s(65011712), None, 4096, 1, false, "near 2^64"),
        ("s03-52-rate-columns.txt", s(8868456), s(9216000), s(2984512), s(12173312), s(15507456), s(2318336), 4096, 1, false, ""),
        ("s03b-same-hard-wrapped-100.txt", s(8868456), s(9216000), s(2984512), s(12173312), s(15507456), s(2318336), 4096, 0, false, "wrapped"),
        ("s04-64k-pages.txt", s(6443459960), s(6936133632), s(71668792), s(7007764480), s(7011631104), s(4863492096), 65536, 0, false, "stops behind the summary"),
        ("s07-all-zero.txt", s(0), s(0), s(0), s(0), s(0), s(0), 4096, 0, false, "another allocator instance"),
        ("s08-allocated-above-active.txt", s(10000000), s(9990144), s(100000), s(12000000), s(13000000), s(0), 4096, 0, false, ""),
        ("s11-cut.txt", s(8868456), s(9216000), s(2984512), s(12173312), s(15507456), s(2318336), 4096, 0, true, "cut in line 10"),
        ("s12-small-heap.txt", s(1701072), s(2121728), s(1200000), s(6782976), s(9000000), s(0), 4096, 0, false, ""),
        ("s20-53.json", s(64327720), s(369164288), s(9000000), s(401000000), s(420000000), s(900000000), 4096, 1, false, ""),
        ("s20b-cut.json", s(64327720), s(369164288), None, None, None, None, 4096, 0, true, "cut"),
        ("s20d-old-keys-missing.json", s(64327720), s(369164288), s(9000000), s(401000000), s(420000000), None, 4096, 0, false, ""),
        ("r04-live-stats-530.txt", s(171209728), s(171307008), s(3113120), s(174362624), s(183914496), s(91336704), 4096, 3, false, ""),
        ("r04-live-stats-530.json", s(171209728), s(171307008), s(3113120), s(174362624), s(183914496), s(91336704), 4096, 3, false, ""),
    ];
    for (name, allocated, active, metadata, resident, mapped, retained, page, bins, partial, remark) in table {
        let report = read_field(name);
        let stats = &report.stats;
        assert_eq!(
            (stats.allocated, stats.active, stats.metadata, stats.resident, stats.mapped, stats.retained),
            (allocated, active, metadata, resident, mapped, retained),
            "{name}"
        );
        assert_eq!(stats.page_size, Some(page), "{name}");
        assert_eq!(stats.bins.len(), bins, "{name}: {:?}", stats.bins);
        assert_eq!(report.partial, partial, "{name}: {:?}", report.notes);
        assert!(remark.is_empty() || says(&report, remark), "{name}: {:?}", report.notes);
        assert_eq!(stats.rss, None, "{name}: no report tells RSS");
    }
}

#[test]
fn bins_are_read_by_their_headings() {
    for (name, index, size, nregs, slab_size, curregs, curslabs, nonfull) in [
        ("s01-fragmented-51.txt", 1, 64, 64, 4096, 1_000_000, 90_000, None),
        ("s02-4x-huge-no-retained.txt", 0, 8, 512, 4096, 100, 1, None),
        ("s03-52-rate-columns.txt", 0, 8, 512, 4096, 594, 2, Some(0)),
        ("s20-53.json", 0, 8, 512, 4096, 5, 3, None),
        ("r04-live-stats-530.txt", 0, 16, 256, 4096, 200_000, 782, Some(0)),
    ] {
        let report = read_field(name);
        let bin = &report.stats.bins[index];
        assert_eq!(
            (bin.size, bin.nregs, bin.slab_size, bin.curregs, bin.curslabs, bin.nonfull_slabs),
            (size, nregs, slab_size, curregs, curslabs, nonfull),
            "{name}"
        );
    }
}

#[test]
fn text_and_json_of_one_moment_give_the_same_numbers() {
    let text = read_field("r04-live-stats-530.txt");
    let json = read_field("r04-live-stats-530.json");
    assert_eq!(text.stats, json.stats);
    assert_eq!(text.notes, json.notes);
    let stats = text.stats;
    assert_eq!((stats.tcache, stats.dirty, stats.muzzy, stats.narenas), (Some(56704), Some(24576), Some(0), Some(9)));
    assert_eq!(
        stats.large.iter().map(|class| (class.size, class.curlextents)).collect::<Vec<_>>(),
        [(28672, 1), (65536, 1), (81920, 1), (8388608, 20)]
    );
    assert_eq!(stats.arenas.iter().map(|arena| arena.index).collect::<Vec<_>>(), [0, 1, 2, 8]);
    let first = &stats.arenas[0];
    assert_eq!(
        (first.nthreads, first.active, first.resident, first.metadata),
        (Some(1), Some(249856), Some(2920448), Some(2641392 + 94208))
    );
    assert_eq!((first.dirty, first.dirty_decay_ms, first.muzzy_decay_ms), (Some(24576), Some(10000), Some(0)));
    assert_eq!((first.small_allocated, first.large_allocated, first.slab_waste), (Some(61440), Some(176128), Some(0)));
}

#[test]
fn dirty_pages_of_4x() {
    let report = read_field("s02-4x-huge-no-retained.txt");
    assert_eq!((report.stats.dirty, report.stats.muzzy, report.stats.tcache), (Some(0), None, None));
}

#[test]
fn statistics_compiled_out_are_unknown_not_zero() {
    let report = read_field("s09-stats-disabled.txt");
    assert_eq!((report.stats.allocated, report.stats.active), (None, None));
    assert!(says(&report, "config.stats: false"), "{:?}", report.notes);
    assert!(!report.partial);
}

#[test]
fn a_report_of_3x_with_one_arena_has_no_merged_section() {
    let report = read(
        br"___ Begin jemalloc statistics ___
Version: 3.6.0-0-g46c0af68bd248b04df75e4f92d5fb804c3d75340
Arenas: 4
Page size: 4096
Allocated: 4896, active: 12288, mapped: 4194304
Current active ceiling: 4194304
chunks: nchunks   highchunks    curchunks
              1            1            1
huge: nmalloc      ndalloc    allocated
            0            0            0

arenas[0]:
assigned threads: 1
dss allocation precedence: disabled
dirty pages: 3:7 active:dirty, 0 sweeps, 0 madvises, 0 purged
            allocated      nmalloc      ndalloc    nrequests
small:           4896          201          100          201
large:              0            0            0            0
total:           4896          201          100          201
active:         12288
mapped:       4194304
bins:     bin  size regs pgs    allocated      nmalloc      ndalloc    nrequests       nfills     nflushes      newruns       reruns      curruns
[0..2]
            3    48   84   1         4896          201          100          201            2            0            2            0            3
[4..27]
large:   size pages      nmalloc      ndalloc    nrequests      curruns
        16384     4            1            0            1            2
[1]
--- End jemalloc statistics ---
",
    )
    .unwrap();
    let stats = report.stats;
    assert_eq!(
        (stats.allocated, stats.active, stats.mapped, stats.metadata),
        (Some(4896), Some(12288), Some(4194304), None)
    );
    assert_eq!(stats.bins.len(), 1);
    assert_eq!((stats.bins[0].size, stats.bins[0].curregs, stats.bins[0].curslabs), (48, 102, 3));
    assert_eq!((stats.large[0].size, stats.large[0].curlextents), (16384, 2));
    assert_eq!((stats.arenas[0].dirty, stats.arenas[0].slab_waste), (Some(7 * 4096), Some(3 * 4096 - 4896)));
    assert!(!report.partial && report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn what_a_log_did_to_the_report() {
    let plain = String::from_utf8(field("s03-52-rate-columns.txt")).unwrap();
    let prefixed = |prefix: fn(usize) -> String| -> String {
        plain.lines().enumerate().map(|(number, line)| format!("{}{line}\n", prefix(number))).collect()
    };
    for (label, text) in [
        ("jemalloc's own", prefixed(|_| "<jemalloc>: ".into())),
        ("times", prefixed(|number| format!("2024-05-01T10:00:0{}Z svc[{}]: ", number % 10, 5 << number))),
    ] {
        let report = read(text.as_bytes()).unwrap();
        assert_eq!((report.stats.allocated, report.stats.retained), (Some(8868456), Some(2318336)), "{label}");
        assert_eq!((report.stats.page_size, report.stats.bins.len()), (Some(4096), 0), "{label}");
        assert!(says(&report, "prefix") && !report.partial, "{label}: {:?}", report.notes);
    }
    let expected = read(plain.as_bytes()).unwrap();
    for (label, text) in [
        ("other lines around it", format!("starting\nready: 5\n{plain}stopped\n12 ---\n")),
        ("indented", prefixed(|_| "    ".into())),
        ("CRLF and a byte order mark", format!("\u{feff}{}", plain.replace('\n', "\r\n"))),
    ] {
        assert_eq!(read(text.as_bytes()).unwrap(), expected, "{label}");
    }
    let twice =
        read(format!("{}{plain}", String::from_utf8(field("s01-fragmented-51.txt")).unwrap()).as_bytes()).unwrap();
    assert_eq!(twice.stats, expected.stats);
    assert!(says(&twice, "2 reports"), "{:?}", twice.notes);
}

#[test]
fn wrapped_at_any_width_no_number_is_made_up() {
    let plain = String::from_utf8(field("r04-live-stats-530.txt")).unwrap();
    let expected = read(plain.as_bytes()).unwrap().stats;
    for width in [72, 80, 100, 120, 132, 160, 200] {
        let mut wrapped = String::new();
        for line in plain.lines() {
            let characters: Vec<char> = line.chars().collect();
            for piece in characters.chunks(width) {
                wrapped.extend(piece);
                wrapped.push('\n');
            }
        }
        let report = read(wrapped.as_bytes()).unwrap();
        let stats = &report.stats;
        assert_eq!(
            (stats.allocated, stats.active, stats.metadata, stats.resident, stats.mapped, stats.retained),
            (
                expected.allocated,
                expected.active,
                expected.metadata,
                expected.resident,
                expected.mapped,
                expected.retained
            ),
            "{width}"
        );
        assert!(stats.bins.is_empty() || stats.bins == expected.bins, "{width}: {:?}", stats.bins);
        assert!(says(&report, "wrapped"), "{width}: {:?}", report.notes);
    }
}

#[test]
fn cut_anywhere_no_number_is_made_up() {
    for name in ["s01-fragmented-51.txt", "s02-4x-huge-no-retained.txt", "s03-52-rate-columns.txt", "s20-53.json"] {
        let whole = field(name);
        let expected = read(&whole).unwrap().stats;
        let trimmed = whole.trim_ascii_end().len();
        for end in 1..trimmed {
            let Ok(report) = read(&whole[..end]) else { continue };
            let stats = report.stats;
            for (part, all) in [
                (stats.allocated, expected.allocated),
                (stats.active, expected.active),
                (stats.metadata, expected.metadata),
                (stats.resident, expected.resident),
                (stats.mapped, expected.mapped),
                (stats.retained, expected.retained),
                (stats.tcache, expected.tcache),
                (stats.dirty, expected.dirty),
            ] {
                assert!(part.is_none() || part == all, "{name} cut at {end}: {part:?} for {all:?}");
            }
            assert!(stats.bins.iter().all(|bin| expected.bins.contains(bin)), "{name} cut at {end}: {:?}", stats.bins);
        }
    }
}

#[test]
fn rows_with_underflowed_numbers_are_left_out_and_said() {
    let text = String::from_utf8(field("s01-fragmented-51.txt"))
        .unwrap()
        .replace("1000000        90000", "18446744073709551000        90000");
    let report = read(text.as_bytes()).unwrap();
    assert_eq!(report.stats.bins.iter().map(|bin| bin.size).collect::<Vec<_>>(), [8, 192]);
    assert!(report.partial && says(&report, "near 2^64"), "{:?}", report.notes);
}

#[test]
fn other_files_are_called_what_they_are() {
    for (input, looks_like) in [
        (field("h04-empty.heap"), "empty"),
        (field("h01-plain.heap"), "a heap dump (read it with `offheap top`)"),
        (field("h29a-not-a-dump.heap"), "text of another kind"),
        (field("h29b-elf.heap"), "an ELF file"),
        (field("g03b-uncompressed.pb"), "a pprof profile (read it with `offheap top`)"),
        (field("g02c-html.pb.gz"), "an HTML page"),
        (b"{\"schema\": \"offheap.top/1\", \"rows\": []}".to_vec(), "text of another kind"),
        (field("r03-mallctl-widths.out"), "text of another kind"),
    ] {
        assert_eq!(read(&input), Err(NotStatistics { looks_like }));
    }
}
