use super::function::Function;
use super::functions::Functions;
use super::lines::Lines;
use super::sections::Reader;
use super::source_files::SourceFiles;
use super::units::{Unit, Units};
use crate::frame::Frame;
use gimli::{UnitOffset, UnitRef};
use std::cell::{OnceCell, RefCell};
use std::num::NonZeroU32;

/// What look-ups have read of one unit.
#[derive(Debug, Default)]
pub(super) struct UnitNames<'s> {
    functions: OnceCell<Option<Functions>>,
    all_functions: OnceCell<Option<Functions>>,
    lines: OnceCell<Lines<'s>>,
    files: SourceFiles,
    /// Addresses come in order, so that several in a row are in one function.
    last: RefCell<Option<Function>>,
}

/// A unit, and the units that it can refer to.
#[derive(Clone, Copy)]
pub(super) struct Place<'u, 's> {
    pub(super) unit: &'u Unit<'s>,
    pub(super) units: &'u Units<'s>,
    pub(super) supplementary: Option<&'u Units<'s>>,
}

impl<'s> UnitNames<'s> {
    /// Appends the frames at an address in a range of the unit's that starts at `start`; `None`, with some of them appended,
    /// when they are not known or cannot be read.
    pub(super) fn push_frames(
        &self,
        place: Place<'_, 's>,
        address: u64,
        start: u64,
        frames: &mut Vec<Frame>,
    ) -> Option<()> {
        let entry = self.function_at(place, address)?;
        let mut last = self.last.borrow_mut();
        if !last.as_ref().is_some_and(|function| function.is(entry)) {
            *last = Some(Function::read(place, entry)?);
        }
        // Innermost first: where the code is, then from where each inlined function was called.
        let mut at = Frame::default();
        self.add_line(place, address, start, &mut at);
        last.as_ref()?.push_frames(place, &self.files, address, at, frames)
    }

    /// Gives a frame the file and line of the address.
    pub(super) fn add_line(&self, place: Place<'_, 's>, address: u64, start: u64, frame: &mut Frame) -> Option<()> {
        let unit = place.unit.content(place.units)?;
        let row = self.lines.get_or_init(|| Lines::new(unit)).at(address, start)?;
        frame.file = self.files.path(unit, row.file.into());
        frame.line = row.line.map(NonZeroU32::get);
        frame.column = row.column.map(NonZeroU32::get);
        Some(())
    }

    /// Entry of the function at the address.
    fn function_at(&self, place: Place<'_, 's>, address: u64) -> Option<UnitOffset<usize>> {
        let read = |read: fn(UnitRef<'_, Reader<'s>>) -> gimli::Result<Functions>| {
            place.unit.entries(place.units).and_then(|entries| read(entries.unit).ok())
        };
        let functions = self.functions.get_or_init(|| read(Functions::read)).as_ref()?;
        if let Some(entry) = functions.at(address) {
            return Some(entry);
        }
        if functions.are_all() {
            return None;
        }
        self.all_functions.get_or_init(|| read(Functions::read_all)).as_ref()?.at(address)
    }
}
