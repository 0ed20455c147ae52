//! Configuration of the allocator, or of two of them.

use super::facts::{Facts, is_glibc_heap};
use super::finding::{Finding, Severity};
use crate::words::size::human;

/// More of glibc's heaps than this, with this much memory, are worth a word.
const GLIBC_HEAPS: usize = 8;
const GLIBC_BYTES: u64 = 64 << 20;
/// Share of RSS in huge pages from which they explain a difference.
const HUGE_SHARE: f64 = 0.1;

pub(super) fn examine(facts: &Facts, findings: &mut Vec<Finding>) {
    glibc_arenas(facts, findings);
    second_allocator(facts, findings);
    huge_pages(facts, findings);
    if facts.agent_facts().is_some() {
        jemalloc_arenas(facts, findings);
        decay(facts, findings);
    }
}

fn glibc_arenas(facts: &Facts, findings: &mut Vec<Finding>) {
    let heaps = facts
        .mappings
        .iter()
        .enumerate()
        .filter(|(index, mapping)| is_glibc_heap(mapping, facts.mappings.get(index + 1)));
    let (count, bytes) = heaps.fold((0, 0), |(count, bytes), (_, mapping)| (count + 1, bytes + mapping.rss));
    if count <= GLIBC_HEAPS || bytes < GLIBC_BYTES || facts.variable("MALLOC_ARENA_MAX").is_some() {
        return;
    }
    let limit = facts.machine_cpus.map_or_else(|| "8 times the CPUs".into(), |cpus| format!("{}", cpus * 8));
    findings.push(Finding {
        id: "glibc-arenas",
        severity: Severity::Warning,
        evidence: format!("{count} arena heaps of glibc with {} resident; up to {limit} arenas are allowed", human(bytes.into())),
        why: "each thread that meets contention gets an arena of its own, and what is freed in one is not used by the others \
              nor given back"
            .into(),
        remedy: "set MALLOC_ARENA_MAX=2, or start it with `offheap run`, which also shows who allocates".into(),
    });
}

fn second_allocator(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(agent) = facts.agent_facts() else { return };
    let library = ["libjemalloc", "libtcmalloc", "libmimalloc"].iter().find_map(|name| facts.has_library(name));
    let linked = facts.has_own_jemalloc.then_some("the executable itself (jemalloc is linked into it)");
    if !agent.info.malloc_is_ours {
        findings.push(Finding {
            id: "malloc-is-not-ours",
            severity: Severity::Critical,
            evidence: format!("the agent is loaded, malloc is answered by {}", library.or(linked).unwrap_or("something else")),
            why: "none of the program's memory passes through the agent: its figures describe an allocator that nobody uses"
                .into(),
            remedy: "put the agent first in LD_PRELOAD; when the allocator is linked into the executable, build it without"
                .into(),
        });
    } else if let Some(other) = library.or(linked) {
        findings.push(Finding {
            id: "second-allocator",
            severity: Severity::Warning,
            evidence: format!("beside the agent's jemalloc there is {other}"),
            why: "memory that the other one holds is in no figure of the agent; it appears as `outside`".into(),
            remedy: "build or start without it, or compare `outside` in `offheap frag`".into(),
        });
    }
}

fn huge_pages(facts: &Facts, findings: &mut Vec<Finding>) {
    let huge: u64 = facts.mappings.iter().map(|mapping| mapping.anon_huge_pages).sum();
    let Some(rss) = facts.rss.filter(|rss| *rss > 0) else { return };
    if (huge as f64) < rss as f64 * HUGE_SHARE {
        return;
    }
    let mode = facts.thp.as_deref().unwrap_or("unknown");
    findings.push(Finding {
        id: "transparent-huge-pages",
        severity: if mode == "always" { Severity::Warning } else { Severity::Info },
        evidence: format!("{} of {} RSS are huge pages; the kernel's mode is `{mode}`", human(huge.into()), human(rss.into())),
        why: "one touched byte keeps 2 MiB, and pages that the allocator gave back are filled in again: RSS rises above what \
              the allocator calls resident"
            .into(),
        remedy: "MALLOC_CONF=thp:never for jemalloc; for the whole process prctl(PR_SET_THP_DISABLE) or the mode `madvise`"
            .into(),
    });
}

fn jemalloc_arenas(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(agent) = facts.agent_facts() else { return };
    let configured = facts.jemalloc_option("narenas").and_then(|text| text.parse::<u64>().ok());
    let Some(arenas) = configured.or(agent.stats.narenas) else { return };
    let Some(quota) = facts.cgroup.cpu.as_ref().and_then(|cpu| cpu.quota) else { return };
    // jemalloc's own rule, four arenas a CPU, applied to the CPUs that may be used.
    let fits = (quota.ceil() as u64).max(1) * 4;
    if arenas <= fits {
        return;
    }
    findings.push(Finding {
        id: "jemalloc-arenas",
        severity: Severity::Warning,
        evidence: format!("{arenas} arenas for a quota of {quota} CPUs (4 for each of the machine's CPUs)"),
        why: "each arena keeps its own dirty pages, partly used slabs and metadata; with fewer threads running than arenas \
              that is memory for nothing"
            .into(),
        remedy: format!("set MALLOC_CONF=narenas:{fits}"),
    });
}

fn decay(facts: &Facts, findings: &mut Vec<Finding>) {
    let time = |name: &str| facts.jemalloc_option(name).and_then(|text| text.parse::<i64>().ok());
    for (name, id) in [("dirty_decay_ms", "dirty-pages-kept"), ("muzzy_decay_ms", "muzzy-pages-kept")] {
        if time(name) == Some(-1) {
            findings.push(Finding {
                id,
                severity: Severity::Warning,
                evidence: format!("opt.{name} is -1"),
                why: "unused pages are never given back: RSS stays at its peak".into(),
                remedy: format!("set MALLOC_CONF={name}:1000"),
            });
        }
    }
    // What runs, not the option: the agent switches the threads on after start.
    let running = facts.agent_facts().and_then(|agent| agent.background_thread);
    if running == Some(false) && time("dirty_decay_ms") != Some(0) {
        findings.push(Finding {
            id: "no-background-threads",
            severity: Severity::Info,
            evidence: "background threads are off, decay is on".into(),
            why: "an arena gives unused pages back only while it is used: an idle thread's pages stay".into(),
            remedy: "set MALLOC_CONF=background_thread:true".into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::examine;
    use crate::analysis::doctor::{AgentFacts, Facts};
    use crate::analysis::smaps::Mapping;
    use crate::cgroup::{Cgroup, Cpu};
    use offheap_wire::{AgentCounters, Info, JemallocConfig, ProfileState, Stats};

    fn agent(options: &[(&str, &str)], malloc_is_ours: bool) -> AgentFacts {
        let opt = options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        AgentFacts {
            info: Info {
                schema: String::new(),
                agent_version: String::new(),
                jemalloc_version: String::new(),
                pid: 1,
                exe: None,
                started_at: None,
                socket: String::new(),
                malloc_is_ours,
                jemalloc: JemallocConfig { opt, ..JemallocConfig::default() },
                profile: ProfileState {
                    available: true,
                    active: false,
                    lg_sample: 19,
                    recording_since: None,
                    prof_unbias: false,
                },
                agent: AgentCounters::default(),
            },
            stats: Stats { narenas: Some(64), ..Stats::default() },
            background_thread: Some(true),
        }
    }

    fn ids(facts: &Facts) -> Vec<&'static str> {
        let mut findings = Vec::new();
        examine(facts, &mut findings);
        findings.iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn many_heaps_of_glibc() {
        let heap = |index: u64| Mapping {
            start: (1000 + index) << 26,
            end: (1001 + index) << 26,
            writable: true,
            rss: 20 << 20,
            ..Mapping::default()
        };
        let facts = |count| Facts { mappings: (0..count).map(heap).collect(), ..Facts::default() };
        assert_eq!(ids(&facts(20)), ["glibc-arenas"]);
        assert!(ids(&facts(8)).is_empty());
        let mut limited = facts(20);
        limited.environment.insert("MALLOC_ARENA_MAX".into(), "32".into());
        assert!(ids(&limited).is_empty());
    }

    #[test]
    fn jemalloc_under_the_agent() {
        let facts = |agent, quota| Facts {
            agent: Some(Ok(agent)),
            cgroup: Cgroup { cpu: Some(Cpu { quota, ..Cpu::default() }), ..Cgroup::default() },
            ..Facts::default()
        };
        for (label, facts, expected) in [
            ("fits", facts(agent(&[("narenas", "8")], true), Some(2.0)), &[][..]),
            ("arenas", facts(agent(&[("narenas", "256")], true), Some(2.0)), &["jemalloc-arenas"]),
            ("arenas by statistics", facts(agent(&[], true), Some(0.5)), &["jemalloc-arenas"]),
            ("no quota", facts(agent(&[("narenas", "256")], true), None), &[]),
            ("no decay", facts(agent(&[("dirty_decay_ms", "-1")], true), None), &["dirty-pages-kept"]),
            ("not ours", facts(agent(&[], false), None), &["malloc-is-not-ours"]),
        ] {
            assert_eq!(ids(&facts), expected, "{label}");
        }
    }

    #[test]
    fn a_second_allocator_and_huge_pages() {
        let library = Mapping { name: "/usr/lib/libjemalloc.so.2".into(), anon_huge_pages: 50, ..Mapping::default() };
        let facts = Facts {
            agent: Some(Ok(agent(&[], true))),
            mappings: vec![library],
            rss: Some(100),
            thp: Some("always".into()),
            ..Facts::default()
        };
        assert_eq!(ids(&facts), ["second-allocator", "transparent-huge-pages"]);
    }
}
