//! No input makes a reader panic, hang, or break what holds of every profile.

#[path = "support/invariants.rs"]
mod invariants;

use invariants::check;
use proptest::prelude::*;
use std::path::PathBuf;

/// Small valid and broken inputs of every format.
fn seeds() -> Vec<Vec<u8>> {
    let field = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/field");
    let profiles = field.with_file_name("profiles");
    let mut paths: Vec<PathBuf> = [field, profiles]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("test data"))
        .map(|entry| entry.expect("test data").path())
        .collect();
    paths.sort();
    let mut seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).expect("test data")).collect();
    seeds.retain(|bytes| bytes.len() < 8 << 10);
    seeds.push(br#"{"schema":"offheap.samples/1","taken_at":17e8,"pid":7,"lg_sample":19,"maps":"1000-2000 r-xp 0 0:0 1 /a\n","threads":{"1":"w"},"sites":[{"stack":[4112],"alloc_objects":2.0,"alloc_bytes":32.0,"live":[{"size":16,"usable":16,"age":1.5,"thread":1}]}]}"#.to_vec());
    seeds
}

/// One change to an input, at a place given as a fraction of its length.
#[derive(Clone, Debug)]
enum Change {
    Byte(f64, u8),
    Insert(f64, Vec<u8>),
    Remove(f64, usize),
    Repeat(f64, usize),
    Cut(f64),
}

fn change() -> impl Strategy<Value = Change> {
    let place = 0.0..1.0_f64;
    let words: Vec<&'static [u8]> = vec![
        b"18446744073709551615",
        b"-1",
        b"0",
        b"@",
        b"\n",
        b"  t*: 1: 1 [1: 1]\n",
        b"\nMAPPED_LIBRARIES:\n",
        b"heap_v2/",
        b"\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80",
        b";",
        b"0x",
        b"ffffffffffffffff",
        b"[",
        b"]",
        b":",
    ];
    prop_oneof![
        (place.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (place.clone(), proptest::sample::select(words)).prop_map(|(at, word)| Change::Insert(at, word.to_vec())),
        (place.clone(), 1..40_usize).prop_map(|(at, n)| Change::Remove(at, n)),
        (place.clone(), 1..200_usize).prop_map(|(at, n)| Change::Repeat(at, n)),
        place.prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: Change) {
    let length = bytes.len();
    let place = |at: f64| ((length as f64 * at) as usize).min(length);
    let range = |at: f64, n: usize| place(at)..(place(at) + n).min(length);
    match change {
        Change::Byte(at, byte) => {
            if let Some(to) = bytes.get_mut(place(at)) {
                *to = byte;
            }
        }
        Change::Insert(at, word) => drop(bytes.splice(place(at)..place(at), word)),
        Change::Remove(at, n) => drop(bytes.drain(range(at, n))),
        Change::Repeat(at, n) => {
            let chunk = bytes[range(at, n)].to_vec();
            drop(bytes.splice(place(at)..place(at), chunk));
        }
        Change::Cut(at) => bytes.truncate(place(at)),
    }
}

#[test]
fn the_seeds_themselves() {
    let read = seeds().iter().filter(|seed| check(seed)).count();
    assert!(read > 25, "{read} seeds are profiles");
}

/// A field that claims more bytes than there are, in every wire type and at every level.
#[test]
fn lengths_without_bytes_ask_for_no_memory() {
    let valid_start = [0x0a, 4, 0x08, 1, 0x10, 2];
    for field in 1..=15_u8 {
        for length in
            [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]]
        {
            let mut message = valid_start.to_vec();
            message.push(field << 3 | 2);
            message.extend(length);
            check(&message);
            // The same inside a sample: a packed list of values.
            let mut inner = vec![0x12];
            inner.extend(length);
            let mut message = valid_start.to_vec();
            message.extend([field << 3 | 2, inner.len() as u8]);
            message.extend(inner);
            check(&message);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        check(&bytes);
    }

    #[test]
    fn arbitrary_bytes_after_a_header(
        header in proptest::sample::select(vec![
            &b"heap_v2/524288\n"[..], b"heap profile: 1: 1 [1: 1] @ heap_v2/1\n", b"heap profile: 1: 1 [1: 1] @ heap/2\n",
            b"\x0a\x04\x08\x01\x10\x02", b"a;b 1\n", b"{\"schema\":\"offheap.samples/1\",", b"--- symbol\n",
            b"heap_v2/1\nMAPPED_LIBRARIES:\n", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
        ]),
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        check(&[header, &rest].concat());
    }

    #[test]
    fn changed_inputs(seed in any::<proptest::sample::Index>(), changes in proptest::collection::vec(change(), 1..6)) {
        let mut bytes = seed.get(&seeds()).clone();
        changes.into_iter().for_each(|change| apply(&mut bytes, change));
        check(&bytes);
    }
}
