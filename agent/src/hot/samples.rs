//! The live samples: what jemalloc sampled and the host has not freed yet.
//!
//! Two tables of fixed size, both open addressing over atomics, in one anonymous mapping that is touched only where
//! something is stored. Nothing waits and nothing is allocated:
//!
//! * samples, keyed by pointer. A pointer is looked for in a few of the first slots, then in a window of [`WINDOW`] of the
//!   others, from where it hashes to. A host with few live samples so touches few pages, however many come and go. A full
//!   window drops the sample (counted). A free is never lost: it finds its slot or there was none. Nobody else handles
//!   the same pointer meanwhile: an allocation is recorded before `malloc` returns and forgotten before `free` does.
//! * sites, keyed by the hash of the stack. They are never removed, only all together at a reset.
//!
//! A reset puts fresh tables in place and unmaps the old ones when no hook can be looking at them.

use super::pages;
use crate::boundary::contain;
use crate::kernel;
use offheap_wire::StackEnd;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Live samples that fit: at the usual 2^19 bytes a sample, 128 GiB.
const SAMPLES: usize = if cfg!(miri) { 1 << 10 } else { 1 << 18 };
/// Those of them that are tried first.
const FIRST: usize = SAMPLES / 64;
/// Allocation stacks that fit.
const SITES: usize = if cfg!(miri) { 1 << 9 } else { 1 << 16 };
/// Frames of all sites together that fit.
const FRAMES: usize = if cfg!(miri) { 1 << 11 } else { 1 << 21 };
/// Slots in which a key can be.
const WINDOW: usize = 64;
/// The same among the first samples.
const FIRST_WINDOW: usize = 8;
/// How long a reset waits for hooks that are running before it leaves the old tables mapped.
const QUIESCE_ROUNDS: usize = 1000;

/// Keys that are no pointers.
const EMPTY: u64 = 0;
const FREED: u64 = 1;
const BUSY: u64 = 2;
const FIRST_POINTER: u64 = 3;

static TABLES: AtomicPtr<Tables> = AtomicPtr::new(ptr::null_mut());
/// Hooks that are looking at the tables now.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

#[repr(C)]
struct Tables {
    dropped: AtomicU64,
    live: AtomicU64,
    frames_used: AtomicUsize,
    /// Mean bytes between samples, as the bits of an f64.
    period_bits: AtomicU64,
    sample_keys: [AtomicU64; SAMPLES],
    samples: [Sample; SAMPLES],
    site_keys: [AtomicU64; SITES],
    sites: [Site; SITES],
    frames: [AtomicU64; FRAMES],
}

#[repr(C)]
struct Sample {
    site: AtomicU32,
    thread: AtomicU32,
    size: AtomicU64,
    usable: AtomicU64,
    /// [`kernel::now_ns`].
    at_ns: AtomicU64,
}

#[repr(C)]
struct Site {
    /// Where its frames begin, plus one; zero until they are written.
    frames_at: AtomicUsize,
    frame_count: AtomicU32,
    end: AtomicU32,
    samples: AtomicU64,
    /// Bits of f64.
    objects: AtomicU64,
    bytes: AtomicU64,
}

/// Type that `experimental.hooks.prof_sample` takes.
pub(crate) type SampleHook =
    unsafe extern "C" fn(ptr: *const c_void, size: usize, stack: *mut *mut c_void, frames: u32, usable: usize);
/// Type that `experimental.hooks.prof_sample_free` takes.
pub(crate) type SampleFreeHook = unsafe extern "C" fn(ptr: *const c_void, usable: usize);

pub(crate) const SAMPLE: SampleHook = sample;
pub(crate) const SAMPLE_FREE: SampleFreeHook = sample_free;

/// Proof that a hook is counted in [`INSIDE`], and the tables it may use.
struct Inside(*const Tables);

impl Inside {
    fn enter() -> Option<Self> {
        // Before the pointer is read: a reset that sees zero after its swap knows that nobody holds the old pointer.
        INSIDE.fetch_add(1, SeqCst);
        let inside = Self(TABLES.load(SeqCst));
        (!inside.0.is_null()).then_some(inside)
    }

    fn tables(&self) -> &Tables {
        // SAFETY: mapped by `reset`, which unmaps only when INSIDE was seen at zero after the pointer was replaced.
        unsafe { &*self.0 }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, SeqCst);
    }
}

unsafe extern "C" fn sample(ptr: *const c_void, size: usize, stack: *mut *mut c_void, frames: u32, usable: usize) {
    let _ = contain(|| {
        let Some(inside) = Inside::enter() else { return };
        // SAFETY: jemalloc's stack of `frames` addresses, which it does not change any more.
        let stack = unsafe { std::slice::from_raw_parts(stack.cast::<u64>().cast_const(), frames as usize) };
        inside.tables().add(ptr as u64, size as u64, usable as u64, stack);
    });
}

unsafe extern "C" fn sample_free(ptr: *const c_void, usable: usize) {
    let _ = contain(|| {
        let Some(inside) = Inside::enter() else { return };
        inside.tables().remove(ptr as u64, usable as u64);
    });
}

/// Empties the tables for a recording at this rate, making them if need be. On an agent thread, one at a time.
///
/// Gives false when there is no memory for them; then nothing is recorded beyond jemalloc's own profile.
pub(crate) fn reset(lg_sample: u32) -> bool {
    // All zeros is a valid `Tables`: atomics, and keys that mean EMPTY.
    let fresh: *mut Tables = pages::map();
    if !fresh.is_null() {
        // SAFETY: just mapped, nobody else knows it.
        unsafe { (*fresh).period_bits.store(((1u64 << lg_sample.min(62)) as f64).to_bits(), Relaxed) };
    }
    let old = TABLES.swap(fresh, SeqCst);
    if !old.is_null() && quiesced() {
        // SAFETY: no hook holds the pointer any more: each one that could was counted in INSIDE, which was zero since.
        unsafe { pages::unmap(old) };
    }
    !fresh.is_null()
}

fn quiesced() -> bool {
    for _ in 0..QUIESCE_ROUNDS {
        if INSIDE.load(SeqCst) == 0 {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

impl Tables {
    fn add(&self, ptr: u64, size: u64, usable: u64, stack: &[u64]) {
        let Some(site) = self.site(stack) else {
            self.dropped.fetch_add(1, Relaxed);
            return;
        };
        self.sites[site].count(usable, f64::from_bits(self.period_bits.load(Relaxed)));
        for slot in sample_slots(ptr) {
            let key = &self.sample_keys[slot];
            let now = key.load(Relaxed);
            if now > FREED || key.compare_exchange(now, BUSY, Acquire, Relaxed).is_err() {
                continue;
            }
            let sample = &self.samples[slot];
            sample.site.store(site as u32, Relaxed);
            sample.thread.store(thread_id(), Relaxed);
            sample.size.store(size, Relaxed);
            sample.usable.store(usable, Relaxed);
            sample.at_ns.store(kernel::now_ns(), Relaxed);
            key.store(ptr, Release);
            self.live.fetch_add(1, Relaxed);
            return;
        }
        self.dropped.fetch_add(1, Relaxed);
    }

    /// A reallocation in place is recorded anew before the old record is taken back, so for a moment one pointer is
    /// there twice; the size tells which one is meant.
    fn remove(&self, ptr: u64, usable: u64) {
        let mut other = None;
        for slot in sample_slots(ptr) {
            match self.sample_keys[slot].load(Acquire) {
                EMPTY => break,
                key if key != ptr => {}
                _ if self.samples[slot].usable.load(Relaxed) == usable => return self.forget(slot, ptr),
                _ => other = Some(slot),
            }
        }
        if let Some(slot) = other {
            self.forget(slot, ptr);
        }
    }

    fn forget(&self, slot: usize, ptr: u64) {
        if self.sample_keys[slot].compare_exchange(ptr, FREED, AcqRel, Relaxed).is_ok() {
            self.live.fetch_sub(1, Relaxed);
        }
    }

    /// Index of a stack's site, made if need be; `None` when there is no room.
    fn site(&self, stack: &[u64]) -> Option<usize> {
        let hash = hash_stack(stack);
        for slot in window(hash, WINDOW, SITES) {
            let key = &self.site_keys[slot];
            // Nearly always it is known, and then nothing is written.
            let found = match key.load(Acquire) {
                EMPTY => key.compare_exchange(EMPTY, hash, AcqRel, Acquire),
                found => Err(found),
            };
            match found {
                Ok(_) => {
                    self.write_stack(slot, stack, hash);
                    return Some(slot);
                }
                // Two stacks of one 64-bit hash are taken for the same.
                Err(found) if found == hash => return Some(slot),
                Err(_) => {}
            }
        }
        None
    }

    fn write_stack(&self, slot: usize, stack: &[u64], hash: u64) {
        let start = self.frames_used.fetch_add(stack.len(), Relaxed);
        let Some(room) = self.frames.get(start..start.saturating_add(stack.len())) else {
            return; // the site stays without frames, and is shown so
        };
        for (into, &frame) in room.iter().zip(stack) {
            into.store(frame, Relaxed);
        }
        let site = &self.sites[slot];
        site.frame_count.store(stack.len() as u32, Relaxed);
        site.end.store(ENDS.get(hash) as u32, Relaxed);
        site.frames_at.store(start + 1, Release);
    }
}

impl Site {
    /// One more sample of this size stands for k = 1/(1 − e^(−usable/R)) allocations: that is how rarely jemalloc picks
    /// one (each byte with probability 1/R), so the sum of k over the samples is an unbiased count.
    fn count(&self, usable: u64, period: f64) {
        let weight = if period > 1.0 { 1.0 / -(-(usable as f64) / period).exp_m1() } else { 1.0 };
        if weight.is_finite() {
            add_f64(&self.objects, weight);
            add_f64(&self.bytes, weight * usable as f64);
        }
        self.samples.fetch_add(1, Relaxed);
    }
}

fn add_f64(cell: &AtomicU64, value: f64) {
    let mut now = cell.load(Relaxed);
    loop {
        let sum = (f64::from_bits(now) + value).to_bits();
        match cell.compare_exchange_weak(now, sum, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(found) => now = found,
        }
    }
}

/// Where a sample can be, in the order in which slots are tried.
fn sample_slots(ptr: u64) -> impl Iterator<Item = usize> {
    let hash = hash_word(ptr);
    let others = window(hash, WINDOW, SAMPLES - FIRST).map(|slot| FIRST + slot);
    window(hash, FIRST_WINDOW, FIRST).chain(others)
}

fn window(hash: u64, slots: usize, capacity: usize) -> impl Iterator<Item = usize> {
    let first = hash as usize;
    (0..slots).map(move |step| first.wrapping_add(step) % capacity)
}

/// A mix of all bits (the finaliser of MurmurHash3).
fn hash_word(word: u64) -> u64 {
    let mut hash = word;
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Never [`EMPTY`].
pub(super) fn hash_stack(stack: &[u64]) -> u64 {
    let hash = stack.iter().fold(stack.len() as u64, |hash, &frame| hash_word(hash.rotate_left(5) ^ frame));
    hash.max(1)
}

fn thread_id() -> u32 {
    if cfg!(miri) {
        return 1; // a system call that it does not know
    }
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// How stacks ended, by their hash: the walk knows it, and the sample hook that needs it is given the frames only. Only
/// ends other than the root are kept, and two stacks of one slot overwrite each other: then one reads as whole.
pub(super) static ENDS: Ends = Ends([const { AtomicU64::new(0) }; ENDS_COUNT]);
const ENDS_COUNT: usize = 4096;

pub(super) struct Ends([AtomicU64; ENDS_COUNT]);

const END_BITS: u64 = 7;

impl Ends {
    pub(super) fn put(&self, hash: u64, end: StackEnd) {
        self.0[hash as usize % ENDS_COUNT].store((hash & !END_BITS) | end as u64, Relaxed);
    }

    fn get(&self, hash: u64) -> StackEnd {
        let found = self.0[hash as usize % ENDS_COUNT].load(Relaxed);
        if found & !END_BITS != hash & !END_BITS { StackEnd::Root } else { end_of(found & END_BITS) }
    }
}

fn end_of(number: u64) -> StackEnd {
    StackEnd::ALL.get(number as usize).copied().unwrap_or_default()
}

/// One live sample, copied out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleView {
    pub(crate) size: u64,
    pub(crate) usable: u64,
    pub(crate) thread: u32,
    pub(crate) at_ns: u64,
}

/// One site, copied out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SiteView {
    pub(crate) stack: Vec<u64>,
    pub(crate) end: StackEnd,
    pub(crate) objects: f64,
    pub(crate) bytes: f64,
    pub(crate) samples: u64,
    pub(crate) live: Vec<SampleView>,
}

/// Live samples and those that did not fit.
pub(crate) fn counts() -> (u64, u64) {
    Inside::enter().map_or((0, 0), |inside| {
        let tables = inside.tables();
        (tables.live.load(Relaxed), tables.dropped.load(Relaxed))
    })
}

/// Copies the tables. On an agent thread; hooks go on meanwhile, and a sample that comes or goes is in or out.
pub(crate) fn view() -> Vec<SiteView> {
    let Some(inside) = Inside::enter() else { return Vec::new() };
    let tables = inside.tables();
    let mut index_of = vec![usize::MAX; SITES];
    let mut sites = Vec::new();
    for (slot, key) in tables.site_keys.iter().enumerate() {
        if key.load(Acquire) != EMPTY {
            index_of[slot] = sites.len();
            sites.push(tables.sites[slot].view(&tables.frames));
        }
    }
    for (slot, key) in tables.sample_keys.iter().enumerate() {
        let ptr = key.load(Acquire);
        if ptr < FIRST_POINTER {
            continue;
        }
        let sample = &tables.samples[slot];
        let site = sample.site.load(Relaxed) as usize;
        let view = SampleView {
            size: sample.size.load(Relaxed),
            usable: sample.usable.load(Relaxed),
            thread: sample.thread.load(Relaxed),
            at_ns: sample.at_ns.load(Relaxed),
        };
        // The slot can have been freed and taken anew while it was read.
        std::sync::atomic::fence(Acquire);
        if key.load(Relaxed) == ptr
            && let Some(site) = index_of.get(site).and_then(|&index| sites.get_mut(index))
        {
            site.live.push(view);
        }
    }
    sites
}

impl Site {
    fn view(&self, frames: &[AtomicU64]) -> SiteView {
        let count = self.frame_count.load(Relaxed) as usize;
        let start = self.frames_at.load(Acquire).checked_sub(1);
        let stack = start.and_then(|start| frames.get(start..start + count)).unwrap_or_default();
        SiteView {
            stack: stack.iter().map(|frame| frame.load(Relaxed)).collect(),
            end: end_of(u64::from(self.end.load(Relaxed))),
            objects: f64::from_bits(self.objects.load(Relaxed)),
            bytes: f64::from_bits(self.bytes.load(Relaxed)),
            samples: self.samples.load(Relaxed),
            live: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Guards: the tables, which are global.
    static ALONE: Mutex<()> = Mutex::new(());

    fn add(ptr: u64, size: u64, usable: u64, stack: &[u64]) {
        Inside::enter().unwrap().tables().add(ptr, size, usable, stack);
    }

    fn remove(ptr: u64, usable: u64) {
        Inside::enter().unwrap().tables().remove(ptr, usable);
    }

    #[test]
    fn samples_come_and_go_and_sites_stay() {
        let _alone = ALONE.lock().unwrap();
        assert!(reset(10));
        add(0x1000, 100, 112, &[1, 2, 3]);
        add(0x2000, 200, 224, &[1, 2, 3]);
        add(0x3000, 300, 320, &[4]);
        remove(0x2000, 224);
        remove(0x9999, 16);
        let mut sites = view();
        sites.sort_by_key(|site| site.stack.len());
        assert_eq!(counts(), (2, 0));
        assert_eq!((sites[0].stack.as_slice(), sites[0].live.len()), ([4].as_slice(), 1));
        let site = &sites[1];
        assert_eq!((site.stack.as_slice(), site.samples), ([1, 2, 3].as_slice(), 2));
        assert_eq!(site.live.iter().map(|s| (s.size, s.usable)).collect::<Vec<_>>(), [(100, 112)]);
        let weight = |usable: f64| 1.0 / (1.0 - (-usable / 1024.0f64).exp());
        assert!((site.objects - weight(112.0) - weight(224.0)).abs() < 1e-9);
        assert!((site.bytes - 112.0 * weight(112.0) - 224.0 * weight(224.0)).abs() < 1e-6);
        assert!(reset(10));
        assert!(view().is_empty());
    }

    #[test]
    fn in_place_reallocation_keeps_the_new_record() {
        let _alone = ALONE.lock().unwrap();
        assert!(reset(10));
        add(0x1000, 5000, 5120, &[1]);
        add(0x1000, 9000, 10240, &[2]);
        remove(0x1000, 5120);
        let live: Vec<_> = view().into_iter().flat_map(|site| site.live).collect();
        assert_eq!(live.iter().map(|sample| sample.size).collect::<Vec<_>>(), [9000]);
    }

    #[test]
    fn few_live_samples_stay_among_the_first_slots() {
        let _alone = ALONE.lock().unwrap();
        assert!(reset(10));
        let mut used = std::collections::BTreeSet::new();
        for n in 0..SAMPLES as u64 {
            add(0x1000 + n * 64, 64, 64, &[7]);
            if n >= 10 {
                remove(0x1000 + (n - 10) * 64, 64);
            }
            if n % 1009 == 0 {
                let inside = Inside::enter().unwrap();
                let keys = inside.tables().sample_keys.iter().enumerate();
                used.extend(keys.filter(|(_, key)| key.load(Relaxed) != EMPTY).map(|(slot, _)| slot));
            }
            if cfg!(miri) && n > 300 {
                break;
            }
        }
        assert!(used.iter().all(|slot| *slot < FIRST), "{:?}", used.last());
        assert_eq!(counts(), (10, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "fills a whole table, minutes there")]
    fn a_full_table_drops_and_counts_and_then_recovers() {
        let _alone = ALONE.lock().unwrap();
        assert!(reset(0));
        let total = SAMPLES as u64 * 2;
        for n in 1..=total {
            add(n * 16, 16, 16, &[7]);
        }
        let (live, dropped) = counts();
        assert_eq!(live + dropped, total);
        assert!(live > SAMPLES as u64 * 9 / 10, "{live}");
        for n in 1..=total {
            remove(n * 16, 16);
        }
        assert_eq!(counts().0, 0);
        add(16, 16, 16, &[7]);
        assert_eq!(counts().0, 1);
    }

    #[test]
    fn threads_at_once_lose_nothing() {
        const EACH: u64 = if cfg!(miri) { 100 } else { 5000 };
        let _alone = ALONE.lock().unwrap();
        assert!(reset(12));
        std::thread::scope(|scope| {
            for thread in 1..=4u64 {
                scope.spawn(move || {
                    for n in 0..EACH {
                        let ptr = (thread << 40) + n * 64;
                        add(ptr, 64, 64, &[thread, n % 50]);
                        if n % 2 == 0 {
                            remove(ptr, 64);
                        }
                    }
                });
            }
        });
        let sites = view();
        assert_eq!(sites.len(), 200);
        assert_eq!(sites.iter().map(|site| site.live.len() as u64).sum::<u64>(), EACH * 2);
        assert_eq!(sites.iter().map(|site| site.samples).sum::<u64>(), EACH * 4);
        assert_eq!(counts(), (EACH * 2, 0));
    }

    #[test]
    fn resets_while_hooks_run() {
        let _alone = ALONE.lock().unwrap();
        assert!(reset(12));
        std::thread::scope(|scope| {
            for thread in 1..=3u64 {
                scope.spawn(move || {
                    for n in 0..if cfg!(miri) { 60 } else { 20_000u64 } {
                        let ptr = (thread << 40) + n % 100 * 64;
                        add(ptr, 64, 64, &[thread, n % 7]);
                        remove(ptr, 64);
                    }
                });
            }
            for _ in 0..if cfg!(miri) { 5 } else { 50 } {
                assert!(view().iter().all(|site| site.stack.len() <= 2));
                assert!(reset(12));
            }
        });
        assert_eq!(counts().0, 0);
    }

    #[test]
    fn ends_are_remembered_by_stack() {
        let hash = hash_stack(&[11, 12]);
        assert_eq!(ENDS.get(hash), StackEnd::Root);
        ENDS.put(hash, StackEnd::UnknownImage);
        assert_eq!(ENDS.get(hash), StackEnd::UnknownImage);
        assert_eq!(ENDS.get(hash_stack(&[13])), StackEnd::Root);
    }
}
