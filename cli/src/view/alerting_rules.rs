//! The thresholds of `check` as alerting rules for Prometheus.

use crate::analysis::check::{GO_MISMATCH, HIGH_FRAGMENTATION, Thresholds};
use std::time::Duration;

/// Alert for targets of which the others could not say anything: for Prometheus, what is missing raises no alert.
pub(crate) const NOT_MEASURED: &str = "OffheapNotMeasured";

/// What of the expressions depends on the installation.
#[derive(Clone, Debug)]
pub(crate) struct Series<'a> {
    /// Label matchers of every series, without braces.
    pub(crate) selector: &'a str,
    /// Name of the series with the Go heap in use.
    pub(crate) go_heap: &'a str,
    /// Labels by which that one is joined; all of them when `None`.
    pub(crate) on: Option<&'a str>,
}

/// The rules file.
pub(crate) fn render(thresholds: &Thresholds, series: &Series<'_>) -> String {
    let Thresholds { index, min_rss, min_waste, go_ratio, go_min_rss, .. } = thresholds;
    let s = if series.selector.is_empty() { String::new() } else { format!("{{{}}}", series.selector) };
    let on = series.on.map_or_else(String::new, |labels| format!("on({labels}) "));
    let go_heap = series.go_heap;
    let (index_for, go_for) = (time(thresholds.index_for), time(thresholds.go_for));
    format!(
        r#"# Thresholds of `offheap check`, over the metrics of the agent and of `offheap serve`.
groups:
  - name: offheap
    rules:
      - alert: {HIGH_FRAGMENTATION}
        # A large process, an index above the threshold, and so much lost that it matters; numbers that contradict each
        # other raise nothing here but {NOT_MEASURED}.
        expr: |-
          offheap_fragmentation_index{s} > {index}
            and process_resident_memory_bytes{s} > {min_rss}
            and jemalloc_active_bytes{s} - jemalloc_allocated_bytes{s} >= {min_waste}
            and jemalloc_active_bytes{s} <= jemalloc_resident_bytes{s}
            and jemalloc_active_bytes{s} <= 2 * process_resident_memory_bytes{s}
        for: {index_for}
        labels:
          severity: warning
        annotations:
          summary: "Off-heap memory of {{{{ $labels.instance }}}} {{{{ $labels.target }}}} is fragmented: index {{{{ printf \"%.2f\" $value }}}}"
          description: "Pages that the allocator keeps active hold few live objects. `offheap frag` names the size classes and who lives in them."
      - alert: {GO_MISMATCH}
        expr: |-
          process_resident_memory_bytes{s} / {on}({go_heap}{s} > 0) > {go_ratio}
            and process_resident_memory_bytes{s} > {go_min_rss}
        for: {go_for}
        labels:
          severity: critical
        annotations:
          summary: "RSS of {{{{ $labels.instance }}}} {{{{ $labels.target }}}} is {{{{ printf \"%.1f\" $value }}}} times its Go heap in use"
          description: "Most of the memory is outside the Go heap. `offheap ledger` says where, `offheap top` who holds it."
      - alert: {NOT_MEASURED}
        # Down, without statistics, or with statistics that cannot be true.
        expr: |-
          offheap_up{s} == 0
            or (offheap_up{s} unless offheap_fragmentation_index{s})
            or (offheap_up{s} and offheap_fragmentation_index{s} < 0)
        for: {index_for}
        labels:
          severity: warning
        annotations:
          summary: "Fragmentation of {{{{ $labels.instance }}}} {{{{ $labels.target }}}} is unknown"
          description: "The agent does not answer, or its numbers contradict each other. `offheap check` says which."
"#
    )
}

/// A duration as Prometheus reads it.
fn time(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::{Series, Thresholds, render};
    use std::time::Duration;

    #[test]
    fn thresholds_selector_and_join_are_where_they_belong() {
        let thresholds = Thresholds { index: 0.5, index_for: Duration::from_millis(1500), ..Thresholds::default() };
        let series = Series { selector: r#"job="x""#, go_heap: "go_memstats_heap_inuse_bytes", on: Some("pod") };
        let text = render(&thresholds, &series);
        for part in [
            r#"offheap_fragmentation_index{job="x"} > 0.5"#,
            "for: 1500ms",
            "for: 600s",
            r#"process_resident_memory_bytes{job="x"} / on(pod) (go_memstats_heap_inuse_bytes{job="x"} > 0) > 3"#,
            "{{ $labels.instance }}",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let bare = render(&Thresholds::default(), &Series { selector: "", go_heap: "g", on: None });
        assert!(bare.contains("offheap_fragmentation_index > 0.35\n"), "{bare}");
        assert!(bare.contains("process_resident_memory_bytes / (g > 0) > 3\n"), "{bare}");
    }
}
