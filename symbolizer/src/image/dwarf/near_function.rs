use super::functions::InlinedCalls;
use super::names::file_name;
use super::sections::Reader;
use super::units::{Unit, Units};
use super::{origin, source_files};
use crate::frame::Frame;
use gimli::{DebugInfoOffset, UnitOffset};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// One function with what is inlined into it, kept while addresses fall into it.
#[derive(Debug)]
pub(super) struct NearFunction {
    unit: Option<DebugInfoOffset<usize>>,
    entry: UnitOffset<usize>,
    calls: InlinedCalls,
    names: RefCell<HashMap<UnitOffset<usize>, Option<Arc<str>>>>,
    files: RefCell<HashMap<u64, Option<Arc<str>>>>,
}

impl NearFunction {
    pub(super) fn read<'s>(
        dwarf: &gimli::Dwarf<Reader<'s>>,
        unit: &Unit<'s>,
        entry: UnitOffset<usize>,
    ) -> gimli::Result<Self> {
        let calls = InlinedCalls::read(unit.with(dwarf), entry)?;
        Ok(Self { unit: unit.place(), entry, calls, names: RefCell::default(), files: RefCell::default() })
    }

    pub(super) fn is(&self, unit: &Unit<'_>, entry: UnitOffset<usize>) -> bool {
        self.unit == unit.place() && self.entry == entry
    }

    /// Appends the frames at the address, innermost first; `at` has the file and line of the address itself. False when
    /// one of them has no name.
    pub(super) fn push_frames<'s>(
        &self,
        (dwarf, units, unit): (&gimli::Dwarf<Reader<'s>>, &Units<'s>, &Unit<'s>),
        address: u64,
        mut at: Frame,
        frames: &mut Vec<Frame>,
    ) -> gimli::Result<bool> {
        let name = |entry| -> gimli::Result<Option<Arc<str>>> {
            if let Some(known) = self.names.borrow().get(&entry) {
                return Ok(known.clone());
            }
            let name = origin::name(dwarf, units, unit, entry)?.map(|name| Arc::from(name.to_string_lossy()));
            self.names.borrow_mut().insert(entry, name.clone());
            Ok(name)
        };
        let file = |number| {
            let read = || source_files::path(unit.with(dwarf), number).map(|path| Arc::from(file_name(&path)));
            self.files.borrow_mut().entry(number).or_insert_with(read).clone()
        };
        for call in self.calls.at(address).into_iter().rev() {
            let Some(function) = name(call.entry)? else { return Ok(false) };
            frames.push(Frame { function, inlined: true, ..at });
            // The frame outside of it stands where the call was.
            at = Frame { file: call.file.and_then(file), line: call.line, column: call.column, ..Frame::default() };
        }
        let Some(function) = name(self.entry)? else { return Ok(false) };
        frames.push(Frame { function, ..at });
        Ok(true)
    }
}
