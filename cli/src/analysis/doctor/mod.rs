//! Configuration faults: facts in, findings out.
//!
//! Each rule has an id, the evidence that was read, why it matters, and the exact change to make. A rule whose facts are
//! missing is silent: `doctor` accuses nobody on a guess.

mod allocator;
mod cpu;
mod facts;
mod finding;
mod memory;
mod preload;

pub(crate) use facts::{AgentFacts, Facts};
pub(crate) use finding::{Finding, Severity};

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
