//! Frames of the allocator at the leaf, which every stack has and no one asks for.

use super::hash::FastMap;
use super::{LocationId, Profile};

impl Profile {
    /// Cut the allocator's own frames off the leaf of every stack; how many samples that changed.
    ///
    /// Frames are recognised by their function and by their library (`libjemalloc.so`, which is usually stripped). A
    /// stack that is nothing but allocator keeps its outermost frame, so that its bytes stay with a name.
    pub fn prune_allocator(&mut self) -> usize {
        let verdicts: Vec<Verdict> = self.locations.iter().map(|l| verdict(self, l)).collect();
        let mut shortened = FastMap::<LocationId, LocationId>::default();
        let mut changed = 0;
        for index in 0..self.samples.len() {
            let stack = &self.samples[index].locations;
            let whole = stack.iter().take_while(|l| verdicts[l.0 as usize] == Verdict::Whole).count();
            let whole = whole.min(stack.len().saturating_sub(1));
            let part = stack.get(whole).map(|&l| (l, verdicts[l.0 as usize]));
            if whole > 0 {
                self.samples[index].locations.drain(..whole);
            }
            if let Some((location, Verdict::Lines(n))) = part {
                let leaf = *shortened.entry(location).or_insert_with(|| {
                    let mut kept = self.locations[location.0 as usize].clone();
                    kept.lines.drain(..n);
                    self.locations.push(kept);
                    LocationId(self.locations.len() as u32 - 1)
                });
                self.samples[index].locations[0] = leaf;
            }
            changed += usize::from(whole > 0 || matches!(part, Some((_, Verdict::Lines(_)))));
        }
        changed
    }
}

/// How much of a location is allocator, from the innermost line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    No,
    /// This many inlined lines.
    Lines(usize),
    Whole,
}

fn verdict(profile: &Profile, location: &super::Location) -> Verdict {
    let module = location.mapping.map_or("", |id| profile.mapping(id).base_name());
    if is_allocator_library(module) {
        return Verdict::Whole;
    }
    let is_allocator = |line: &&super::Line| is_allocator_function(&profile.function(line.function).name);
    match location.lines.iter().take_while(is_allocator).count() {
        0 => Verdict::No,
        n if n == location.lines.len() => Verdict::Whole,
        n => Verdict::Lines(n),
    }
}

fn is_allocator_library(base_name: &str) -> bool {
    ["libjemalloc.so", "liboffheap_agent.so", "libtcmalloc", "libmimalloc.so"]
        .iter()
        .any(|prefix| base_name.starts_with(prefix))
}

fn is_allocator_function(name: &str) -> bool {
    const EXACT: [&str; 28] = [
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "memalign",
        "posix_memalign",
        "aligned_alloc",
        "valloc",
        "pvalloc",
        "mallocx",
        "rallocx",
        "xallocx",
        "newImpl",
        "imalloc",
        "imalloc_body",
        "malloc_default",
        "handleOOM",
        "prof_backtrace",
        "prof_backtrace_impl",
        "prof_backtrace_hook",
        "prof_alloc_prep",
        "prof_tctx_create",
        "prof_lookup_global",
        "__rust_alloc",
        "__rust_alloc_zeroed",
        "__rust_realloc",
        "alloc::alloc::exchange_malloc",
        "void* fallback_impl",
    ];
    // What stands behind `tc_`, `mi_` and `mi_heap_` in tcmalloc and mimalloc. The prefix alone says nothing: MyISAM has
    // `mi_open`, and many programs a `tc_something` of their own.
    const ENTRIES: [&str; 14] = [
        "malloc",
        "calloc",
        "realloc",
        "reallocn",
        "reallocf",
        "rezalloc",
        "recalloc",
        "mallocn",
        "zalloc",
        "new",
        "memalign",
        "posix_memalign",
        "valloc",
        "pvalloc",
    ];
    const VARIANTS: [&str; 9] =
        ["", "_small", "_aligned", "_aligned_at", "array", "_nothrow", "array_nothrow", "_n", "_skip_new_handler"];
    const PREFIXES: [&str; 20] = [
        "operator new",
        "je_",
        "_rjem_",
        "tcmalloc::",
        "_mi_malloc",
        "_mi_heap_",
        "_mi_page_malloc",
        "mi_heap_malloc",
        "__libc_malloc",
        "__libc_calloc",
        "__libc_realloc",
        "__libc_memalign",
        "__rdl_",
        "__rg_",
        "void* fallback_impl<",
        "alloc::alloc::alloc",
        "alloc::alloc::realloc",
        "alloc::alloc::Global::",
        "<alloc::alloc::Global as core::alloc::Allocator>::",
        "<tikv_jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::",
    ];
    // The pass-through classes of C++ libraries; only their `allocate`.
    const CPP_ALLOCATORS: [&str; 7] = [
        "__gnu_cxx::new_allocator<",
        "std::__new_allocator<",
        "std::allocator<",
        "std::allocator_traits<",
        "std::__1::allocator<",
        "std::__1::allocator_traits<",
        "std::__1::__libcpp_allocate",
    ];
    // `malloc@GLIBC_2.2.5` and compiler suffixes.
    let plain = name.split(['@', '.']).next().unwrap_or(name);
    let entry = ["tc_", "mi_heap_", "mi_"].iter().find_map(|prefix| plain.strip_prefix(prefix));
    let is_entry =
        |name: &str| ENTRIES.iter().any(|entry| name.strip_prefix(entry).is_some_and(|rest| VARIANTS.contains(&rest)));
    EXACT.contains(&plain)
        || entry.is_some_and(is_entry)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || CPP_ALLOCATORS.iter().any(|prefix| name.starts_with(prefix) && name.contains("allocate"))
}

#[cfg(test)]
mod tests {
    use super::is_allocator_function;
    use crate::address::RuntimeAddress;
    use crate::profile::{Line, Location, LocationId, Mapping, MappingId, Profile, ProfileBuilder, Sample};

    #[test]
    fn allocators_are_told_from_their_callers() {
        for name in [
            "malloc",
            "malloc@GLIBC_2.2.5",
            "operator new(unsigned long)",
            "operator new[](unsigned long, std::nothrow_t const&)",
            "je_malloc_default",
            "_rjem_je_prof_backtrace",
            "imalloc_body.constprop.0",
            "__rust_alloc",
            "tc_malloc",
            "tc_newarray_nothrow",
            "mi_heap_malloc_small",
            "mi_zalloc_aligned",
            "std::allocator_traits<std::allocator<char> >::allocate(std::allocator<char>&, unsigned long)",
        ] {
            assert!(is_allocator_function(name), "{name}");
        }
        for name in [
            "main.mallocHeavy",
            "mallocate",
            "rocksdb::Arena::AllocateNewBlock",
            "std::string::reserve",
            "mine",
            "mi_open",
            "mi_alloc_rec_buff",
            "mi_newest",
            "tc_log_init",
            "tc_new_ring",
        ] {
            assert!(!is_allocator_function(name), "{name}");
        }
    }

    fn stack(profile: &mut ProfileBuilder, frames: &[&[&str]], module: Option<MappingId>) {
        let mut locations = Vec::new();
        for names in frames {
            let lines: Vec<Line> = names
                .iter()
                .map(|name| Line { function: profile.function(name, name, "", 0), line: 0, column: 0 })
                .collect();
            let mapping = names.is_empty().then_some(module).flatten();
            let location = Location { mapping, address: RuntimeAddress(1), lines, is_folded: false };
            locations.push(profile.location_as_given(location));
        }
        profile.sample(Sample { locations, ..Sample::default() });
    }

    fn names(profile: &Profile, sample: usize) -> Vec<String> {
        let line = |l: &Line| profile.function(l.function).name.to_string();
        let frame = |&id: &LocationId| match profile.location(id).lines.as_slice() {
            [] => "?".to_owned(),
            lines => lines.iter().map(line).collect::<Vec<_>>().join("<"),
        };
        profile.samples[sample].locations.iter().map(frame).collect()
    }

    #[test]
    fn only_the_leaf_is_pruned() {
        let mut builder = ProfileBuilder::default();
        let jemalloc = builder.mapping(Mapping { path: "/usr/lib/libjemalloc.so.2".into(), ..Mapping::default() });
        let cases: [(&[&[&str]], &[&str]); 6] = [
            (&[&["je_malloc"], &["operator new(unsigned long)"], &["grow"], &["main"]], &["grow", "main"]),
            (&[&[], &["malloc"], &["grow"]], &["grow"]),
            (&[&["malloc", "grow"], &["main"]], &["grow", "main"]),
            (&[&["grow"], &["malloc"], &["main"]], &["grow", "malloc", "main"]),
            (&[&["je_malloc"], &["malloc"]], &["malloc"]),
            (&[], &[]),
        ];
        for (frames, _) in cases {
            stack(&mut builder, frames, Some(jemalloc));
        }
        let mut profile = builder.finish();
        assert_eq!(profile.prune_allocator(), 4);
        for (index, (_, expected)) in cases.iter().enumerate() {
            assert_eq!(names(&profile, index), *expected, "case {index}");
        }
        assert_eq!(profile.prune_allocator(), 0);
    }
}
