//! jemalloc's controls by name, with the type of each and whether it may be set.
//!
//! The table is needed: jemalloc answers a wrong width with EINVAL *and copies what fits anyway*, so a width must never
//! be guessed. What is not in the table is not served. Controls about "the calling thread" are left out on purpose: the
//! thread would be the agent's.

use super::call;
use super::error::MallctlError;

/// Type of a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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

/// A value of one of these types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Unsigned(u32),
    U64(u64),
    I64(i64),
    Size(usize),
    SSize(isize),
    Text(String),
    Act,
}

/// One control or several that differ in an index; `N` stands for a number.
struct Row {
    pattern: &'static str,
    kind: Kind,
    writable: bool,
}

const fn ro(pattern: &'static str, kind: Kind) -> Row {
    Row { pattern, kind, writable: false }
}

const fn rw(pattern: &'static str, kind: Kind) -> Row {
    Row { pattern, kind, writable: true }
}

use Kind::{Act, Bool, I64, SSize, Size, Text, U64, Unsigned};

/// Names that end in these words have these types, below the given prefix; searched after [`SINGLE`].
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

const SINGLE: &[Row] = &[
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

/// A control of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control<'name> {
    name: &'name str,
    kind: Kind,
    is_settable: bool,
}

impl<'name> Control<'name> {
    /// The control of this name; `None` when it is not in the table.
    pub(crate) fn find(name: &'name str) -> Option<Self> {
        if let Some(row) = SINGLE.iter().find(|row| matches(row.pattern, name)) {
            return Some(Self { name, kind: row.kind, is_settable: row.writable });
        }
        FAMILIES.iter().find_map(|(prefix, suffixes, kind)| {
            let fits = |suffix: &&str| match *suffix {
                "*" => name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && !rest.contains('.')),
                suffix => matches(&format!("{prefix}{suffix}"), name),
            };
            suffixes.iter().any(fits).then_some(Self { name, kind: *kind, is_settable: false })
        })
    }

    /// Patterns of those that may be set.
    pub(crate) fn settable() -> impl Iterator<Item = &'static str> {
        SINGLE.iter().filter(|row| row.writable).map(|row| row.pattern)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn is_settable(&self) -> bool {
        self.is_settable
    }

    /// The value now.
    pub(crate) fn read(&self) -> Result<Value, MallctlError> {
        Ok(match self.kind {
            Bool => Value::Bool(call::read(self.name)?),
            Unsigned => Value::Unsigned(call::read(self.name)?),
            U64 => Value::U64(call::read(self.name)?),
            I64 => Value::I64(call::read(self.name)?),
            Size => Value::Size(call::read(self.name)?),
            SSize => Value::SSize(call::read(self.name)?),
            // SAFETY: a `const char *`, as the table says.
            Text => Value::Text(unsafe { call::read_text(self.name) }?),
            Act => return Err(self.refused(libc::EPERM)),
        })
    }

    /// Sets it, to a value of its own type and if the table lets it.
    pub(crate) fn set(&self, value: &Value) -> Result<(), MallctlError> {
        if !self.is_settable {
            return Err(self.refused(libc::EPERM));
        }
        // SAFETY: those that the table lets be set are switches, numbers of this type, and acts that give back unused
        // memory; none takes an address and none frees what is in use.
        unsafe {
            match (self.kind, value) {
                (Bool, Value::Bool(on)) => call::write(self.name, *on),
                (Unsigned, Value::Unsigned(number)) => call::write(self.name, *number),
                (U64, Value::U64(number)) => call::write(self.name, *number),
                (I64, Value::I64(number)) => call::write(self.name, *number),
                (Size, Value::Size(number)) => call::write(self.name, *number),
                (SSize, Value::SSize(number)) => call::write(self.name, *number),
                (Act, Value::Act) => call::act(self.name),
                _ => Err(self.refused(libc::EINVAL)),
            }
        }
    }

    fn refused(&self, errno: i32) -> MallctlError {
        MallctlError { name: self.name.to_owned(), errno }
    }
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

    #[test]
    fn every_width_in_the_table_is_jemallocs() {
        let patterns = SINGLE.iter().map(|row| (row.pattern.to_owned(), row.kind));
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
            if !call::accepts_width(&name, width) && optional.iter().any(|prefix| name.starts_with(prefix)) {
                continue; // not compiled in, not set, or opt.prof is false in this test
            }
            assert!(call::accepts_width(&name, width), "{name} is not {width} bytes wide");
            for other in [1, 4, 8].into_iter().filter(|&other| other != width) {
                assert!(!call::accepts_width(&name, other), "{name} is {other} bytes wide");
            }
            checked += 1;
        }
        assert!(checked > 80, "{checked}");
    }

    #[test]
    fn patterns_take_numbers_only() {
        assert!(matches("arena.N.purge", "arena.12.purge"));
        for name in ["arena..purge", "arena.x.purge", "arena.0.purge.more", "arena.0", "arena.99999999.purge"] {
            assert!(!matches("arena.N.purge", name), "{name}");
        }
    }
}
