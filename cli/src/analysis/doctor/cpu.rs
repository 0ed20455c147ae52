//! CPU limits of the control group against the GOMAXPROCS that the binary chooses.
//!
//! Go 1.25 and newer take the smallest quota/period of the group and its ancestors into account, rounded up and not
//! below 2, when the setting `containermaxprocs` is on; it is off in programs whose go.mod names an older language
//! version (`DefaultGODEBUG` in the build information tells). Otherwise GOMAXPROCS is the number of CPUs of the affinity
//! mask, whatever the quota.

use super::facts::Facts;
use super::finding::{Finding, Severity};

/// Share of throttled periods that a user notices.
const THROTTLED: f64 = 0.05;

pub(super) fn examine(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(cpu) = &facts.cgroup.cpu else { return };
    let Some(quota) = cpu.quota else { return };
    let throttled = cpu.throttled_share();
    let share = throttled.map_or_else(String::new, |share| format!(", {:.1} % of periods throttled", share * 100.0));
    if let Some((procs, reason)) = gomaxprocs(facts)
        && procs as f64 > (quota.ceil()).max(2.0)
    {
        let fits = (quota.ceil() as u64).max(1);
        let severity =
            if throttled.is_some_and(|share| share > THROTTLED) { Severity::Critical } else { Severity::Warning };
        findings.push(Finding {
            id: "gomaxprocs-above-quota",
            severity,
            evidence: format!("quota of {quota} CPUs ({}), GOMAXPROCS {procs} ({reason}){share}", cpu.folder.display()),
            why:
                "more threads run at once than the quota pays for: the quota of a period is used up early, then all of \
                  them, the collector's too, stand still until the next one"
                    .into(),
            remedy: format!(
                "set GOMAXPROCS={fits}, or build with `go 1.25` or newer in go.mod and without \
                             containermaxprocs=0"
            ),
        });
    } else if let Some(share) = throttled.filter(|share| *share > THROTTLED) {
        findings.push(Finding {
            id: "cpu-throttled",
            severity: Severity::Warning,
            evidence: format!(
                "quota of {quota} CPUs ({}), {:.1} % of periods throttled",
                cpu.folder.display(),
                share * 100.0
            ),
            why: "the process stands still for the rest of each throttled period; the collector falls behind too"
                .into(),
            remedy: "raise the quota, or lower the number of running threads".into(),
        });
    }
}

/// What the Go runtime will choose, and why; `None` when it is no Go program or the facts do not suffice.
fn gomaxprocs(facts: &Facts) -> Option<(u64, String)> {
    let go = facts.go.as_ref()?;
    if let Some(procs) = facts.variable("GOMAXPROCS").and_then(|text| text.parse::<u64>().ok()).filter(|n| *n > 0) {
        return Some((procs, "set in the environment".into()));
    }
    let available = facts.affinity.or(facts.machine_cpus)?;
    let available = facts.cgroup.cpuset.map_or(available, |cpus| cpus.min(available));
    let setting = |list: Option<&str>| {
        let value = list?.split(',').rev().find_map(|pair| pair.trim().strip_prefix("containermaxprocs="))?;
        Some(value.to_owned())
    };
    let by_environment = setting(facts.variable("GODEBUG"));
    let by_build = setting(go.settings.get("DefaultGODEBUG").map(String::as_str));
    let minor = go.minor()?;
    let reason = if minor < 25 {
        format!("{} does not know of quotas", go.version)
    } else if by_environment.as_deref() == Some("0") {
        "GODEBUG=containermaxprocs=0".into()
    } else if by_environment.is_none() && by_build.as_deref() == Some("0") {
        format!("{} with containermaxprocs=0, since go.mod names a language version below 1.25", go.version)
    } else {
        let quota = facts.cgroup.cpu.as_ref()?.quota?;
        let by_quota = (quota.ceil() as u64).max(2);
        return Some((available.min(by_quota), "from the quota".into()));
    };
    Some((available, reason))
}

#[cfg(test)]
mod tests {
    use super::examine;
    use crate::analysis::doctor::{Facts, Severity};
    use crate::cgroup::{Cgroup, Cpu};
    use crate::elf::GoBuild;

    fn found(
        version: &str,
        godebug: &str,
        variables: &[(&str, &str)],
        quota: Option<f64>,
        throttled: u64,
    ) -> Option<(&'static str, Severity)> {
        let settings = [("DefaultGODEBUG".to_owned(), godebug.to_owned())].into();
        let facts = Facts {
            go: Some(GoBuild { version: version.into(), settings }),
            environment: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            affinity: Some(16),
            cgroup: Cgroup {
                cpu: Some(Cpu { quota, periods: Some(100), throttled: Some(throttled), ..Cpu::default() }),
                ..Cgroup::default()
            },
            ..Facts::default()
        };
        let mut findings = Vec::new();
        examine(&facts, &mut findings);
        assert!(findings.len() < 2);
        findings.first().map(|finding| (finding.id, finding.severity))
    }

    #[test]
    fn quotas() {
        let above = |severity| Some(("gomaxprocs-above-quota", severity));
        let off = "containermaxprocs=0,updatemaxprocs=0";
        for (label, version, godebug, variables, quota, throttled, expected) in [
            ("old toolchain", "go1.24.11", "", &[][..], Some(2.0), 0, above(Severity::Warning)),
            ("old toolchain, throttled", "go1.24.11", "", &[], Some(2.0), 30, above(Severity::Critical)),
            ("old language version", "go1.26.6", off, &[], Some(2.0), 0, above(Severity::Warning)),
            ("new", "go1.26.6", "", &[], Some(2.0), 0, None),
            ("new, rounded up", "go1.26.6", "", &[], Some(2.5), 0, None),
            ("new, at least two", "go1.26.6", "", &[], Some(0.5), 0, None),
            ("switched on again", "go1.26.6", off, &[("GODEBUG", "containermaxprocs=1")], Some(2.0), 0, None),
            (
                "switched off",
                "go1.26.6",
                "",
                &[("GODEBUG", "x=1,containermaxprocs=0")],
                Some(2.0),
                0,
                above(Severity::Warning),
            ),
            ("set too high", "go1.26.6", "", &[("GOMAXPROCS", "8")], Some(2.0), 0, above(Severity::Warning)),
            ("set right", "go1.19", "", &[("GOMAXPROCS", "2")], Some(2.0), 0, None),
            ("throttled all the same", "go1.26.6", "", &[], Some(2.0), 30, Some(("cpu-throttled", Severity::Warning))),
            ("no quota", "go1.19", "", &[], None, 30, None),
            ("unknown version", "", "", &[], Some(2.0), 0, None),
        ] {
            assert_eq!(found(version, godebug, variables, quota, throttled), expected, "{label}");
        }
    }
}
