use super::near_function::NearFunction;
use super::nesting::all_shallow;
use super::sections::{Dwarf, Reader};
use super::split::SplitUnits;
use super::units::Units;
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use crate::image::names::Names;
use addr2line::{FrameIter, LookupContinuation, LookupResult, SplitDwarfLoad};
use std::cell::RefCell;
use std::sync::Arc;

type Context<'s> = addr2line::Context<Reader<'s>>;

/// Look-ups in DWARF: functions, lines and inlined calls.
///
/// Units are read when an address falls into them, and stay read. That state is not shared: each thread has its own,
/// over the same sections.
pub struct DwarfNames<'s> {
    context: Context<'s>,
    dwarf: Arc<gimli::Dwarf<Reader<'s>>>,
    units: Units<'s>,
    /// Addresses come in order, so that several in a row are in one function.
    last: RefCell<Option<NearFunction>>,
    package: Option<gimli::DwarfPackage<Reader<'s>>>,
    split: &'s SplitUnits,
}

impl<'s> DwarfNames<'s> {
    /// Read the list of units; `None` when the sections are damaged beyond use.
    #[must_use]
    pub fn new(dwarf: &'s Dwarf<'_>) -> Option<Self> {
        let sections = Arc::new(dwarf.borrow());
        let context = Context::from_arc_dwarf(Arc::clone(&sections)).ok()?;
        let units = Units::read(&sections);
        Some(Self {
            context,
            dwarf: sections,
            units,
            last: RefCell::default(),
            package: dwarf.package(),
            split: dwarf.split(),
        })
    }

    /// Give a frame that another source named the file and line of the address.
    ///
    /// Line tables reach further than functions: assembly, thunks, and units whose split part is missing have rows and
    /// no function.
    pub(in crate::image) fn add_line(&self, address: ImageAddress, frame: &mut Frame) {
        if let Some(location) = self.context.find_location(address.0).ok().flatten() {
            frame.file = location.file.map(|file| Arc::from(file_name(file)));
            frame.line = location.line.filter(|line| *line != 0);
            frame.column = location.column.filter(|column| *column != 0);
        }
    }

    /// Frames at the address out of the parts of a unit that are read quickly; false when they are not there.
    fn push_near_frames(&self, address: u64, frames: &mut Vec<Frame>) -> gimli::Result<bool> {
        // Where several units claim the address (a function that each of them has, of which the linker kept one), the first
        // is right: that is the one that was kept.
        let mut claimants: Vec<_> = self.units.covering(address).collect();
        claimants.sort_unstable_by_key(|unit| unit.place());
        for unit in claimants {
            if let Some(entry) = unit.functions(&self.dwarf).and_then(|functions| functions.at(address)) {
                let mut last = self.last.borrow_mut();
                if !last.as_ref().is_some_and(|function| function.is(unit, entry)) {
                    *last = Some(NearFunction::read(&self.dwarf, unit, entry)?);
                }
                let Some(function) = last.as_ref() else { return Ok(false) };
                // Innermost first: where the code is, then from where each inlined function was called.
                let mut at = Frame::default();
                self.add_line(ImageAddress(address), &mut at);
                return function.push_frames((&self.dwarf, &self.units, unit), address, at, frames);
            }
        }
        Ok(false)
    }

    /// Frames at the address, with the split units that they need.
    fn find(&self, address: ImageAddress) -> Result<FrameIter<'_, Reader<'s>>, gimli::Error> {
        let mut result = self.context.find_frames(address.0);
        loop {
            match result {
                LookupResult::Output(frames) => return frames,
                LookupResult::Load { load, continuation } => result = continuation.resume(self.load(&load)),
            }
        }
    }

    fn load(&self, load: &SplitDwarfLoad<Reader<'s>>) -> Option<Arc<gimli::Dwarf<Reader<'s>>>> {
        let packed = self.package.as_ref().and_then(|p| p.find_cu(load.dwo_id, &load.parent).ok().flatten());
        packed.map(Arc::new).or_else(|| self.split.load(load)).filter(|dwarf| all_shallow(dwarf))
    }

    fn push_frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<bool, gimli::Error> {
        let mut found = self.find(address)?;
        let first = frames.len();
        while let Some(frame) = found.next()? {
            let Some(function) = frame.function else { return Ok(false) };
            let location = frame.location.as_ref();
            frames.push(Frame {
                function: Arc::from(function.raw_name()?),
                file: location.and_then(|l| l.file).map(|file| Arc::from(file_name(file))),
                line: location.and_then(|l| l.line).filter(|line| *line != 0),
                column: location.and_then(|l| l.column).filter(|column| *column != 0),
                start_line: None,
                inlined: true,
            });
        }
        // The outermost frame is the function itself.
        match frames[first..].last_mut() {
            Some(outermost) => {
                outermost.inlined = false;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

/// Compilers write code that stands in no file down as the file `<autogenerated>` of the directory `.`.
pub(super) fn file_name(path: &str) -> &str {
    path.strip_prefix("./").filter(|name| name.starts_with('<')).unwrap_or(path)
}

impl Names for DwarfNames<'_> {
    fn source(&self) -> NameSource {
        NameSource::Dwarf
    }

    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName> {
        // addr2line asks for the range of the address and the next one.
        if address.0 == u64::MAX {
            return Err(NoName::NoSymbol);
        }
        let before = frames.len();
        if let Ok(true) = self.push_near_frames(address.0, frames) {
            return Ok(());
        }
        frames.truncate(before);
        if !self.units.are_shallow_at(&self.dwarf, address.0) {
            return Err(NoName::NoSymbol);
        }
        match self.push_frames(address, frames) {
            Ok(true) => Ok(()),
            // A line without a function (assembly), or damage in this unit: another source may know the name.
            Ok(false) | Err(_) => {
                frames.truncate(before);
                Err(NoName::NoSymbol)
            }
        }
    }
}
