//! Flame graphs: valid XML whatever the names, bounded whatever the depth.

use crate::kit::{offheap, run, scratch, text};
use std::path::Path;
use std::process::Command;

/// A strict parser, that of Python's standard library, reads the document; the titles are returned.
#[track_caller]
fn titles(svg: &Path) -> Vec<String> {
    const PROGRAM: &str = "import sys, xml.etree.ElementTree as t\n\
        for e in t.parse(sys.argv[1]).iter('{http://www.w3.org/2000/svg}title'): print(e.text)";
    let output = run(Command::new("python3").args(["-c", PROGRAM]).arg(svg)).code(0);
    output.stdout.lines().map(str::to_owned).collect()
}

#[track_caller]
fn draw(input: &str, code: i32, more: &[&str]) -> (Vec<String>, String) {
    let folder = scratch();
    let svg = folder.path().join("x.svg");
    offheap(&[&["flame", input, "-o", text(&svg)], more].concat()).code(code);
    let titles = titles(&svg);
    (titles, std::fs::read_to_string(&svg).expect("it was written"))
}

#[test]
fn sizes_are_for_people() {
    let (titles, svg) = draw("h20-symbolized.heap", 0, &[]);
    assert!(titles.contains(&"all (2.51 MiB, 100.00%)".into()), "{titles:#?}");
    assert!(titles.contains(&"store::Arena::grow (1.51 MiB, 60.00%)".into()), "{titles:#?}");
    assert!(svg.contains("inuse_space 2.51 MiB · h20-symbolized.heap"));
    let (titles, _) = draw("h20-symbolized.heap", 0, &["--by", "objects"]);
    assert!(titles.contains(&"all (643 objects, 100.00%)".into()), "{titles:#?}");
}

#[test]
fn hostile_names_are_text() {
    let (titles, svg) = draw("f01-hostile-names.folded", 0, &[]);
    assert!(titles.iter().any(|title| title.starts_with("\"quoted\" & <tag> (")), "{titles:#?}");
    assert!(titles.iter().any(|title| title.starts_with("operator<< <int>(std::ostream&, int) (")), "{titles:#?}");
    assert!(!svg.contains('\x1b') && !svg.contains('\0'));
}

#[test]
fn depth_is_bounded() {
    for input in ["f02-deep-40000.folded", "h25b-40000-frames.heap"] {
        let (titles, svg) = draw(input, 0, &[]);
        assert!(titles.len() < 300, "{input}: {} frames", titles.len());
        assert!(titles.iter().any(|title| title.contains("frames not drawn]")), "{input}");
        assert!(svg.len() < 200_000, "{input}: {} bytes", svg.len());
    }
}

#[test]
fn nothing_to_draw_is_a_small_picture_that_says_so() {
    for input in ["f03-empty.folded", "f05-all-zero.folded", "h03-no-stacks.heap", "g13-empty-but-valid.pb.gz"] {
        let (titles, svg) = draw(input, 3, &[]);
        assert!(titles.is_empty() && svg.len() < 1000 && svg.contains("Nothing to draw"), "{input}: {svg}");
    }
}

#[test]
fn a_differential_graph_says_what_changed() {
    let (titles, svg) = draw("h20-symbolized.heap", 0, &["--base", "h20-symbolized.heap"]);
    assert!(titles.contains(&"all (2.51 MiB, 100.00%; 0 B against the base)".into()), "{titles:#?}");
    assert!(svg.contains("against the base"), "the title tells");
    let (titles, _) = draw("g03-four-types.pb.gz", 0, &["--base", "h03-no-stacks.heap"]);
    assert!(titles.iter().all(|title| title.contains("; +")), "{titles:#?}");
}
