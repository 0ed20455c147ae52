//! Go heap profiles: `g*` and `r05`.

use crate::kit::{read, refused, totals};
use offheap_symbolizer::formats::Origin;
use offheap_symbolizer::profile::GroupBy;

#[test]
fn whole_profiles_hold_what_they_state() {
    // 1,048,576 bytes in one object at a period of 524,288: k = 1/(1 − e⁻²) = 1.1565.
    let table: &[(&str, &str, usize, [i64; 4])] = &[
        ("g01-debug1.txt", "Go heap profile (text)", 2, [2 + 20, 2_425_393 + 5_329_899, 1, 1_212_697]),
        ("g03-four-types.pb.gz", "pprof protobuf", 1, [10, 4_194_304, 3, 1_056_768]),
        ("g03b-uncompressed.pb", "pprof protobuf", 1, [10, 4_194_304, 3, 1_056_768]),
        ("g05-negative-inuse.pb.gz", "pprof protobuf", 1, [10, 4_194_304, -2, -8192]),
        ("g07-sparse-ids.pb.gz", "pprof protobuf", 1, [1, 2, 1, 2]),
        ("g10-no-mapping.pb.gz", "pprof protobuf", 1, [10, 4_194_304, 3, 1_056_768]),
        ("g12-normalised-mapping-zeroed.pb.gz", "pprof protobuf", 1, [1, 2, 1, 2]),
        ("g13-empty-but-valid.pb.gz", "pprof protobuf", 0, [0; 4]),
    ];
    for &(name, format, samples, expected) in table {
        let parsed = read(name);
        assert_eq!((parsed.format, &parsed.damage[..]), (format, &[][..]), "{name}");
        assert_eq!(parsed.profile.samples.len(), samples, "{name}");
        assert_eq!(totals(&parsed), expected, "{name}");
        assert_eq!(parsed.profile.period, 524_288, "{name}");
    }
}

#[test]
fn two_value_types_are_told_by_name() {
    let parsed = read("g04-two-types.pb.gz");
    let profile = &parsed.profile;
    assert_eq!((profile.value_index("inuse_objects"), profile.value_index("inuse_space")), (Some(0), Some(1)));
    assert_eq!((profile.value_index("alloc_space"), profile.total(1)), (None, 1_056_768));
}

#[test]
fn locations_keep_their_names_and_mappings() {
    for (name, rows, mapped) in [
        ("g03-four-types.pb.gz", vec!["example.test/ingest.load", "main.main"], vec![true, true]),
        ("g07-sparse-ids.pb.gz", vec!["example.test/ingest.load", "ingest+0xa1fff"], vec![false, true]),
        ("g12-normalised-mapping-zeroed.pb.gz", vec!["ingest+0xa1b2b", "ingest+0xa1fff"], vec![true, true]),
    ] {
        let parsed = read(name);
        let table = parsed.profile.rank(3, GroupBy::Function);
        let names: Vec<&str> = table.rows.iter().map(|row| &*row.node.name).collect();
        assert_eq!(names, rows, "{name}");
        let has_mapping: Vec<bool> = parsed.profile.locations.iter().map(|l| l.mapping.is_some()).collect();
        assert_eq!(has_mapping, mapped, "{name}");
    }
    assert_eq!(read("g03-four-types.pb.gz").origin, Origin::Go);
}

#[test]
fn what_is_no_profile_is_named() {
    for (name, words) in [
        ("g02-empty.pb.gz", "empty"),
        ("g02b-ten-bytes.pb.gz", "gzip stream is cut; 0 bytes"),
        ("g02c-html.pb.gz", "HTML"),
        ("g03c-cut.pb.gz", "gzip stream is cut"),
    ] {
        let message = refused(name).to_string();
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[test]
fn the_text_form_has_names_and_statistics() {
    let parsed = read("g01-debug1.txt");
    let names: Vec<String> = parsed
        .profile
        .samples
        .iter()
        .map(|sample| {
            let lines = sample.locations.iter().flat_map(|&id| &parsed.profile.location(id).lines);
            lines.map(|line| parsed.profile.function(line.function).name.to_string()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(names, ["example.test/ingest.load main.main", "example.test/ingest.(*Batch[...]).Add"]);
    let stats = parsed.go_memstats.expect("a block of statistics");
    assert_eq!((stats.alloc, stats.heap_alloc, stats.heap_idle), (Some(1_056_768), Some(1_056_768), None));

    let parsed = read("r05-live-go126-debug1.txt");
    assert_eq!(parsed.damage, []);
    let stats = parsed.go_memstats.expect("a block of statistics");
    assert_eq!(
        (stats.sys, stats.heap_sys, stats.heap_idle, stats.heap_inuse, stats.heap_released),
        (Some(197_175_608), Some(192_643_072), Some(15_974_400), Some(176_668_672), Some(6_520_832))
    );
    assert_eq!((stats.stack_inuse, stats.stack_sys, stats.mspan_sys), (Some(294_912), Some(294_912), Some(97_920)));
    assert_eq!((stats.gc_sys, stats.other_sys, stats.buck_hash_sys), (Some(2_135_328), Some(542_277), Some(1_446_027)));
    assert_eq!((stats.max_rss, stats.num_gc), (Some(20_598_784), Some(10)));
    let rows = parsed.profile.rank(3, GroupBy::Function).rows;
    assert_eq!(&*rows[0].node.name, "main.big");
}
