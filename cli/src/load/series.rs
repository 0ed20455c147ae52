//! Several dumps of one process are a series, not a sum.

use offheap_symbolizer::formats::Origin;
use offheap_symbolizer::profile::{Mapping, Profile};
use std::collections::HashMap;

/// Lowest address at which Linux places what it randomises; below it a program may ask for fixed addresses, which two
/// processes share.
const RANDOMISED: u64 = 0x10_0000_0000;

/// What identifies the process and the moment of a dump.
#[derive(Debug)]
pub(super) struct Dump<'a> {
    /// File name, without its directories.
    pub(super) name: &'a str,
    /// The profile as it was read.
    pub(super) profile: &'a Profile,
    /// A Go heap profile and a native one of the same process are not a series.
    pub(super) origin: Origin,
}

/// How the order of a series was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderedBy {
    /// The numbers that jemalloc puts into file names.
    Sequence,
    /// The times inside.
    Time,
    /// As they were given.
    Position,
}

/// Order of the dumps, oldest first, as indexes; `None` when they are not all of one process.
pub(super) fn order(dumps: &[Dump<'_>]) -> Option<(Vec<usize>, OrderedBy)> {
    let (first, others) = dumps.split_first()?;
    if others.is_empty() || !others.iter().all(|other| same_process(first, other)) {
        return None;
    }
    let mut order: Vec<usize> = (0..dumps.len()).collect();
    let sequences: Option<Vec<u64>> = dumps.iter().map(|dump| file_name(dump.name).map(|name| name.sequence)).collect();
    if let Some(sequences) = sequences {
        order.sort_by_key(|&index| sequences[index]);
        return Some((order, OrderedBy::Sequence));
    }
    if dumps.iter().all(|dump| dump.profile.time_nanos > 0) {
        order.sort_by_key(|&index| dumps[index].profile.time_nanos);
        return Some((order, OrderedBy::Time));
    }
    Some((order, OrderedBy::Position))
}

/// The first two dumps that are of one process.
pub(super) fn pair(dumps: &[Dump<'_>]) -> Option<(usize, usize)> {
    let pairs = (0..dumps.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
    pairs.into_iter().find(|&(first, second)| same_process(&dumps[first], &dumps[second]))
}

/// Two dumps of the same allocator in the same process: the same file is mapped at the same randomised address.
fn same_process(a: &Dump<'_>, b: &Dump<'_>) -> bool {
    if let (Some(a), Some(b)) = (file_name(a.name), file_name(b.name))
        && a.pid != b.pid
    {
        return false;
    }
    a.origin == b.origin && share_addresses(a.profile, b.profile)
}

fn share_addresses(a: &Profile, b: &Profile) -> bool {
    let randomised = |m: &&Mapping| m.start.0 >= RANDOMISED && m.path.starts_with('/');
    let starts: HashMap<&str, u64> = a.mappings.iter().filter(randomised).map(|m| (&*m.path, m.start.0)).collect();
    let common: Vec<bool> = b
        .mappings
        .iter()
        .filter(randomised)
        .filter_map(|m| starts.get(&*m.path).map(|&start| start == m.start.0))
        .collect();
    // A library may have been unloaded and loaded again in between, so one difference does not decide.
    let same = common.iter().filter(|&&same| same).count();
    same > 0 && same * 2 > common.len()
}

/// The parts of a name that jemalloc gives: `PREFIX.PID.SEQUENCE.KIND.heap`, for example `jeprof.4711.12.i12.heap`.
#[derive(Debug, PartialEq, Eq)]
struct FileName {
    pid: u64,
    sequence: u64,
}

fn file_name(name: &str) -> Option<FileName> {
    let rest = name.strip_suffix(".gz").unwrap_or(name).strip_suffix(".heap")?;
    let mut parts = rest.rsplit('.');
    let kind = parts.next()?;
    if !kind.starts_with(['f', 'i', 'm', 'u']) || !kind[1..].bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let sequence = parts.next()?.parse().ok()?;
    let pid = parts.next()?.parse().ok()?;
    Some(FileName { pid, sequence })
}

#[cfg(test)]
mod tests {
    use super::{Dump, FileName, OrderedBy, file_name, order};
    use offheap_symbolizer::address::RuntimeAddress;
    use offheap_symbolizer::formats::Origin;
    use offheap_symbolizer::profile::{Mapping, Profile};

    fn profile(mappings: &[(u64, &str)], time_nanos: i64) -> Profile {
        let mapping = |&(start, path): &(u64, &str)| Mapping {
            start: RuntimeAddress(start),
            end: RuntimeAddress(start + 0x1000),
            path: path.into(),
            ..Mapping::default()
        };
        Profile { mappings: mappings.iter().map(mapping).collect(), time_nanos, ..Profile::default() }
    }

    #[test]
    fn names_that_jemalloc_gives() {
        for (name, expected) in [
            ("jeprof.4711.12.i12.heap", Some(FileName { pid: 4711, sequence: 12 })),
            ("svc.prod.4711.3.f.heap.gz", Some(FileName { pid: 4711, sequence: 3 })),
            ("jeprof.4711.12.heap", None),
            ("before.heap", None),
            ("a.b.c.i1.heap", None),
        ] {
            assert_eq!(file_name(name), expected, "{name}");
        }
    }

    #[test]
    fn one_process_or_several() {
        const A: &[(u64, &str)] = &[(0x55d0_a000_0000, "/srv/app"), (0x7f10_c000_0000, "/lib/librock.so")];
        const B: &[(u64, &str)] = &[(0x55aa_0000_0000, "/srv/app"), (0x7f99_c000_0000, "/lib/librock.so")];
        const FIXED: &[(u64, &str)] = &[(0x40_0000, "/srv/app")];
        let by = |ordered, order: &[usize]| Some((order.to_vec(), ordered));
        for (label, dumps, expected) in [
            ("one dump", vec![("a.heap", profile(A, 0))], None),
            ("two processes", vec![("a.heap", profile(A, 0)), ("b.heap", profile(B, 0))], None),
            ("fixed addresses prove nothing", vec![("a", profile(FIXED, 0)), ("b", profile(FIXED, 0))], None),
            (
                "by sequence, not as text",
                vec![("j.1.10.i10.heap", profile(A, 0)), ("j.1.9.i9.heap", profile(A, 0))],
                by(OrderedBy::Sequence, &[1, 0]),
            ),
            ("the pids differ", vec![("j.1.0.i0.heap", profile(A, 0)), ("j.2.1.i1.heap", profile(A, 0))], None),
            ("by time", vec![("x", profile(A, 20)), ("y", profile(A, 10))], by(OrderedBy::Time, &[1, 0])),
            ("as given", vec![("x", profile(A, 20)), ("y", profile(A, 0))], by(OrderedBy::Position, &[0, 1])),
        ] {
            let dumps: Vec<Dump<'_>> =
                dumps.iter().map(|(name, profile)| Dump { name, profile, origin: Origin::Native }).collect();
            assert_eq!(order(&dumps), expected, "{label}");
        }
    }
}
