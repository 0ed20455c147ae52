//! Scratch space for walks, and the publication of the module table.
//!
//! A walk needs framehop's caches (some 15 KiB each, with preallocated unwind rows) and the module table. They cannot
//! be thread-locals: a destructor would run in threads of the host, and a first use would allocate inside `malloc`.
//! So there is a fixed pool, filled before the hook is installed. A thread starts at the slot its thread pointer hashes
//! to and so nearly always finds its own warm caches again.
//!
//! A taken slot also protects the table its walk uses (a hazard pointer): [`publish`] frees an old table only when no
//! slot names it. The hook never waits; only the publisher does, on its own thread.

use super::modules::ModuleTable;
use super::storage::FixedStorage;
use framehop::CacheNative;
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Unwind rules by address. In one of framehop's caches each address has one place, and two that share it drive each other
/// out: of a large C++ program a handful of pairs did, whose rules were then worked out at every sample. So there are several
/// caches, and an address goes to the one that it was in last.
pub(super) struct HookCaches {
    caches: [CacheNative<FixedStorage>; WAYS],
    /// By place, which address each cache has there: some of its bits. Where they lie, a rule is worked out again.
    tags: [[u8; WAYS]; PLACES],
    /// The cache to which the next new address goes.
    next: usize,
}

const WAYS: usize = 4;
/// Places in one of framehop's caches; an address has the one that its remainder names.
const PLACES: usize = 509;

impl HookCaches {
    fn new() -> Self {
        Self { caches: std::array::from_fn(|_| CacheNative::new_in()), tags: [[0; WAYS]; PLACES], next: 0 }
    }

    /// The one for an address.
    #[inline]
    pub(super) fn at(&mut self, address: u64) -> &mut CacheNative<FixedStorage> {
        let (place, tag) = ((address % PLACES as u64) as usize, (address / PLACES as u64) as u8);
        let tags = &mut self.tags[place];
        let way = tags.iter().position(|&known| known == tag).unwrap_or_else(|| {
            self.next = (self.next + 1) % WAYS;
            tags[self.next] = tag;
            self.next
        });
        &mut self.caches[way]
    }
}

/// Threads that can unwind at the same moment. More need as many threads preempted in the middle of a walk.
const SLOTS: usize = 32;
/// Slots that a thread tries before it gives up.
const TRIES: usize = SLOTS;

static TABLE: AtomicPtr<ModuleTable> = AtomicPtr::new(ptr::null_mut());

/// The pool.
pub(crate) static POOL: Pool = Pool { slots: [const { Slot::new() }; SLOTS], retired: Mutex::new(Vec::new()) };

/// See the module.
pub(crate) struct Pool {
    slots: [Slot; SLOTS],
    /// Guards: tables that were replaced while a walk used them. Taken on agent threads only.
    retired: Mutex<Vec<*mut ModuleTable>>,
}

struct Slot {
    /// Table in use by the walk that holds the slot; null when the slot is free; dangling-but-unique [`EMPTY`] when the
    /// slot has no caches yet.
    table: AtomicPtr<ModuleTable>,
    caches: UnsafeCell<Option<HookCaches>>,
}

/// Marks a slot that cannot be taken. Never dereferenced.
const EMPTY: *mut ModuleTable = ptr::without_provenance_mut(1);

// SAFETY: `caches` is only touched by the thread that took the slot by a compare-and-swap of `table`, or by `fill` while
// the slot is EMPTY, which nobody else can take.
unsafe impl Sync for Slot {}
// SAFETY: the raw pointers in `retired` are owned; the tables behind them are immutable and own plain data.
unsafe impl Sync for Pool {}

impl Slot {
    const fn new() -> Self {
        Self { table: AtomicPtr::new(EMPTY), caches: UnsafeCell::new(None) }
    }
}

/// A taken slot; given back when dropped.
pub(super) struct Scratch<'a> {
    slot: &'a Slot,
    table: *const ModuleTable,
}

impl Scratch<'_> {
    /// The table and the caches, together.
    #[inline]
    pub(super) fn parts(&mut self) -> Option<(&ModuleTable, &mut HookCaches)> {
        // SAFETY: the slot names `table`, so `publish` does not free it; and the slot is ours, so the caches are too.
        let (table, caches) = unsafe { (&*self.table, &mut *self.slot.caches.get()) };
        caches.as_mut().map(|caches| (table, caches))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        self.slot.table.store(ptr::null_mut(), Ordering::Release);
    }
}

impl Pool {
    /// Makes the caches. Called before the hook is installed, on a thread with an ordinary stack.
    pub(crate) fn fill(&self) {
        let _filling = self.retired.lock();
        for slot in &self.slots {
            if slot.table.load(Ordering::Acquire) == EMPTY {
                // SAFETY: an EMPTY slot cannot be taken, and the lock keeps out a second `fill`.
                unsafe { *slot.caches.get() = Some(HookCaches::new()) };
                slot.table.store(ptr::null_mut(), Ordering::Release);
            }
        }
    }

    /// Takes a slot for one walk; `None` when there is no table yet or all slots are taken.
    #[inline]
    pub(super) fn take(&self) -> Option<Scratch<'_>> {
        let first = thread_hash();
        for attempt in 0..TRIES {
            let slot = &self.slots[(first + attempt) % SLOTS];
            let mut table = TABLE.load(Ordering::Acquire);
            if table.is_null() {
                return None;
            }
            if slot.table.compare_exchange(ptr::null_mut(), table, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                continue;
            }
            // The table can have been replaced before the slot named it. Then name the new one, until both agree.
            loop {
                let now = TABLE.load(Ordering::SeqCst);
                if now == table {
                    return Some(Scratch { slot, table });
                }
                slot.table.store(now, Ordering::SeqCst);
                table = now;
            }
        }
        None
    }

    /// In a forked child: the threads that held slots at the moment of the fork do not exist here.
    pub(crate) fn reset_in_child(&self) {
        for slot in &self.slots {
            if slot.table.load(Ordering::Relaxed) != EMPTY {
                slot.table.store(ptr::null_mut(), Ordering::Relaxed);
            }
        }
    }

    /// Whether no walk is under way.
    fn is_quiet(&self) -> bool {
        self.slots
            .iter()
            .all(|slot| matches!(slot.table.load(Ordering::SeqCst), table if table.is_null() || table == EMPTY))
    }

    fn in_use(&self, table: *mut ModuleTable) -> bool {
        self.slots.iter().any(|slot| slot.table.load(Ordering::SeqCst) == table)
    }
}

/// Publishes a table. The one before is freed once no walk uses it: now, or at a later publication.
pub(crate) fn publish(table: ModuleTable) {
    let old = TABLE.swap(Box::into_raw(Box::new(table)), Ordering::SeqCst);
    let Ok(mut retired) = POOL.retired.lock() else { return };
    if !old.is_null() {
        retired.push(old);
    }
    retired.retain(|&table| {
        if POOL.in_use(table) {
            return true;
        }
        // SAFETY: came from `Box::into_raw`, is no longer TABLE, and no slot names it. A walk that loaded it from TABLE
        // but has not named it yet will find that TABLE differs and never dereference it.
        drop(unsafe { Box::from_raw(table) });
        false
    });
}

/// After the recording was switched off: waits until the walks that had begun are over, but not for ever.
pub(crate) fn await_quiet() {
    const ROUNDS: usize = 100;
    for _ in 0..ROUNDS {
        // First, for a thread that has seen the recording active and not begun its walk yet.
        std::thread::sleep(std::time::Duration::from_millis(1));
        if POOL.is_quiet() {
            return;
        }
    }
}

/// Reads the published table on an agent thread.
pub(crate) fn with_table<R>(read: impl FnOnce(&ModuleTable) -> R) -> Option<R> {
    let mut scratch = POOL.take()?;
    scratch.parts().map(|(table, _)| read(table))
}

/// A number that is the same for each call of a thread: derived from its thread pointer, which needs no thread-local
/// storage of ours (that could call into the loader).
#[inline]
fn thread_hash() -> usize {
    // Thread control blocks are at least a page apart; multiplying spreads them.
    (super::arch::thread_pointer().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize
}

#[cfg(test)]
mod tests {
    use super::super::loader::StartupImages;
    use super::*;

    /// Guards: the pool, which is global.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    #[cfg_attr(miri, ignore = "asks the loader")]
    fn an_old_table_outlives_the_walk_that_uses_it() {
        let _alone = ALONE.lock().unwrap();
        POOL.fill();
        let startup = StartupImages::read();
        publish(ModuleTable::read(None, &startup));
        let mut walk = POOL.take().unwrap();
        let table = walk.table.cast_mut();
        publish(ModuleTable::read(None, &startup));
        assert!(POOL.retired.lock().unwrap().contains(&table));
        assert!(walk.parts().unwrap().0.is_code(publish as *const () as u64));
        drop(walk);
        publish(ModuleTable::read(None, &startup));
        assert!(!POOL.retired.lock().unwrap().contains(&table));
    }

    #[test]
    fn tables_change_while_walks_use_them() {
        let _alone = ALONE.lock().unwrap();
        POOL.fill();
        publish(ModuleTable::of_generation(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut newest = 0;
                    for _ in 0..if cfg!(miri) { 40 } else { 20_000 } {
                        let Some(seen) = with_table(ModuleTable::number) else { continue };
                        assert!(seen >= newest, "{seen} after {newest}");
                        newest = seen;
                    }
                });
            }
            for number in 1..if cfg!(miri) { 20 } else { 5000 } {
                publish(ModuleTable::of_generation(number));
            }
        });
        publish(ModuleTable::of_generation(u64::MAX));
        assert!(POOL.retired.lock().unwrap().is_empty());
    }

    #[test]
    fn addresses_of_one_place_do_not_drive_each_other_out() {
        let mut caches = HookCaches::new();
        let first = 0x5555_0123_4567;
        let mut cache_of = |index: usize| ptr::from_mut(caches.at(first + (index * PLACES) as u64));
        let together: Vec<_> = (0..WAYS).map(&mut cache_of).collect();
        for index in 0..WAYS {
            assert_eq!(together.iter().filter(|&&cache| cache == together[index]).count(), 1, "two in one cache");
        }
        // One more costs one of them its place, and nobody else's.
        let newcomer = cache_of(WAYS);
        assert!(together.contains(&newcomer));
        let others = (0..WAYS).filter(|&index| together[index] != newcomer).collect::<Vec<_>>();
        assert!(others.into_iter().all(|index| cache_of(index) == together[index]));
    }

    #[test]
    fn a_thread_finds_its_slot_again() {
        assert_eq!(thread_hash(), thread_hash());
        assert!(thread_hash() < SLOTS);
    }
}
