//! What `promtool` makes of the rules.

use crate::kit::{offheap, succeed};
use std::path::Path;
use std::process::Command;

fn promtool(arguments: &[&str], file: &Path) {
    succeed(Command::new("promtool").args(arguments).arg(file), 0);
}

/// Write the rules with these options into a folder.
fn rules(folder: &Path, options: &[&str]) -> std::path::PathBuf {
    let path = folder.join("rules.yml");
    std::fs::write(&path, succeed(offheap().arg("rules").args(options), 0).stdout).expect("the file can be written");
    path
}

/// The series of one instance, constant for twenty minutes. `None`: there is no such series.
#[derive(Clone, Copy)]
struct Instance {
    name: &'static str,
    up: bool,
    index: Option<f64>,
    rss: u64,
    active: u64,
    go: Option<u64>,
}

const GB: u64 = 1_000_000_000;
const LARGE: Instance =
    Instance { name: "", up: true, index: Some(0.5), rss: 4 * GB, active: 3 * GB, go: Some(2 * GB) };

impl Instance {
    fn series(&self) -> String {
        let mut text = String::new();
        let mut add = |metric: &str, value: f64| {
            text.push_str(&format!(
                "      - {{series: '{metric}{{instance=\"{}\"}}', values: '{value}x20'}}\n",
                self.name
            ));
        };
        add("offheap_up", f64::from(u8::from(self.up)));
        add("process_resident_memory_bytes", self.rss as f64);
        add("jemalloc_active_bytes", self.active as f64);
        add("jemalloc_resident_bytes", self.active as f64 + 1e6);
        if let Some(index) = self.index {
            add("offheap_fragmentation_index", index);
            add("jemalloc_allocated_bytes", self.active as f64 * (1.0 - index));
        }
        if let Some(go) = self.go {
            add("go_memstats_heap_inuse_bytes", go as f64);
        }
        text
    }
}

fn expectation(alert: &str, at: &str, instances: &[&str]) -> String {
    let mut text = format!(
        "      - expr: count by (instance) (ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}})\n        eval_time: {at}\n        exp_samples:{}\n",
        if instances.is_empty() { " []" } else { "" }
    );
    for instance in instances {
        text.push_str(&format!("          - {{labels: '{{instance=\"{instance}\"}}', value: 1}}\n"));
    }
    text
}

#[test]
fn promtool_accepts_the_rules() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    for options in [
        &[][..],
        &["--for", "0s", "--index", "0.1", "--min-rss", "1MB"],
        &["--selector", r#"job="offheap",env=~"prod|test""#, "--go-metric", "go_heap", "--on", "namespace,pod"],
    ] {
        promtool(&["check", "rules"], &rules(folder.path(), options));
    }
}

#[test]
fn alerts_are_raised_above_each_threshold_and_only_there() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    rules(folder.path(), &[]);
    let instances = [
        Instance { name: "fragmented", ..LARGE },
        Instance { name: "index-at-threshold", index: Some(0.35), ..LARGE },
        Instance { name: "index-below", index: Some(0.1), ..LARGE },
        Instance { name: "rss-at-threshold", rss: 1_500_000_000, active: GB, go: Some(GB), ..LARGE },
        Instance { name: "rss-small", rss: GB, active: GB / 2, go: Some(GB), ..LARGE },
        Instance { name: "tiny-heap", active: 20_000_000, ..LARGE },
        Instance { name: "active-far-above-rss", active: 9 * GB, ..LARGE },
        Instance { name: "allocated-above-active", index: Some(-0.01), ..LARGE },
        Instance { name: "no-statistics", index: None, ..LARGE },
        Instance { name: "down", up: false, index: None, ..LARGE },
        Instance { name: "go-small", index: Some(0.1), go: Some(GB), ..LARGE },
        Instance { name: "go-ratio-at-threshold", index: Some(0.1), rss: 6 * GB, ..LARGE },
        Instance {
            name: "go-small-process-small",
            index: Some(0.1),
            rss: 2 * GB,
            active: GB,
            go: Some(GB / 10),
            ..LARGE
        },
        Instance { name: "go-zero", index: Some(0.1), go: Some(0), ..LARGE },
        Instance { name: "no-go", index: Some(0.1), go: None, ..LARGE },
    ];
    let not_measured = ["allocated-above-active", "down", "no-statistics"];
    let mut text =
        "rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n".to_owned();
    text.extend(instances.iter().map(Instance::series));
    text.push_str("    promql_expr_test:\n");
    text.push_str(&expectation("HighMemoryFragmentation", "4m", &[]));
    text.push_str(&expectation("HighMemoryFragmentation", "6m", &["fragmented"]));
    text.push_str(&expectation("GoHeapToRssMismatch", "9m", &[]));
    text.push_str(&expectation("GoHeapToRssMismatch", "11m", &["go-small"]));
    text.push_str(&expectation("OffheapNotMeasured", "6m", &not_measured));
    let path = folder.path().join("test.yml");
    std::fs::write(&path, text).expect("the file can be written");
    promtool(&["test", "rules"], &path);
}

#[test]
fn an_index_that_comes_back_down_raises_nothing() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    rules(folder.path(), &[]);
    let mut text =
        "rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n".to_owned();
    text.push_str(&Instance { name: "a", ..LARGE }.series().replace("'0.5x20'", "'0.5x3 0.1x3 0.5x9'"));
    text.push_str("    promql_expr_test:\n");
    text.push_str(&expectation("HighMemoryFragmentation", "7m", &[]));
    text.push_str(&expectation("HighMemoryFragmentation", "14m", &["a"]));
    let path = folder.path().join("test.yml");
    std::fs::write(&path, text).expect("the file can be written");
    promtool(&["test", "rules"], &path);
}

#[test]
fn the_dashboard_is_printed() {
    let dashboard = crate::kit::json(offheap().args(["rules", "--dashboard"]));
    assert_eq!(dashboard["uid"], "offheap");
}
