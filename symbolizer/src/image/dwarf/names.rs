use super::function::Function;
use super::sections::Dwarf;
use super::split::SplitSource;
use super::units::{Owner, Units};
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use crate::image::names::Names;
use std::cell::RefCell;
use std::num::NonZeroU32;

/// Look-ups in DWARF: functions, lines and inlined calls.
///
/// Units are read when an address falls into them, and stay read. That state is not shared: each thread has its own,
/// over the same sections.
pub struct DwarfNames<'s> {
    units: Units<'s>,
    supplementary: Option<Units<'s>>,
    /// Addresses come in order, so that several in a row are in one function.
    last: RefCell<Option<Function>>,
}

impl<'s> DwarfNames<'s> {
    /// Read the list of units; `None` when there is none that can be read.
    #[must_use]
    pub fn new(dwarf: &'s Dwarf<'_>) -> Option<Self> {
        let units = Units::read(dwarf.borrow(), SplitSource::of(dwarf));
        let supplementary = dwarf.supplementary().map(Units::without_addresses);
        (!units.is_empty()).then_some(Self { units, supplementary, last: RefCell::default() })
    }

    /// Give a frame that another source named the file and line of the address.
    ///
    /// Line tables reach further than functions: assembly, thunks, and units whose split part is missing have rows and
    /// no function.
    pub(in crate::image) fn add_line(&self, address: ImageAddress, frame: &mut Frame) {
        self.units.owners(address.0).into_iter().find_map(|owner| self.add_line_of(owner, address.0, frame));
    }

    fn add_line_of(&self, Owner { unit, start }: Owner<'_, 's>, address: u64, frame: &mut Frame) -> Option<()> {
        let row = unit.lines(&self.units)?.at(address, start)?;
        frame.file = unit.file(&self.units, row.file.into());
        frame.line = row.line.map(NonZeroU32::get);
        frame.column = row.column.map(NonZeroU32::get);
        Some(())
    }

    /// Appends the frames at the address; `None`, with some of them appended, when they are not known or cannot be read.
    fn push_frames(&self, address: u64, frames: &mut Vec<Frame>) -> Option<()> {
        let function = |owner: Owner<'_, 's>| owner.unit.function_at(&self.units, address);
        let owners = self.units.owners(address);
        let (owner, entry) = owners.into_iter().find_map(|owner| Some((owner, function(owner)?)))?;
        let unit = owner.unit;
        let mut last = self.last.borrow_mut();
        if !last.as_ref().is_some_and(|function| function.is(unit, entry)) {
            *last = Some(Function::read(&self.units, unit, entry)?);
        }
        // Innermost first: where the code is, then from where each inlined function was called.
        let mut at = Frame::default();
        self.add_line_of(owner, address, &mut at);
        last.as_ref()?.push_frames((&self.units, unit, self.supplementary.as_ref()), address, at, frames)
    }
}

impl Names for DwarfNames<'_> {
    fn source(&self) -> NameSource {
        NameSource::Dwarf
    }

    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName> {
        let before = frames.len();
        self.push_frames(address.0, frames).ok_or_else(|| {
            // A line without a function (assembly), or damage in this unit: another source may know the name.
            frames.truncate(before);
            NoName::NoSymbol
        })
    }
}
