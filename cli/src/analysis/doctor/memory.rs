//! Memory limits of the control group against those of the Go runtime.
//!
//! GOMEMLIMIT bounds what the Go runtime maps. Everything else of the process (C heap, libraries, thread stacks) comes on
//! top, so that the group's limit L leaves the runtime
//!
//! ```text
//! L − off-heap peak − margin        margin = L/20
//! ```
//!
//! The off-heap peak is the larger of RSS now − Go heap now and peak RSS − Go heap now. The second counts Go heap that
//! was larger at the peak as off-heap: it errs to the safe side, and the evidence says what went into it.

use super::facts::Facts;
use super::finding::{Finding, Severity};
use crate::cgroup::Memory;
use crate::words::size::human;
use crate::words::text::counted;

/// `GOMEMLIMIT` as Go reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoLimit {
    Off,
    Bytes(u64),
    Malformed,
}

pub(super) fn examine(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(memory) = &facts.cgroup.memory else { return };
    group(memory, findings);
    if facts.go.is_none() {
        return;
    }
    let limit = facts.variable("GOMEMLIMIT").map(parse).unwrap_or(GoLimit::Off);
    let gogc_off = facts.variable("GOGC") == Some("off");
    if let Some(max) = memory.max {
        go_limit(facts, max, limit, findings);
    }
    if gogc_off && limit == GoLimit::Off {
        findings.push(Finding {
            id: "gogc-off-without-limit",
            severity: Severity::Critical,
            evidence: "GOGC=off and no GOMEMLIMIT in the environment".into(),
            why: "the collector never runs: the Go heap grows until the process is killed".into(),
            remedy: match memory.max.and_then(|max| recommended(facts, max)) {
                Some(bytes) => format!("set GOMEMLIMIT={}, or remove GOGC=off", mebibytes(bytes)),
                None => "remove GOGC=off, or set GOMEMLIMIT".into(),
            },
        });
    } else if gogc_off && memory.max.is_some() {
        findings.push(Finding {
            id: "gogc-off",
            severity: Severity::Info,
            evidence: format!("GOGC=off with GOMEMLIMIT={}", facts.variable("GOMEMLIMIT").unwrap_or_default()),
            why:
                "the heap always grows to GOMEMLIMIT before it is collected, so that off-heap memory has only what the \
                  limit leaves beyond it, at all times"
                    .into(),
            remedy: "keep GOGC=off only while the off-heap peak stays below limit - GOMEMLIMIT".into(),
        });
    }
}

fn go_limit(facts: &Facts, max: u64, limit: GoLimit, findings: &mut Vec<Finding>) {
    let go_now = facts.go_heap_resident();
    let off_heap = off_heap_peak(facts);
    let advice = advice(facts, max);
    let group = format!("the control group's limit is {}", human(max.into()));
    let mut found = |id, severity, evidence: String, why: &str| {
        findings.push(Finding { id, severity, evidence, why: why.into(), remedy: advice.clone() });
    };
    match limit {
        GoLimit::Off => found(
            "gomemlimit-unset",
            Severity::Warning,
            format!("{group}; GOMEMLIMIT is not set (a call of debug.SetMemoryLimit cannot be seen from outside)"),
            "the collector does not know the limit: the heap may double before the next collection and the process is \
             killed with memory that was garbage",
        ),
        GoLimit::Malformed => found(
            "gomemlimit-malformed",
            Severity::Critical,
            format!("GOMEMLIMIT={}", facts.variable("GOMEMLIMIT").unwrap_or_default()),
            "Go accepts bytes or a number with B, KiB, MiB, GiB or TiB, and refuses to start with anything else",
        ),
        GoLimit::Bytes(bytes) if bytes >= max => found(
            "gomemlimit-above-limit",
            Severity::Critical,
            format!("{group}; GOMEMLIMIT is {}", human(bytes.into())),
            "the kernel kills the process before the runtime begins to save memory",
        ),
        GoLimit::Bytes(bytes) if go_now > 0 && bytes < go_now => found(
            "gomemlimit-below-heap",
            Severity::Critical,
            format!("GOMEMLIMIT is {}, {} of the Go heap are resident now", human(bytes.into()), human(go_now.into())),
            "the collector runs all the time to reach a limit below what is in use, and the program starves",
        ),
        GoLimit::Bytes(bytes) if off_heap.is_some_and(|off_heap| bytes.saturating_add(off_heap) > max) => found(
            "gomemlimit-leaves-no-room",
            Severity::Critical,
            format!(
                "{group}; GOMEMLIMIT {} + off-heap peak {} = {}",
                human(bytes.into()),
                human(off_heap.unwrap_or_default().into()),
                human((bytes + off_heap.unwrap_or_default()).into())
            ),
            "GOMEMLIMIT counts only Go's own memory: when the heap reaches it, the off-heap memory is above the limit",
        ),
        GoLimit::Bytes(_) => {}
    }
}

/// Findings about the group itself.
fn group(memory: &Memory, findings: &mut Vec<Finding>) {
    let folder = memory.folder.display();
    if let (Some(max), Some(used)) = (memory.max, memory.working_set())
        && used as f64 > max as f64 * 0.9
    {
        findings.push(Finding {
            id: "memory-near-limit",
            severity: Severity::Critical,
            evidence: format!("working set {} of {} ({folder})", human(used.into()), human(max.into())),
            why: "what is used and cannot be dropped is within a tenth of the limit; the next burst is killed".into(),
            remedy: "see `offheap ledger` for who holds it; raise the limit until that is fixed".into(),
        });
    }
    // Version 1's soft limit does not throttle.
    if let (2, Some(high), Some(current)) = (memory.version, memory.high, memory.current)
        && current >= high
    {
        findings.push(Finding {
            id: "memory-high-reached",
            severity: Severity::Warning,
            evidence: format!(
                "memory.current {} reached memory.high {} ({folder})",
                human(current.into()),
                human(high.into())
            ),
            why: "above memory.high the kernel slows every allocation down to reclaim".into(),
            remedy: "raise memory.high, or bring usage below it".into(),
        });
    }
    if let Some(kills) = memory.oom_kills.filter(|kills| *kills > 0) {
        findings.push(Finding {
            id: "oom-kills",
            severity: Severity::Warning,
            evidence: format!("{} of {folder} killed for want of memory", counted(kills, "process")),
            why: "it happened before and will again at the same peak".into(),
            remedy: "let the agent dump before: `offheap trigger`, and raise the limit above the peak".into(),
        });
    }
    if let Some(swapped) = memory.swap_current.filter(|swapped| *swapped > 0) {
        findings.push(Finding {
            id: "swapped",
            severity: Severity::Info,
            evidence: format!("{} of the group are in swap ({folder})", human(swapped.into())),
            why: "RSS does not count what is swapped out: every figure that is compared with RSS is too high by it"
                .into(),
            remedy: "add swap to RSS when judging, or switch swap off for the group (memory.swap.max=0)".into(),
        });
    }
}

fn off_heap_peak(facts: &Facts) -> Option<u64> {
    let go = facts.go_heap_resident();
    let highest = facts.rss.max(facts.peak_rss)?;
    Some(highest.saturating_sub(go))
}

fn recommended(facts: &Facts, max: u64) -> Option<u64> {
    let left = max.checked_sub(off_heap_peak(facts)?)?.checked_sub(max / 20)?;
    // Below that no Go program runs well; the limit is the thing to change then.
    (left >= 16 << 20).then_some(left)
}

fn advice(facts: &Facts, max: u64) -> String {
    let thumb = mebibytes(max / 5 * 4);
    match (off_heap_peak(facts), recommended(facts, max)) {
        (Some(peak), Some(bytes)) => format!(
            "set GOMEMLIMIT={}: limit {} - off-heap peak {} (peak RSS - Go heap now) - margin {}; the rule of thumb of \
             80 % would be {thumb}",
            mebibytes(bytes),
            human(max.into()),
            human(peak.into()),
            human((max / 20).into())
        ),
        (Some(peak), None) => format!(
            "raise the limit: the off-heap peak of {} leaves no room for a Go heap in {}",
            human(peak.into()),
            human(max.into())
        ),
        (None, _) => format!("set GOMEMLIMIT below the limit by the off-heap peak; the rule of thumb is 80 %, {thumb}"),
    }
}

/// As `GOMEMLIMIT` is written, rounded down.
fn mebibytes(bytes: u64) -> String {
    format!("{}MiB", bytes >> 20)
}

fn parse(text: &str) -> GoLimit {
    if text == "off" {
        return GoLimit::Off;
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return GoLimit::Malformed,
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)) {
        // The runtime's own way to say that there is no limit.
        Some(bytes) if bytes >= i64::MAX as u64 => GoLimit::Off,
        Some(bytes) => GoLimit::Bytes(bytes),
        None => GoLimit::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::{GoLimit, examine, parse};
    use crate::analysis::doctor::Facts;
    use crate::analysis::smaps::Mapping;
    use crate::cgroup::{Cgroup, Memory};
    use crate::elf::GoBuild;

    const GIB: u64 = 1 << 30;

    /// A Go program of 1.5 GiB at its peak, with 0.5 GiB of Go heap, in a group of `max`.
    fn facts(max: Option<u64>, variables: &[(&str, &str)]) -> Facts {
        Facts {
            go: Some(GoBuild::default()),
            environment: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            cgroup: Cgroup { memory: Some(Memory { version: 2, max, ..Memory::default() }), ..Cgroup::default() },
            rss: Some(GIB),
            peak_rss: Some(3 * GIB / 2),
            mappings: vec![Mapping {
                start: 0xc0_0000_0000,
                end: 0xc0_4000_0000,
                readable: true,
                writable: true,
                rss: GIB / 2,
                name: "[anon: Go: heap]".into(),
                ..Mapping::default()
            }],
            ..Facts::default()
        }
    }

    #[test]
    fn limits_of_go_against_the_group_s() {
        let limit = Some(4 * GIB);
        for (label, max, variables, expected) in [
            ("unset", limit, &[][..], &["gomemlimit-unset"][..]),
            ("off", limit, &[("GOMEMLIMIT", "off")], &["gomemlimit-unset"]),
            ("no limit", None, &[], &[]),
            ("fits", limit, &[("GOMEMLIMIT", "2GiB")], &[]),
            ("at the limit", limit, &[("GOMEMLIMIT", "4GiB")], &["gomemlimit-above-limit"]),
            ("no room", limit, &[("GOMEMLIMIT", "3500MiB")], &["gomemlimit-leaves-no-room"]),
            ("below the heap", limit, &[("GOMEMLIMIT", "256MiB")], &["gomemlimit-below-heap"]),
            ("malformed", limit, &[("GOMEMLIMIT", "2GB")], &["gomemlimit-malformed"]),
            ("GOGC off", limit, &[("GOGC", "off")], &["gomemlimit-unset", "gogc-off-without-limit"]),
            ("GOGC off, no limit at all", None, &[("GOGC", "off")], &["gogc-off-without-limit"]),
            ("GOGC off with a limit", limit, &[("GOGC", "off"), ("GOMEMLIMIT", "2GiB")], &["gogc-off"]),
        ] {
            let mut findings = Vec::new();
            examine(&facts(max, variables), &mut findings);
            let ids: Vec<_> = findings.iter().map(|finding| finding.id).collect();
            assert_eq!(ids, expected, "{label}");
        }
    }

    #[test]
    fn the_recommendation_is_computed() {
        let mut findings = Vec::new();
        examine(&facts(Some(4 * GIB), &[]), &mut findings);
        // 4096 − (1536 − 512) − 204.8 MiB
        assert!(findings[0].remedy.contains("GOMEMLIMIT=2867MiB"), "{}", findings[0].remedy);
        assert!(findings[0].remedy.contains("3276MiB"), "{}", findings[0].remedy);
        findings.clear();
        examine(&facts(Some(GIB), &[]), &mut findings);
        assert!(findings[0].remedy.starts_with("raise the limit"), "{}", findings[0].remedy);
    }

    #[test]
    fn a_program_without_go_has_only_the_group_s_findings() {
        let mut facts = facts(Some(GIB), &[]);
        facts.go = None;
        facts.cgroup.memory = Some(Memory {
            version: 2,
            max: Some(GIB),
            high: Some(GIB / 2),
            current: Some(GIB),
            inactive_file: Some(GIB / 100),
            swap_current: Some(1),
            oom_kills: Some(1),
            ..Memory::default()
        });
        let mut findings = Vec::new();
        examine(&facts, &mut findings);
        let ids: Vec<_> = findings.iter().map(|finding| finding.id).collect();
        assert_eq!(ids, ["memory-near-limit", "memory-high-reached", "oom-kills", "swapped"]);
    }

    #[test]
    fn gomemlimit_as_go_reads_it() {
        for (text, expected) in [
            ("off", GoLimit::Off),
            ("1024", GoLimit::Bytes(1024)),
            ("1024B", GoLimit::Bytes(1024)),
            ("2GiB", GoLimit::Bytes(2 << 30)),
            ("9223372036854775807", GoLimit::Off),
            ("2GB", GoLimit::Malformed),
            ("2 GiB", GoLimit::Malformed),
            ("1.5GiB", GoLimit::Malformed),
            ("99999999999TiB", GoLimit::Malformed),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
