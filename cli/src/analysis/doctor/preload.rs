//! Whether the agent is there and can record.

use super::facts::{Facts, Obstacle};
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
        Some(Err(unreachable)) => findings.push(Finding {
            id: "agent-unreachable",
            severity: Severity::Critical,
            evidence: unreachable.reason.clone(),
            why: "nothing can be asked of the agent".into(),
            remedy: match (unreachable.obstacle, facts.variable("OFFHEAP")) {
                (Obstacle::Stopped(pid), _) => {
                    format!("let it run: `kill -CONT {pid}`, or continue it in the debugger that holds it")
                }
                (Obstacle::Denied, _) => "run this command as the user of the process, or as root".into(),
                (Obstacle::Silent, _) => "nothing has to be changed in its configuration: ask again once it gets CPU time, \
                     or thaw its control group"
                    .into(),
                (Obstacle::NoSocket, Some("off")) => "remove OFFHEAP=off from its environment".into(),
                (Obstacle::NoSocket, _) => {
                    "set OFFHEAP_SOCKET=/path/%p.sock to a writable place, and OFFHEAP_LOG=1 to see what it says".into()
                }
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
    use super::{Obstacle, examine};
    use crate::analysis::doctor::{Facts, Unreachable};

    #[test]
    fn the_remedy_fits_the_obstacle() {
        for (obstacle, expected) in [
            (Obstacle::NoSocket, "set OFFHEAP_SOCKET="),
            (Obstacle::Denied, "run this command as the user of the process"),
            (Obstacle::Stopped(17), "let it run: `kill -CONT 17`"),
            (Obstacle::Silent, "nothing has to be changed"),
        ] {
            let unreachable = Unreachable { reason: "why".into(), obstacle };
            let mut findings = Vec::new();
            examine(&Facts { agent: Some(Err(unreachable)), ..Facts::default() }, &mut findings);
            assert!(findings[0].remedy.starts_with(expected), "{}", findings[0].remedy);
        }
    }

    #[test]
    fn presence() {
        let preloaded = [("LD_PRELOAD".to_owned(), "/x/liboffheap_agent.so".to_owned())];
        for (label, facts, expected) in [
            ("plain", Facts::default(), None),
            ("ignored", Facts { environment: preloaded.clone().into(), ..Facts::default() }, Some("preload-ignored")),
            (
                "unreachable",
                Facts {
                    environment: preloaded.into(),
                    agent: Some(Err(Unreachable { reason: "no socket".into(), obstacle: Obstacle::NoSocket })),
                    ..Facts::default()
                },
                Some("agent-unreachable"),
            ),
        ] {
            let mut findings = Vec::new();
            examine(&facts, &mut findings);
            assert_eq!(findings.first().map(|finding| finding.id), expected, "{label}");
        }
    }
}
