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

/// Dumps by process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sets {
    /// Each dump belongs to one process, in the order of their first dumps.
    Told(Vec<Set>),
    /// Nothing in these two tells whether they are of one process.
    Untold(usize, usize),
}

/// The dumps of one process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// As indexes, oldest first.
    pub(super) dumps: Vec<usize>,
    pub(super) ordered_by: OrderedBy,
}

/// Tell the dumps of each process from those of others.
pub(super) fn sets(dumps: &[Dump<'_>]) -> Sets {
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for (index, dump) in dumps.iter().enumerate() {
        let mut own = None;
        for (number, set) in sets.iter().enumerate() {
            match relation(&dumps[set[0]], dump) {
                Relation::SameProcess => own = Some(number),
                Relation::OtherProcess => {}
                Relation::Untold => return Sets::Untold(set[0], index),
            }
        }
        match own {
            Some(number) => sets[number].push(index),
            None => sets.push(vec![index]),
        }
    }
    Sets::Told(sets.into_iter().map(|set| order(dumps, set)).collect())
}

/// Two dumps stand newest first: a shell puts `i10` before `i9`.
pub(super) fn are_reversed(dumps: &[Dump<'_>]) -> bool {
    let [base, new] = dumps else { return false };
    if let (Some(base), Some(new)) = (file_name(base.name), file_name(new.name))
        && base.pid == new.pid
    {
        return base.sequence > new.sequence;
    }
    new.profile.time_nanos > 0 && base.profile.time_nanos > new.profile.time_nanos
}

/// Dumps of one process, oldest first.
fn order(dumps: &[Dump<'_>], mut set: Vec<usize>) -> Set {
    let sequence = |index: usize| file_name(dumps[index].name).map(|name| name.sequence);
    let time = |index: usize| dumps[index].profile.time_nanos;
    let ordered_by = if set.iter().all(|&index| sequence(index).is_some()) {
        set.sort_by_key(|&index| sequence(index));
        OrderedBy::Sequence
    } else if set.iter().all(|&index| time(index) > 0) {
        set.sort_by_key(|&index| time(index));
        OrderedBy::Time
    } else {
        OrderedBy::Position
    };
    Set { dumps: set, ordered_by }
}

/// The first two dumps that are of one process.
pub(super) fn pair(dumps: &[Dump<'_>]) -> Option<(usize, usize)> {
    let pairs = (0..dumps.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
    pairs.into_iter().find(|&(first, second)| relation(&dumps[first], &dumps[second]) == Relation::SameProcess)
}

/// How two dumps belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    SameProcess,
    OtherProcess,
    Untold,
}

fn relation(a: &Dump<'_>, b: &Dump<'_>) -> Relation {
    let other_pid = file_name(a.name).zip(file_name(b.name)).is_some_and(|(a, b)| a.pid != b.pid);
    // A Go heap profile and a native one overlap nowhere, even of one process.
    if other_pid || a.origin != b.origin || main_path(a.profile) != main_path(b.profile) {
        return Relation::OtherProcess;
    }
    match share_addresses(a.profile, b.profile) {
        Some(true) => Relation::SameProcess,
        Some(false) => Relation::OtherProcess,
        None => Relation::Untold,
    }
}

/// Path of the main executable, which stands first.
fn main_path(profile: &Profile) -> Option<&str> {
    profile.mappings.first().map(|mapping| &*mapping.path).filter(|path| path.starts_with('/'))
}

/// Whether the same files are mapped at the same randomised addresses; `None` when there are no such files in both.
fn share_addresses(a: &Profile, b: &Profile) -> Option<bool> {
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
    (!common.is_empty()).then(|| same * 2 > common.len())
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
    use super::{Dump, FileName, OrderedBy, Set, Sets, are_reversed, file_name, sets};
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
    fn the_newer_one_first() {
        for (base, new, expected) in [
            (("svc.7.10.i10.heap", 0), ("svc.7.9.i9.heap", 0), true),
            (("svc.7.9.i9.heap", 0), ("svc.7.10.i10.heap", 0), false),
            (("svc.7.10.i10.heap", 0), ("svc.8.9.i9.heap", 0), false),
            (("a", 20), ("b", 10), true),
            (("a", 10), ("b", 20), false),
            (("a", 10), ("b", 0), false),
        ] {
            let profiles = [profile(&[], base.1), profile(&[], new.1)];
            let dump = |(name, profile)| Dump { name, profile, origin: Origin::Native };
            let dumps = [(base.0, &profiles[0]), (new.0, &profiles[1])].map(dump);
            assert_eq!(are_reversed(&dumps), expected, "{base:?} {new:?}");
        }
    }

    #[test]
    fn one_process_or_several() {
        const A: &[(u64, &str)] = &[(0x55d0_a000_0000, "/srv/app"), (0x7f10_c000_0000, "/lib/librock.so")];
        const B: &[(u64, &str)] = &[(0x55aa_0000_0000, "/srv/app"), (0x7f99_c000_0000, "/lib/librock.so")];
        const FIXED: &[(u64, &str)] = &[(0x40_0000, "/srv/app")];
        const OTHER: &[(u64, &str)] = &[(0x40_0000, "/srv/other")];
        let told = |sets: &[(&[usize], OrderedBy)]| {
            Sets::Told(sets.iter().map(|&(dumps, ordered_by)| Set { dumps: dumps.to_vec(), ordered_by }).collect())
        };
        let alone = |n| (0..n).map(|index| Set { dumps: vec![index], ordered_by: OrderedBy::Position }).collect();
        for (label, dumps, expected) in [
            ("one dump", vec![("a.heap", profile(A, 0))], Sets::Told(alone(1))),
            ("two processes", vec![("a.heap", profile(A, 0)), ("b.heap", profile(B, 0))], Sets::Told(alone(2))),
            ("two programs", vec![("a", profile(FIXED, 0)), ("b", profile(OTHER, 0))], Sets::Told(alone(2))),
            (
                "fixed addresses prove nothing",
                vec![("a", profile(FIXED, 0)), ("b", profile(FIXED, 0))],
                Sets::Untold(0, 1),
            ),
            ("no addresses prove nothing", vec![("a", profile(&[], 0)), ("b", profile(&[], 0))], Sets::Untold(0, 1)),
            (
                "by sequence, not as text",
                vec![("j.1.10.i10.heap", profile(A, 0)), ("j.1.9.i9.heap", profile(A, 0))],
                told(&[(&[1, 0], OrderedBy::Sequence)]),
            ),
            (
                "the pids differ",
                vec![("j.1.0.i0.heap", profile(A, 0)), ("j.2.1.i1.heap", profile(A, 0))],
                told(&[(&[0], OrderedBy::Sequence), (&[1], OrderedBy::Sequence)]),
            ),
            ("by time", vec![("x", profile(A, 20)), ("y", profile(A, 10))], told(&[(&[1, 0], OrderedBy::Time)])),
            ("as given", vec![("x", profile(A, 20)), ("y", profile(A, 0))], told(&[(&[0, 1], OrderedBy::Position)])),
            (
                "two of one and one of another",
                vec![("x", profile(A, 20)), ("y", profile(B, 15)), ("z", profile(A, 10))],
                told(&[(&[2, 0], OrderedBy::Time), (&[1], OrderedBy::Time)]),
            ),
        ] {
            let dumps: Vec<Dump<'_>> =
                dumps.iter().map(|(name, profile)| Dump { name, profile, origin: Origin::Native }).collect();
            assert_eq!(sets(&dumps), expected, "{label}");
        }
    }
}
