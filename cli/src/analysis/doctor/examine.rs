//! All rules, one topic after the other.

use super::facts::Facts;
use super::finding::Finding;
use super::{allocator, cpu, memory, preload};

/// Every finding, the most severe first.
pub(crate) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    memory::examine(facts, &mut findings);
    cpu::examine(facts, &mut findings);
    allocator::examine(facts, &mut findings);
    preload::examine(facts, &mut findings);
    // Stable: rules keep the order of their topics.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
