//! A heap profile that Go wrote in both of its forms at one moment (`testdata/profiles`, from `go-heap.go.txt`).

use offheap_symbolizer::formats::{Parsed, parse};
use offheap_symbolizer::profile::GroupBy;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn read(name: &str) -> Parsed {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/profiles").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Flat and cumulative value by function.
fn table(parsed: &Parsed, value: usize) -> BTreeMap<String, (i64, i64)> {
    let rows = parsed.profile.rank(value, GroupBy::Function).rows;
    rows.into_iter().map(|row| (row.node.name.to_string(), (row.flat, row.cum))).collect()
}

/// The text is unscaled and carries twice the period, the protobuf is scaled by Go itself: after reading they agree.
#[test]
fn both_forms_give_the_same_tables() {
    let (protobuf, text) = (read("go-heap.pb.gz"), read("go-heap.debug1.txt"));
    assert_eq!(protobuf.profile.value_types, text.profile.value_types);
    assert_eq!((protobuf.profile.period, text.profile.period), (524_288, 524_288));
    // Go drops the fraction of each sample where this reader rounds.
    let tolerance = text.profile.samples.len() as i64;
    for value in 0..4 {
        let (expected, read) = (table(&protobuf, value), table(&text, value));
        assert_eq!(read.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, (flat, cum)) in expected {
            let (read_flat, read_cum) = read[&name];
            assert!((read_flat - flat).abs() <= tolerance, "{name}: {read_flat} instead of {flat}");
            assert!((read_cum - cum).abs() <= tolerance, "{name}: {read_cum} instead of {cum}");
        }
    }
}

#[test]
fn samples_agree_one_by_one() {
    let (protobuf, text) = (read("go-heap.pb.gz"), read("go-heap.debug1.txt"));
    let key = |parsed: &Parsed| {
        let mut samples: Vec<_> = parsed
            .profile
            .samples
            .iter()
            .map(|s| {
                let stack: Vec<u64> = s.locations.iter().map(|&id| parsed.profile.location(id).address.0).collect();
                (stack, s.label_number("bytes"))
            })
            .collect();
        samples.sort();
        samples
    };
    assert_eq!(key(&protobuf), key(&text));
}
