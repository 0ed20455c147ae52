//! jemalloc's controls by name, with the type of each.
//!
//! The table is needed: jemalloc answers a wrong width with EINVAL *and copies what fits anyway*, so a width must never
//! be guessed. What is not in the table is not served. Controls about "the calling thread" are left out on purpose: the
//! thread would be the agent's.

use super::mallctl::{self, MallctlError};
use super::stats;
use serde_json::{Value, json};
use std::fmt;

/// Type of a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    /// `unsigned` or `uint32_t`.
    Unsigned,
    U64,
    I64,
    Size,
    SSize,
    Text,
    /// No value: the act is in the name.
    Act,
}

/// One control or several that differ in an index; `N` stands for a number.
struct Knob {
    pattern: &'static str,
    kind: Kind,
    writable: bool,
}

const fn ro(pattern: &'static str, kind: Kind) -> Knob {
    Knob { pattern, kind, writable: false }
}

const fn rw(pattern: &'static str, kind: Kind) -> Knob {
    Knob { pattern, kind, writable: true }
}

use Kind::{Act, Bool, I64, SSize, Size, Text, U64, Unsigned};

/// Names that end in these words have these types, below the given prefix; searched after [`KNOBS`].
const FAMILIES: &[(&str, &[&str], Kind)] = &[
    ("config.", &["malloc_conf"], Text),
    ("config.", &["*"], Bool),
    (
        "stats.arenas.N.",
        &[
            "mapped",
            "retained",
            "extent_avail",
            "base",
            "internal",
            "metadata_thp",
            "metadata_edata",
            "metadata_rtree",
            "tcache_bytes",
            "tcache_stashed_bytes",
            "resident",
            "abandoned_vm",
            "pactive",
            "pdirty",
            "pmuzzy",
            "small.allocated",
            "large.allocated",
            "bins.N.curregs",
            "bins.N.curslabs",
            "bins.N.nonfull_slabs",
            "lextents.N.curlextents",
            "extents.N.ndirty",
            "extents.N.nmuzzy",
            "extents.N.nretained",
            "extents.N.dirty_bytes",
            "extents.N.muzzy_bytes",
            "extents.N.retained_bytes",
        ],
        Size,
    ),
    (
        "stats.arenas.N.",
        &[
            "uptime",
            "dirty_npurge",
            "dirty_nmadvise",
            "dirty_purged",
            "muzzy_npurge",
            "muzzy_nmadvise",
            "muzzy_purged",
            "small.nmalloc",
            "small.ndalloc",
            "small.nrequests",
            "small.nfills",
            "small.nflushes",
            "large.nmalloc",
            "large.ndalloc",
            "large.nrequests",
            "large.nfills",
            "large.nflushes",
            "bins.N.nmalloc",
            "bins.N.ndalloc",
            "bins.N.nrequests",
            "bins.N.nfills",
            "bins.N.nflushes",
            "bins.N.nslabs",
            "bins.N.nreslabs",
            "lextents.N.nmalloc",
            "lextents.N.ndalloc",
            "lextents.N.nrequests",
        ],
        U64,
    ),
    ("stats.arenas.N.", &["nthreads"], Unsigned),
    ("stats.arenas.N.", &["dirty_decay_ms", "muzzy_decay_ms"], SSize),
    ("stats.arenas.N.", &["dss"], Text),
    (
        "opt.",
        &[
            "abort",
            "abort_conf",
            "cache_oblivious",
            "confirm_conf",
            "trust_madvise",
            "hpa",
            "retain",
            "background_thread",
            "stats_print",
            "zero",
            "utrace",
            "xmalloc",
            "tcache",
            "prof",
            "prof_active",
            "prof_thread_active_init",
            "prof_accum",
            "prof_gdump",
            "prof_final",
            "prof_leak",
            "prof_leak_error",
            "prof_stats",
            "prof_sys_thread_name",
        ],
        Bool,
    ),
    ("opt.", &["dss", "percpu_arena", "junk", "thp", "metadata_thp", "zero_realloc", "prof_prefix"], Text),
    ("opt.", &["stats_print_opts", "stats_interval_opts", "malloc_conf.symlink", "malloc_conf.env_var"], Text),
    ("opt.", &["malloc_conf.global_var", "prof_time_resolution"], Text),
    ("opt.", &["narenas", "prof_bt_max", "debug_double_free_max_scan"], Unsigned),
    ("opt.", &["oversize_threshold", "max_background_threads", "tcache_max", "lg_prof_sample"], Size),
    ("opt.", &["dirty_decay_ms", "muzzy_decay_ms", "lg_prof_interval", "lg_tcache_nslots_mul"], SSize),
    ("opt.", &["mutex_max_spin", "stats_interval"], I64),
    ("stats.", &["allocated", "active", "metadata", "metadata_thp", "metadata_edata", "metadata_rtree"], Size),
    ("stats.", &["resident", "mapped", "retained", "zero_reallocs", "background_thread.num_threads"], Size),
    ("stats.", &["background_thread.num_runs", "background_thread.run_interval"], U64),
];

const KNOBS: &[Knob] = &[
    ro("version", Text),
    rw("epoch", U64),
    rw("background_thread", Bool),
    rw("max_background_threads", Size),
    ro("arenas.narenas", Unsigned),
    ro("arenas.quantum", Size),
    ro("arenas.page", Size),
    ro("arenas.hugepage", Size),
    ro("arenas.tcache_max", Size),
    ro("arenas.nbins", Unsigned),
    ro("arenas.nhbins", Unsigned),
    ro("arenas.nlextents", Unsigned),
    ro("arenas.bin.N.size", Size),
    ro("arenas.bin.N.nregs", Unsigned),
    ro("arenas.bin.N.slab_size", Size),
    ro("arenas.bin.N.nshards", Unsigned),
    ro("arenas.lextent.N.size", Size),
    rw("arenas.dirty_decay_ms", SSize),
    rw("arenas.muzzy_decay_ms", SSize),
    ro("arena.N.initialized", Bool),
    rw("arena.N.dirty_decay_ms", SSize),
    rw("arena.N.muzzy_decay_ms", SSize),
    rw("arena.N.purge", Act),
    rw("arena.N.decay", Act),
    // prof.active is served by /v1/profile/start and /stop, which also put the unwinder in place.
    ro("prof.active", Bool),
    ro("prof.interval", U64),
    ro("prof.lg_sample", Size),
    rw("prof.thread_active_init", Bool),
    rw("prof.gdump", Bool),
];

/// Why a control was not read or set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnobError {
    /// Not in the table.
    Unknown(String),
    /// Not on the list of what may be set.
    ReadOnly(String),
    /// No value to read.
    WriteOnly(String),
    /// The text is not a value of the control's type.
    Value {
        name: String,
        expected: &'static str,
        given: String,
    },
    Mallctl(MallctlError),
}

impl fmt::Display for KnobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "unknown control {name:?}: expected a name of the jemalloc manual"),
            Self::ReadOnly(name) => {
                let list = KNOBS.iter().filter(|knob| knob.writable).map(|knob| knob.pattern).collect::<Vec<_>>();
                write!(f, "control {name:?} cannot be set here; these can: {}", list.join(", "))
            }
            Self::WriteOnly(name) => write!(f, "control {name:?} has no value: use PUT to make it act"),
            Self::Value { name, expected, given } => {
                write!(f, "{given:?} is no value for {name}: expected {expected} as the request body")
            }
            Self::Mallctl(error) => error.fmt(f),
        }
    }
}

impl From<MallctlError> for KnobError {
    fn from(error: MallctlError) -> Self {
        Self::Mallctl(error)
    }
}

/// `{"name": NAME, "value": VALUE}`.
pub(crate) fn get(name: &str) -> Result<Value, KnobError> {
    let (kind, _) = find(name).ok_or_else(|| KnobError::Unknown(name.to_owned()))?;
    if name.starts_with("stats.") {
        stats::advance_epoch()?;
    }
    // SAFETY: each kind is read with the width that the table gives, which is jemalloc's.
    let value = unsafe {
        match kind {
            Bool => json!(mallctl::read::<u8>(name)? != 0),
            Unsigned => json!(mallctl::read::<u32>(name)?),
            U64 => json!(mallctl::read::<u64>(name)?),
            I64 => json!(mallctl::read::<i64>(name)?),
            Size => json!(mallctl::read::<usize>(name)?),
            SSize => json!(mallctl::read::<isize>(name)?),
            Text => json!(mallctl::read_text(name)?),
            Act => return Err(KnobError::WriteOnly(name.to_owned())),
        }
    };
    Ok(json!({ "name": name, "value": value }))
}

/// Sets a control from the text of a request body and answers its value after.
pub(crate) fn put(name: &str, body: &str) -> Result<Value, KnobError> {
    let (kind, writable) = find(name).ok_or_else(|| KnobError::Unknown(name.to_owned()))?;
    if !writable {
        return Err(KnobError::ReadOnly(name.to_owned()));
    }
    let given = body.trim();
    let wrong = |expected| KnobError::Value { name: name.to_owned(), expected, given: given.to_owned() };
    // SAFETY: as in `get`.
    unsafe {
        match kind {
            Bool => mallctl::write(name, given.parse::<bool>().map_err(|_| wrong("true or false"))?)?,
            Unsigned => mallctl::write(name, given.parse::<u32>().map_err(|_| wrong("a whole number"))?)?,
            U64 => mallctl::write(name, given.parse::<u64>().map_err(|_| wrong("a whole number"))?)?,
            I64 => mallctl::write(name, given.parse::<i64>().map_err(|_| wrong("a whole number"))?)?,
            Size => mallctl::write(name, given.parse::<usize>().map_err(|_| wrong("a whole number"))?)?,
            SSize => mallctl::write(name, given.parse::<isize>().map_err(|_| wrong("a whole number"))?)?,
            Text => return Err(KnobError::ReadOnly(name.to_owned())),
            Act => {
                mallctl::act(name)?;
                return Ok(json!({ "name": name, "value": null }));
            }
        }
    }
    get(name)
}

/// Type of a control and whether it may be set.
fn find(name: &str) -> Option<(Kind, bool)> {
    if let Some(knob) = KNOBS.iter().find(|knob| matches(knob.pattern, name)) {
        return Some((knob.kind, knob.writable));
    }
    FAMILIES.iter().find_map(|(prefix, suffixes, kind)| {
        let fits = |suffix: &&str| match *suffix {
            "*" => name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && !rest.contains('.')),
            suffix => matches(&format!("{prefix}{suffix}"), name),
        };
        suffixes.iter().any(fits).then_some((*kind, false))
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = name.split('.');
    pattern.split('.').all(|want| {
        parts.next().is_some_and(|part| match want {
            "N" => !part.is_empty() && part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit()),
            want => want == part,
        })
    }) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks jemalloc itself for the width: only the right one is not EINVAL.
    fn width_accepted(name: &str, width: usize) -> bool {
        let mut buffer = [0u8; 16];
        let mut length = width;
        let name_z = std::ffi::CString::new(name).unwrap();
        // SAFETY: the buffer is larger than any width tried.
        let errno = unsafe {
            tikv_jemalloc_sys::mallctl(
                name_z.as_ptr(),
                buffer.as_mut_ptr().cast(),
                &raw mut length,
                std::ptr::null_mut(),
                0,
            )
        };
        errno == 0
    }

    #[test]
    fn every_width_in_the_table_is_jemallocs() {
        let patterns = KNOBS.iter().map(|knob| (knob.pattern.to_owned(), knob.kind));
        let families = FAMILIES.iter().flat_map(|(prefix, suffixes, kind)| {
            suffixes.iter().filter(|suffix| **suffix != "*").map(move |suffix| (format!("{prefix}{suffix}"), *kind))
        });
        let mut checked = 0;
        for (pattern, kind) in patterns.chain(families) {
            let name = pattern.replace(".N.", ".0.");
            let width = match kind {
                Act => continue,
                Bool => 1,
                Unsigned => 4,
                _ => 8,
            };
            let optional = ["prof.", "opt.zero", "opt.utrace", "opt.junk", "opt.xmalloc", "opt.malloc_conf."];
            if !width_accepted(&name, width) && optional.iter().any(|prefix| name.starts_with(prefix)) {
                continue; // not compiled in, not set, or opt.prof is false in this test
            }
            assert!(width_accepted(&name, width), "{name} is not {width} bytes wide");
            for other in [1, 4, 8].into_iter().filter(|&other| other != width) {
                assert!(!width_accepted(&name, other), "{name} is {other} bytes wide");
            }
            checked += 1;
        }
        assert!(checked > 80, "{checked}");
    }

    #[test]
    fn values_are_typed_and_writes_are_listed() {
        assert_eq!(get("arenas.page").unwrap()["value"], 4096);
        assert_eq!(get("config.stats").unwrap()["value"], true);
        assert!(matches!(get("thread.arena"), Err(KnobError::Unknown(_))));
        assert!(matches!(get("arena.0.purge"), Err(KnobError::WriteOnly(_))));
        assert!(matches!(put("opt.prof", "true"), Err(KnobError::ReadOnly(_))));
        assert!(matches!(put("prof.active", "true"), Err(KnobError::ReadOnly(_))));
        assert!(matches!(put("arena.0.dirty_decay_ms", "soon"), Err(KnobError::Value { .. })));
        assert_eq!(put("arena.0.dirty_decay_ms", "777\n").unwrap()["value"], 777);
        assert_eq!(put("arena.0.purge", "").unwrap()["value"], Value::Null);
    }

    #[test]
    fn patterns_take_numbers_only() {
        assert!(matches("arena.N.purge", "arena.12.purge"));
        for name in ["arena..purge", "arena.x.purge", "arena.0.purge.more", "arena.0", "arena.99999999.purge"] {
            assert!(!matches("arena.N.purge", name), "{name}");
        }
    }
}
