use super::sections::Dwarf;
use super::split::SplitSource;
use super::unit_names::{Place, UnitNames};
use super::units::{Owner, Units};
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use crate::image::names::Names;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Look-ups in DWARF: functions, lines and inlined calls.
///
/// Units are read when an address falls into them, and stay read. Threads share them, one at a time each: look up the
/// addresses of one unit on one thread, in order.
pub struct DwarfNames<'s> {
    units: Units<'s>,
    /// By number of the unit.
    names: Vec<OnceLock<Box<Mutex<UnitNames<'s>>>>>,
    supplementary: Option<Units<'s>>,
}

impl<'s> DwarfNames<'s> {
    /// Read the list of units; `None` when there is none that can be read.
    #[must_use]
    pub fn new(dwarf: &'s Dwarf<'_>) -> Option<Self> {
        let units = Units::read(dwarf.borrow(), SplitSource::of(dwarf));
        let supplementary = dwarf.supplementary().map(Units::without_addresses);
        let names = std::iter::repeat_with(OnceLock::new).take(units.len()).collect();
        (!units.is_empty()).then_some(Self { units, names, supplementary })
    }

    /// Number of the unit that the address is in.
    pub(in crate::image) fn unit(&self, address: ImageAddress) -> Option<usize> {
        self.units.owners(address.0).first().map(|owner| owner.unit)
    }

    /// Give a frame that another source named the file and line of the address.
    ///
    /// Line tables reach further than functions: assembly, thunks, and units whose split part is missing have rows and
    /// no function.
    pub(in crate::image) fn add_line(&self, address: ImageAddress, frame: &mut Frame) {
        let owners = self.units.owners(address.0);
        let add = |owner: Owner| self.names(owner).add_line(self.place(owner), address.0, owner.start, frame);
        owners.into_iter().find_map(add);
    }

    fn names(&self, owner: Owner) -> MutexGuard<'_, UnitNames<'s>> {
        // What a panic leaves behind is less read than it could be.
        self.names[owner.unit].get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, owner: Owner) -> Place<'_, 's> {
        let (units, supplementary) = (&self.units, self.supplementary.as_ref());
        Place { unit: units.get(owner.unit), units, supplementary }
    }
}

impl Names for DwarfNames<'_> {
    fn source(&self) -> NameSource {
        NameSource::Dwarf
    }

    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName> {
        let before = frames.len();
        for owner in self.units.owners(address.0) {
            if self.names(owner).push_frames(self.place(owner), address.0, owner.start, frames).is_some() {
                return Ok(());
            }
            // A line without a function (assembly), or damage in this unit: another source may know the name.
            frames.truncate(before);
        }
        Err(NoName::NoSymbol)
    }
}
