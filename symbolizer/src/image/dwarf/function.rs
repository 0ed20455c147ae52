use super::functions::InlinedCalls;
use super::origin;
use super::units::{Unit, Units};
use crate::frame::Frame;
use gimli::{DebugInfoOffset, UnitOffset};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// One function with what is inlined into it, kept while addresses fall into it.
#[derive(Debug)]
pub(super) struct Function {
    unit: Option<DebugInfoOffset<usize>>,
    entry: UnitOffset<usize>,
    calls: InlinedCalls,
    names: RefCell<HashMap<UnitOffset<usize>, Option<Arc<str>>>>,
}

impl Function {
    /// `None` for one that cannot be read.
    pub(super) fn read<'s>(units: &Units<'s>, unit: &Unit<'s>, entry: UnitOffset<usize>) -> Option<Self> {
        let calls = InlinedCalls::read(unit.entries(units)?.unit, entry).ok()?;
        Some(Self { unit: unit.place(), entry, calls, names: RefCell::default() })
    }

    pub(super) fn is(&self, unit: &Unit<'_>, entry: UnitOffset<usize>) -> bool {
        self.unit == unit.place() && self.entry == entry
    }

    /// Appends the frames at the address, innermost first; `at` has the file and line of the address itself. `None`, with some
    /// of them appended, when one has no name.
    pub(super) fn push_frames<'s>(
        &self,
        (units, unit, supplementary): (&Units<'s>, &Unit<'s>, Option<&Units<'s>>),
        address: u64,
        mut at: Frame,
        frames: &mut Vec<Frame>,
    ) -> Option<()> {
        let entries = unit.entries(units)?;
        let name = |entry| {
            let read =
                || origin::name(entries, entry, supplementary).ok()?.map(|name| Arc::from(name.to_string_lossy()));
            self.names.borrow_mut().entry(entry).or_insert_with(read).clone()
        };
        for call in self.calls.at(address).into_iter().rev() {
            frames.push(Frame { function: name(call.entry)?, inlined: true, ..at });
            // The frame outside of it stands where the call was.
            let file = call.file.and_then(|number| unit.file(units, number));
            at = Frame { file, line: call.line, column: call.column, ..Frame::default() };
        }
        frames.push(Frame { function: name(self.entry)?, ..at });
        Some(())
    }
}
