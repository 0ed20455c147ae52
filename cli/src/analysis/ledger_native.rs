//! The native side of the ledger: jemalloc's statistics laid over its mappings.
//!
//! ```text
//! resident = live + cached + slab waste + padding + unreturned + metadata
//!            └──── allocated ────┘
//!            └──────────────── active ──────────────┘
//! ```
//!
//! `resident` is an upper bound, since an allocation counts from the moment it is made and its pages only once they are
//! touched. What is missing in the measured bytes is taken from padding (a page for each large allocation, of which
//! mostly nothing is touched), then from half of metadata (a fresh process was seen to touch 1.2 of the 3.2 MiB that it
//! counts, and the difference stays as it grows), then from live. Muzzy pages are not part of `resident`, although the kernel counts them
//! until it takes them: they appear as `LazyFree`.

use super::ledger::{Draft, Owner, settle};
use super::smaps_owners::{Kind, Owners};
use offheap_wire::Stats;

/// What is left over after jemalloc's mappings were divided.
#[derive(Debug, Default)]
pub(super) struct Native {
    /// Resident in allocator mappings beyond every figure.
    pub(super) unexplained: u64,
    /// Resident in anonymous mappings that are not the allocator's.
    pub(super) anonymous: u64,
}

/// Divide the allocator's mappings; `anonymous` is what the Go heap left of those that bear no mark.
pub(super) fn mappings(draft: &mut Draft, owners: &Owners, stats: Option<&Stats>, anonymous: u64) -> Native {
    let own = owners.part(Kind::NoReserve);
    let Some((stats, resident)) = stats.and_then(|stats| Some((stats, stats.resident?))) else {
        return unread(draft, owners, anonymous);
    };
    // jemalloc asks for MAP_NORESERVE unless the host forbids overcommitting, and then the kernel marks nobody's
    // mappings. There, and where it prints no flags, only totals are left: what jemalloc calls resident is its own, as
    // far as there is so much.
    let by_flag = own.rss > 0;
    let measured = if by_flag { own.rss } else { own.rss + resident.min(anonymous) };
    let place =
        if by_flag { "smaps: MAP_NORESERVE mappings" } else { "total only: no mark tells its mappings from others" };

    let held = own.lazy_free + own.anon_huge_pages;
    let unexplained = divide(draft, stats, resident, measured, held, place);
    Native { unexplained, anonymous: own.rss + anonymous - measured }
}

/// Lay the statistics over the measured bytes; returns what they do not explain.
fn divide(draft: &mut Draft, stats: &Stats, resident: u64, measured: u64, held: u64, place: &str) -> u64 {
    let allocated = stats.allocated.unwrap_or(0);
    let active = stats.active.unwrap_or(allocated);
    let metadata = stats.metadata.unwrap_or(0);
    let cached = stats.tcache.unwrap_or(0).min(allocated);
    let free_in_slabs = stats.bins.iter().fold(0_u64, |sum, bin| {
        let slabs = bin.curslabs.saturating_mul(bin.slab_size);
        sum.saturating_add(slabs.saturating_sub(bin.curregs.saturating_mul(bin.size)))
    });
    let waste = free_in_slabs.min(active.saturating_sub(allocated));
    let padding = active.saturating_sub(allocated).saturating_sub(waste);
    let unreturned = resident.saturating_sub(active).saturating_sub(metadata);

    let claims = [unreturned, cached, waste, metadata.div_ceil(2), allocated - cached, metadata / 2, padding];
    let ([unreturned, cached, waste, half, live, other_half, padding], beyond) = settle(measured, claims);
    let ([held], unexplained) = settle(beyond, [held]);
    draft.ledger.native_untouched =
        claims.iter().fold(0_u64, |sum, claim| sum.saturating_add(*claim)).saturating_sub(measured);
    draft.row(Owner::JemallocLive, live, format!("agent: allocated - cached, as far as resident ({place})"));
    draft.row(Owner::JemallocCached, cached, "agent: bytes in thread caches");
    draft.row(Owner::JemallocSlabWaste, waste, "agent: slabs - regions in use, small classes");
    draft.row(Owner::JemallocPadding, padding, "agent: active - allocated - slab waste");
    let also = if held > 0 { "; muzzy pages (LazyFree) and huge pages beyond resident" } else { "" };
    draft.row(Owner::JemallocUnreturned, unreturned + held, format!("agent: resident - active - metadata{also}"));
    draft.row(Owner::JemallocMetadata, half + other_half, "agent: metadata, as far as touched");
    unexplained
}

/// Without the agent: `brk` and mappings without reserve are a C allocator's.
fn unread(draft: &mut Draft, owners: &Owners, anonymous: u64) -> Native {
    let (brk, own) = (owners.part(Kind::BrkHeap).rss, owners.part(Kind::NoReserve).rss);
    draft.row(
        Owner::Native,
        brk + own,
        format!("smaps: {brk} B [heap], {own} B MAP_NORESERVE mappings (arenas of glibc, or another allocator)"),
    );
    draft.note(
        "the agent (offheap run -- COMMAND) would divide native memory into live, cached, slab waste and unreturned, \
         and tell it from memory that was mapped directly",
    );
    Native { unexplained: 0, anonymous }
}
