use offheap_wire::StackEnd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the hook did, cumulative.
pub(crate) static COUNTERS: Counters = Counters::new();

const END_COUNT: usize = StackEnd::ALL.len();

/// Counters that the hook increments; relaxed, they order nothing.
pub(crate) struct Counters {
    stacks: AtomicU64,
    stacks_with_go: AtomicU64,
    ends: [AtomicU64; END_COUNT],
    busy: AtomicU64,
}

/// One reading of [`Counters`].
pub(crate) struct CountersView {
    pub(crate) stacks: u64,
    pub(crate) stacks_with_go: u64,
    /// Count by reason; `Root` included.
    pub(crate) ends: Vec<(StackEnd, u64)>,
    /// Stacks left empty because more threads were unwinding at once than there is scratch space for.
    pub(crate) busy: u64,
}

impl Counters {
    const fn new() -> Self {
        Self {
            stacks: AtomicU64::new(0),
            stacks_with_go: AtomicU64::new(0),
            ends: [const { AtomicU64::new(0) }; END_COUNT],
            busy: AtomicU64::new(0),
        }
    }

    /// One stack was recorded.
    pub(crate) fn stack(&self, end: StackEnd, with_go: bool) {
        self.stacks.fetch_add(1, Relaxed);
        if with_go {
            self.stacks_with_go.fetch_add(1, Relaxed);
        }
        if let Some(count) = self.ends.get(end as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// No scratch space was free.
    pub(crate) fn busy(&self) {
        self.busy.fetch_add(1, Relaxed);
    }

    /// Reads all of them.
    pub(crate) fn view(&self) -> CountersView {
        CountersView {
            stacks: self.stacks.load(Relaxed),
            stacks_with_go: self.stacks_with_go.load(Relaxed),
            ends: StackEnd::ALL.iter().map(|&end| (end, self.ends[end as usize].load(Relaxed))).collect(),
            busy: self.busy.load(Relaxed),
        }
    }
}
