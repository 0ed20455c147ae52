//! Whether the agent is there and can record.

use super::facts::Facts;
use super::finding::{Finding, Severity};
use offheap_wire::AGENT_FILE_NAME;

pub(super) fn examine(facts: &Facts, findings: &mut Vec<Finding>) {
    let wanted = facts.variable("LD_PRELOAD").is_some_and(|value| value.contains(AGENT_FILE_NAME));
    match &facts.agent {
        None if wanted => findings.push(Finding {
            id: "preload-ignored",
            severity: Severity::Critical,
            evidence: format!(
                "LD_PRELOAD={} in its environment, the agent is not among its mappings",
                facts.variable("LD_PRELOAD").unwrap_or_default()
            ),
            why: facts.preload_refusal.clone().unwrap_or_else(|| {
                "the loader said why on standard error when the process began: most often the path does not exist in the \
                 process's own file system"
                    .into()
            }),
            remedy: "start it with `offheap run -- CMD`, which checks beforehand; in a container, put the agent inside".into(),
        }),
        Some(Err(reason)) => findings.push(Finding {
            id: "agent-unreachable",
            severity: Severity::Critical,
            evidence: reason.clone(),
            why: "nothing can be asked of the agent".into(),
            remedy: match facts.variable("OFFHEAP") {
                Some("off") => "remove OFFHEAP=off from its environment".into(),
                _ => "set OFFHEAP_SOCKET=/path/%p.sock to a writable place, and OFFHEAP_LOG=1 to see what it says".into(),
            },
        }),
        Some(Ok(agent)) if !agent.info.profile.available => findings.push(Finding {
            id: "profiling-impossible",
            severity: Severity::Warning,
            evidence: format!("opt.prof is false; MALLOC_CONF={}", facts.variable("MALLOC_CONF").unwrap_or_default()),
            why: "statistics work, but no allocation can be sampled: nobody can be named".into(),
            remedy: "start it with MALLOC_CONF=prof:true,prof_active:false, which costs nothing until profiling starts".into(),
        }),
        None | Some(Ok(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::examine;
    use crate::analysis::doctor::Facts;

    #[test]
    fn presence() {
        let preloaded = [("LD_PRELOAD".to_owned(), "/x/liboffheap_agent.so".to_owned())];
        for (label, facts, expected) in [
            ("plain", Facts::default(), None),
            ("ignored", Facts { environment: preloaded.clone().into(), ..Facts::default() }, Some("preload-ignored")),
            (
                "unreachable",
                Facts { environment: preloaded.into(), agent: Some(Err("no socket".into())), ..Facts::default() },
                Some("agent-unreachable"),
            ),
        ] {
            let mut findings = Vec::new();
            examine(&facts, &mut findings);
            assert_eq!(findings.first().map(|finding| finding.id), expected, "{label}");
        }
    }
}
