//! Prometheus text.

use super::jobs::Agent;
use super::mallctl::MallctlError;
use offheap_wire::Stats;
use std::fmt::Write;

/// A metric: name, type, help, value.
type Metric = (&'static str, &'static str, &'static str, Option<f64>);

impl Agent {
    /// `GET /metrics`. What could not be read is left out: absent is not zero.
    pub(crate) fn metrics(&self) -> Result<String, MallctlError> {
        let stats = self.stats.read()?;
        let profile = self.profiler.state();
        let counters = self.counters();
        let mut text = render(&allocator_metrics(&stats));
        text += &render(&[
            ("offheap_profile_active", "gauge", "1 while allocations are sampled", Some(f64::from(profile.active))),
            (
                "offheap_profile_lg_sample",
                "gauge",
                "Base-2 logarithm of the mean bytes between samples",
                Some(f64::from(profile.lg_sample)),
            ),
            ("offheap_agent_own_bytes", "gauge", "Bytes that the agent itself holds", Some(counters.own_bytes as f64)),
            ("offheap_agent_stacks_total", "counter", "Stacks recorded", Some(counters.stacks as f64)),
            (
                "offheap_agent_stacks_with_go_total",
                "counter",
                "Stacks that crossed from C into Go",
                Some(counters.stacks_with_go as f64),
            ),
            ("offheap_agent_samples_live", "gauge", "Live samples held", Some(counters.samples_live as f64)),
            (
                "offheap_agent_samples_dropped_total",
                "counter",
                "Samples that did not fit",
                Some(counters.samples_dropped as f64),
            ),
            ("offheap_agent_requests_total", "counter", "Requests answered", Some(counters.requests as f64)),
            ("offheap_agent_rejected_total", "counter", "Connections refused", Some(counters.rejected as f64)),
            ("offheap_agent_dumps_total", "counter", "Dumps made", Some(counters.dumps as f64)),
        ]);
        let ends = "offheap_agent_stack_ends_total";
        let _ = writeln!(text, "# HELP {ends} Stacks recorded, by how they ended\n# TYPE {ends} counter");
        for (reason, count) in &counters.stack_ends {
            let _ = writeln!(text, "{ends}{{reason=\"{reason}\"}} {count}");
        }
        Ok(text)
    }
}

fn allocator_metrics(stats: &Stats) -> [Metric; 11] {
    let bytes = |value: Option<u64>| value.map(|value| value as f64);
    // 1 - allocated/active; without active pages there is nothing to be fragmented, so no value.
    let index = stats.allocated.zip(stats.active).filter(|&(_, active)| active > 0);
    let index = index.map(|(allocated, active)| 1.0 - allocated as f64 / active as f64);
    [
        ("jemalloc_allocated_bytes", "gauge", "Bytes allocated by the program", bytes(stats.allocated)),
        ("jemalloc_active_bytes", "gauge", "Bytes in pages that hold allocations", bytes(stats.active)),
        ("jemalloc_metadata_bytes", "gauge", "Bytes of allocator metadata", bytes(stats.metadata)),
        ("jemalloc_resident_bytes", "gauge", "Bytes in physically resident pages", bytes(stats.resident)),
        ("jemalloc_mapped_bytes", "gauge", "Bytes in active extents", bytes(stats.mapped)),
        ("jemalloc_retained_bytes", "gauge", "Bytes of address space kept, not resident", bytes(stats.retained)),
        ("jemalloc_tcache_bytes", "gauge", "Bytes held in thread caches", bytes(stats.tcache)),
        ("jemalloc_dirty_bytes", "gauge", "Bytes in unused dirty pages", bytes(stats.dirty)),
        ("jemalloc_muzzy_bytes", "gauge", "Bytes in unused muzzy pages", bytes(stats.muzzy)),
        ("offheap_fragmentation_index", "gauge", "1 - allocated/active", index),
        ("process_resident_memory_bytes", "gauge", "RSS of the process", bytes(stats.rss)),
    ]
}

fn render(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in metrics {
        if let Some(value) = value {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_and_zero_denominators_are_left_out() {
        let stats = Stats { allocated: Some(0), active: Some(0), ..Default::default() };
        let text = render(&allocator_metrics(&stats));
        assert!(text.contains("\njemalloc_allocated_bytes 0\n"));
        assert!(!text.contains("offheap_fragmentation_index") && !text.contains("jemalloc_resident_bytes"));
    }

    #[test]
    fn index_is_the_share_of_active_that_is_not_allocated() {
        let stats = Stats { allocated: Some(3), active: Some(4), ..Default::default() };
        let text = render(&allocator_metrics(&stats));
        assert!(text.contains(
            "# HELP offheap_fragmentation_index 1 - allocated/active\n\
             # TYPE offheap_fragmentation_index gauge\n\
             offheap_fragmentation_index 0.25\n"
        ));
    }
}
