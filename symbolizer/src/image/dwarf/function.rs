use super::functions::InlinedCalls;
use super::origin;
use super::source_files::SourceFiles;
use super::unit_names::Place;
use crate::frame::Frame;
use gimli::UnitOffset;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// One function with what is inlined into it, kept while addresses fall into it.
#[derive(Debug)]
pub(super) struct Function {
    entry: UnitOffset<usize>,
    calls: InlinedCalls,
    names: RefCell<HashMap<UnitOffset<usize>, Option<Arc<str>>>>,
}

impl Function {
    /// `None` for one that cannot be read.
    pub(super) fn read(place: Place<'_, '_>, entry: UnitOffset<usize>) -> Option<Self> {
        let calls = InlinedCalls::read(place.unit.entries(place.units)?.unit, entry).ok()?;
        Some(Self { entry, calls, names: RefCell::default() })
    }

    pub(super) fn is(&self, entry: UnitOffset<usize>) -> bool {
        self.entry == entry
    }

    /// Appends the frames at the address, innermost first; `at` has the file and line of the address itself. `None`, with some
    /// of them appended, when one has no name.
    pub(super) fn push_frames(
        &self,
        place: Place<'_, '_>,
        files: &SourceFiles,
        address: u64,
        mut at: Frame,
        frames: &mut Vec<Frame>,
    ) -> Option<()> {
        let entries = place.unit.entries(place.units)?;
        let unit = place.unit.content(place.units)?;
        let name = |entry| {
            let read = || {
                let name = origin::name(entries, entry, place.supplementary).ok()?;
                name.map(|name| Arc::from(name.to_string_lossy()))
            };
            self.names.borrow_mut().entry(entry).or_insert_with(read).clone()
        };
        for call in self.calls.at(address).into_iter().rev() {
            frames.push(Frame { function: name(call.entry)?, inlined: true, ..at });
            // The frame outside of it stands where the call was.
            let file = call.file.and_then(|number| files.path(unit, number));
            at = Frame { file, line: call.line, column: call.column, ..Frame::default() };
        }
        frames.push(Frame { function: name(self.entry)?, ..at });
        Some(())
    }
}
