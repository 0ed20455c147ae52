//! Our files in the hands of the stock `go tool pprof`, and its tables beside ours.

use offheap_symbolizer::formats::{parse, pprof};
use offheap_symbolizer::profile::{Filter, FunctionId, GroupBy, Label, Line, Part, Profile, diff_profile, merge};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(name)
}

fn read(path: &Path) -> Profile {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display())).profile
}

/// A native profile with names: the stacks of a recorded dump, each location called after its offset.
fn native(dump: &str) -> Profile {
    let mut profile = read(&testdata(dump));
    for index in 0..profile.locations.len() {
        let name: std::sync::Arc<str> = format!("native_{:x}", profile.locations[index].address.0 & 0xffff).into();
        let function = offheap_symbolizer::profile::Function {
            name: name.clone(),
            system_name: name,
            file: "native.c".into(),
            start_line: 1,
        };
        profile.functions.push(function);
        let function = FunctionId(profile.functions.len() as u32 - 1);
        profile.locations[index].lines = vec![Line { function, line: 7, column: 0 }];
    }
    profile.refresh_mapping_flags();
    profile
}

/// A folder for the files of one test.
struct Kit {
    folder: tempfile::TempDir,
    go: PathBuf,
}

impl Kit {
    /// `None`, with a word on it, when there is no Go.
    fn new() -> Option<Self> {
        let candidates = [PathBuf::from("go"), PathBuf::from("/usr/local/go/bin/go")];
        let works = |go: &PathBuf| Command::new(go).arg("version").output().is_ok_and(|o| o.status.success());
        let Some(go) = candidates.into_iter().find(works) else {
            #[expect(clippy::print_stderr, reason = "a skipped test says so")]
            {
                eprintln!("SKIPPED: no Go toolchain; scripts/setup installs one");
            }
            return None;
        };
        Some(Self { folder: tempfile::tempdir().expect("a folder"), go })
    }

    fn write(&self, name: &str, profile: &Profile) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, pprof::encode(profile)).expect("a file");
        path
    }

    /// Standard output; complaints fail the test.
    fn pprof(&self, arguments: &[&str], files: &[&Path]) -> String {
        let output = Command::new(&self.go)
            .args(["tool", "pprof", "-symbolize=none"])
            .args(arguments)
            .args(files)
            .env("PPROF_TMPDIR", self.folder.path())
            .output()
            .expect("go runs");
        let complaints = String::from_utf8_lossy(&output.stderr);
        let serious = complaints.lines().filter(|line| !line.starts_with("Generating report in")).collect::<Vec<_>>();
        assert!(output.status.success() && serious.is_empty(), "{arguments:?}: {complaints}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `-top` as flat and cumulative bytes by function.
    fn top(&self, arguments: &[&str], files: &[&Path]) -> BTreeMap<String, (i64, i64)> {
        let all = ["-top", "-unit=bytes", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0"];
        let text = self.pprof(&[&all, arguments].concat(), files);
        let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
        rows.map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let bytes = |word: &str| word.trim_end_matches('B').parse::<i64>().expect(line);
            (words[5..].join(" ").trim_end_matches(" (inline)").to_owned(), (bytes(words[0]), bytes(words[3])))
        })
        .collect()
    }
}

/// Our table in the same shape. Rows of nothing are left out there.
fn ours(profile: &Profile, value: &str) -> BTreeMap<String, (i64, i64)> {
    let value = profile.value_index(value).expect("a heap profile");
    let rows = profile.rank(value, GroupBy::Function).rows;
    rows.into_iter().map(|row| (row.node.name.to_string(), (row.flat, row.cum))).filter(|(_, v)| *v != (0, 0)).collect()
}

#[test]
fn stock_tools_see_gos_four_values_and_all_parts() {
    let Some(kit) = Kit::new() else { return };
    let file = kit.write("native.pb.gz", &native("field/r01-live-mixed-530.heap"));
    let raw = kit.pprof(&["-raw"], &[&file]);
    assert!(raw.starts_with("PeriodType: space bytes\nPeriod: 524288\n"), "{raw}");
    assert!(raw.contains("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes\n"), "{raw}");
    assert!(raw.contains("origin:[native]") && raw.contains("bytes:[8388608]"), "{raw}");
    let mappings: Vec<&str> = raw.lines().skip_while(|line| *line != "Mappings").skip(1).collect();
    assert_eq!(mappings[0], "1: 0x55f6d613c000/0x55f6d613d000/0x1000 /srv/demo/mix  [FN][FL][LN]");
    assert_eq!(mappings.len(), 9, "{mappings:#?}");
    assert!(mappings[8].starts_with("9: 0xffffffffff600000/0xffffffffff601000/0x0 [vsyscall]"), "{mappings:#?}");
}

#[test]
fn tables_are_those_of_stock_tools() {
    let Some(kit) = Kit::new() else { return };
    let native = native("field/r01-live-mixed-530.heap");
    let go = read(&testdata("profiles/go-heap.pb.gz"));
    for (name, profile) in [("native.pb.gz", &native), ("go.pb.gz", &go)] {
        let file = kit.write(name, profile);
        for value in ["alloc_space", "inuse_space"] {
            let theirs = kit.top(&[&format!("-sample_index={value}")], &[&file]);
            let theirs: BTreeMap<_, _> = theirs.into_iter().filter(|(_, v)| *v != (0, 0)).collect();
            assert_eq!(ours(profile, value), theirs, "{name} {value}");
        }
    }
}

#[test]
fn native_and_go_profiles_merge() {
    let Some(kit) = Kit::new() else { return };
    let native = native("field/r01-live-mixed-530.heap");
    let go = read(&testdata("profiles/go-heap.pb.gz"));
    let native_file = kit.write("native.pb.gz", &native);
    let out = kit.folder.path().join("merged.pb.gz");
    let output = format!("-output={}", out.display());
    kit.pprof(&["-proto", &output], &[&testdata("profiles/go-heap.pb.gz"), &native_file]);
    let merged = read(&out);
    assert_eq!(merged.value_types, go.value_types);
    for value in 0..4 {
        assert_eq!(merged.total(value), go.total(value) + native.total(value), "value {value}");
    }
    // The same from our own hands, told apart by label.
    let parts = [
        Part::new(&go).labelled(Label::text("origin", "go")),
        Part::new(&native).labelled(Label::text("origin", "native")),
    ];
    let file = kit.write("ours.pb.gz", &merge(&parts).expect("alike"));
    for (origin, expected) in [("go", go.total(3)), ("native", native.total(3))] {
        let focus = format!("-tagfocus=origin={origin}");
        let sum: i64 = kit.top(&["-sample_index=inuse_space", &focus], &[&file]).values().map(|(flat, _)| flat).sum();
        assert_eq!(sum, expected, "{origin}");
    }
}

#[test]
fn a_difference_has_the_values_of_diff_base() {
    let Some(kit) = Kit::new() else { return };
    let base = read(&testdata("profiles/go-heap.pb.gz"));
    // What changes: one sample is gone, one doubled, and everything comes from another address.
    let mut new = base.clone();
    new.samples.remove(0);
    new.samples[0].values.iter_mut().for_each(|value| *value *= 2);
    for mapping in &mut new.mappings {
        (mapping.start.0, mapping.end.0) = (mapping.start.0.wrapping_add(0x10000), mapping.end.0.wrapping_add(0x10000));
    }
    new.locations.iter_mut().for_each(|location| location.address.0 += 0x10000);
    let (base_file, new_file) = (kit.write("base.pb.gz", &base), kit.write("new.pb.gz", &new));
    let file = kit.write("diff.pb.gz", &diff_profile(&base, &new).expect("alike"));
    for value in ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"] {
        let index = format!("-sample_index={value}");
        let diff_base = format!("-diff_base={}", base_file.display());
        let text = |arguments: &[&str], file: &Path| {
            let all = ["-top", "-nodecount=100000", "-nodefraction=0", &index];
            let text = kit.pprof(&[&all, arguments].concat(), &[file]);
            let table = text.lines().skip_while(|line| !line.starts_with("Showing nodes")).map(str::to_owned);
            table.collect::<Vec<_>>()
        };
        let (theirs, ours) = (text(&[&diff_base], &new_file), text(&[], &file));
        assert!(theirs.len() > 2, "{theirs:#?}");
        assert_eq!(theirs, ours, "{value}");
    }
}

#[test]
fn filters_mean_what_they_mean_there() {
    let Some(kit) = Kit::new() else { return };
    let file = testdata("profiles/go-heap.pb.gz");
    let has = |text: &'static str| move |name: &str| name.contains(text);
    let (small, large, main, runtime) = (has("keepSmall"), has("keepLarge"), has("main.main"), has("runtime"));
    let cases: [(&[&str], Filter<'_>); 6] = [
        (&["-focus=keepSmall"], Filter { focus: Some(&small), ..Filter::default() }),
        (&["-ignore=keepLarge"], Filter { ignore: Some(&large), ..Filter::default() }),
        (&["-hide=keepSmall"], Filter { hide: Some(&small), ..Filter::default() }),
        (&["-show=main.main"], Filter { show: Some(&main), ..Filter::default() }),
        (
            &["-hide=runtime", "-focus=main.main"],
            Filter { hide: Some(&runtime), focus: Some(&main), ..Filter::default() },
        ),
        (
            &["-show=runtime", "-ignore=keepSmall"],
            Filter { show: Some(&runtime), ignore: Some(&small), ..Filter::default() },
        ),
    ];
    for (arguments, filter) in cases {
        let mut profile = read(&file);
        profile.filter(&filter);
        let theirs = kit.top(&[&["-sample_index=alloc_space"], arguments].concat(), &[&file]);
        let theirs: BTreeMap<_, _> = theirs.into_iter().filter(|(_, v)| *v != (0, 0)).collect();
        assert_eq!(ours(&profile, "alloc_space"), theirs, "{arguments:?}");
    }
}
