//! Profiles that are not of memory, and words that do not go together.

use crate::kit::{offheap, scratch, text};
use offheap_symbolizer::formats::pprof;
use offheap_symbolizer::profile::{Line, ProfileBuilder, Sample, ValueType};
use std::path::{Path, PathBuf};

/// A CPU profile at 100 Hz: `busy` ran for so many samples below `main`, and `malloc` for one below `busy`.
fn cpu(folder: &Path, name: &str, busy: i64) -> PathBuf {
    const PERIOD_NANOS: i64 = 10_000_000;
    let mut builder =
        ProfileBuilder::new(vec![ValueType::new("samples", "count"), ValueType::new("cpu", "nanoseconds")]);
    let [malloc, hot, main] = ["malloc", "busy", "main"].map(|name| {
        let function = builder.function(name, name, "svc.c", 1);
        builder.location_of_lines(&[Line { function, line: 3, column: 0 }])
    });
    for (locations, count) in [(vec![hot, main], busy), (vec![malloc, hot, main], 1)] {
        builder.sample(Sample { locations, values: vec![count, count * PERIOD_NANOS], ..Sample::default() });
    }
    let mut profile = builder.finish();
    profile.period = PERIOD_NANOS;
    profile.period_type = Some(ValueType::new("cpu", "nanoseconds"));
    let path = folder.join(name);
    std::fs::write(&path, pprof::encode(&profile)).expect("it can be written");
    path
}

#[test]
fn time_in_malloc_is_spent_in_malloc() {
    let folder = scratch();
    let profile = cpu(folder.path(), "cpu.pb.gz", 99);
    // One sample of 100 may as well be none or two: 1.96 standard errors of √n.
    let expected = format!(
        "samples 100 · {}\n\
         flat  flat%    sum%  cum    cum%  ±95%\n  \
         99  99.0%   99.0%  100  100.0%    20  busy\n   \
         1   1.0%  100.0%    1    1.0%     2  malloc\n   \
         0   0.0%  100.0%  100  100.0%    20  main\n",
        text(&profile)
    );
    offheap(&["top", text(&profile), "--sample", "samples"]).code(0).says("").prints(&expected);
}

#[test]
fn a_function_that_runs_ten_times_as_long_is_no_noise() {
    let folder = scratch();
    let (base, new) = (cpu(folder.path(), "base.pb.gz", 100), cpu(folder.path(), "new.pb.gz", 1000));
    for value in ["samples", "cpu"] {
        let diff = offheap(&["diff", text(&base), text(&new), "--sample", value]).code(0);
        assert!(diff.stdout.lines().any(|line| line.ends_with("busy") && line.contains("grew")), "{}", diff.stdout);
    }
}

#[test]
fn a_frame_without_a_name_is_unknown() {
    let folder = scratch();
    let stacks = folder.path().join("x.folded");
    std::fs::write(&stacks, "main;;busy 5\n;idle 2\n").expect("it can be written");
    let shown = offheap(&["top", text(&stacks)]).code(0).stdout;
    assert!(shown.lines().any(|line| line.ends_with("[unknown]") && line.contains('7')), "{shown}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = scratch();
    let (profile, svg) = (cpu(folder.path(), "cpu.pb.gz", 9), folder.path().join("x.svg"));
    offheap(&["flame", text(&profile), "--base", "h20-symbolized.heap", "-o", text(&svg)]).code(1).mentions(&[
        "cpu/nanoseconds",
        "inuse_space/bytes",
        "--sample",
    ]);
    assert!(!svg.exists());
    offheap(&["diff", "--go", "h20-symbolized.heap", "g03-four-types.pb.gz"])
        .code(1)
        .mentions(&["--go h20-symbolized.heap: a profile of native memory (jemalloc heap dump)", "--go GO NATIVE"]);
}
