//! Folded stacks: `f*`.

use crate::kit::{field, read, refused};
use offheap_symbolizer::formats::folded;
use offheap_symbolizer::profile::GroupBy;

#[test]
fn hostile_names_are_read_as_they_stand() {
    let parsed = read("f01-hostile-names.folded");
    assert_eq!((parsed.format, &parsed.damage[..]), ("folded stacks", &[][..]));
    let rows = parsed.profile.rank(0, GroupBy::Function).rows;
    let mut rows: Vec<(&str, i64)> = rows.iter().filter(|r| r.flat != 0).map(|r| (&*r.node.name, r.flat)).collect();
    rows.sort_unstable();
    assert_eq!(rows, [("\"quoted\" & <tag>", 3), ("caf\u{fffd}", 2), ("f", 7), ("h 1 extra", 4)]);
}

#[test]
fn deep_stacks_are_read_whole() {
    let parsed = read("f02-deep-40000.folded");
    assert_eq!(parsed.profile.samples[0].locations.len(), 40_000);
}

#[test]
fn nothing_to_draw_is_valid() {
    let parsed = read("f05-all-zero.folded");
    assert_eq!((parsed.profile.samples.len(), parsed.notes.len()), (0, 1));
    // An empty file has no content to be recognised by; who knows that it is of folded stacks reads it as such.
    assert!(refused("f03-empty.folded").to_string().contains("empty"));
    assert_eq!(folded::read(&field("f03-empty.folded")).expect("valid").profile.samples.len(), 0);
}
