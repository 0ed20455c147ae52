use super::dwarf::DwarfNames;
use super::names::Names;
use super::sources::Sources;
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use rayon::prelude::*;
use std::sync::OnceLock;

/// The order in which the sources of an image are asked.
///
/// `.gopclntab` answers for Go code alone and comes first: it is what the runtime, and so every Go profile, names Go
/// functions by, and it is the same in stripped and unstripped builds. DWARF says the same, except that Go 1.19's spells
/// out the type arguments that its runtime calls `[...]`, has wrong lines of inlined calls, and has nothing for some
/// generated functions. It would also have to be decompressed first. For C, C++ and Rust, DWARF alone knows the inlined
/// calls. Of the symbol tables the fuller one comes first.
const ORDER: [NameSource; 5] =
    [NameSource::Gopclntab, NameSource::Dwarf, NameSource::Symtab, NameSource::Dynsym, NameSource::GnuDebugdata];

/// Look-ups in one image, with what they have read of it.
pub struct LookUps<'s, 'a> {
    sources: &'s Sources<'a>,
    dwarf: OnceLock<Option<DwarfNames<'s>>>,
}

/// The source that knows an address, with the frames there, innermost first; or the reason why none does.
pub type Found = Result<(NameSource, Vec<Frame>), NoName>;

/// Addresses of no unit that one thread looks up in a row.
const IN_A_ROW: usize = 256;

impl<'s, 'a> LookUps<'s, 'a> {
    /// Look-ups in these sources.
    #[must_use]
    pub fn new(sources: &'s Sources<'a>) -> Self {
        Self { sources, dwarf: OnceLock::new() }
    }

    /// What is found at each of the addresses, looked up on all threads: the addresses of one unit in order on one of them, so
    /// that nothing of it is read twice.
    #[must_use]
    pub fn all(&self, addresses: &[ImageAddress]) -> Vec<Found> {
        let unit = |(index, address): (usize, &ImageAddress)| (self.unit(*address), *address, index);
        let mut order: Vec<_> = addresses.par_iter().enumerate().map(unit).collect();
        order.par_sort_unstable();
        let tasks: Vec<_> = order
            .chunk_by(|(unit, ..), (next, ..)| unit == next)
            .flat_map(|same| same.chunks(if same[0].0.is_some() { same.len() } else { IN_A_ROW }))
            .collect();
        let look_up = |task: &&[(_, ImageAddress, usize)]| -> Vec<(usize, Found)> {
            let one = |&(_, address, index): &(_, ImageAddress, usize)| {
                let mut frames = Vec::new();
                (index, self.frames(address, &mut frames).map(|source| (source, frames)))
            };
            task.iter().map(one).collect()
        };
        let mut found: Vec<_> = tasks.par_iter().with_max_len(1).flat_map_iter(look_up).collect();
        found.par_sort_unstable_by_key(|(index, _)| *index);
        found.into_iter().map(|(_, found)| found).collect()
    }

    /// Number of the compilation unit that the address is in. Go code is not looked up there.
    fn unit(&self, address: ImageAddress) -> Option<usize> {
        if self.sources.gopclntab().is_some_and(|table| table.covers(address)) {
            return None;
        }
        self.dwarf()?.unit(address)
    }

    fn dwarf(&self) -> Option<&DwarfNames<'s>> {
        self.dwarf.get_or_init(|| self.sources.dwarf().and_then(DwarfNames::new)).as_ref()
    }

    fn get(&self, source: NameSource) -> Option<&dyn Names> {
        match source {
            NameSource::Gopclntab => Some(self.sources.gopclntab()?),
            NameSource::Dwarf => Some(self.dwarf()?),
            other => self.sources.symbols(other),
        }
    }

    /// Append the frames at `address` from the first source that knows it, and say which that was.
    ///
    /// # Errors
    /// The reason of the last source when none does.
    pub fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<NameSource, NoName> {
        for names in ORDER.iter().filter_map(|source| self.get(*source)) {
            let first = frames.len();
            if names.frames(address, frames).is_err() {
                continue;
            }
            let source = names.source();
            if source == NameSource::Dwarf {
                self.complete_name(address, &mut frames[first..]);
            } else if source > NameSource::Dwarf
                && let (Some(frame), Some(dwarf)) = (frames.get_mut(first), self.dwarf())
            {
                // Symbol tables have no lines.
                dwarf.add_line(address, frame);
            }
            return Ok(source);
        }
        Err(NoName::NoSymbol)
    }

    /// DWARF has no linkage name for the members of local classes: there `Name` stands alone, and the symbol says whose it
    /// is. Inlined frames have no symbol.
    fn complete_name(&self, address: ImageAddress, frames: &mut [Frame]) {
        let Some(function) = frames.last_mut().filter(|frame| !is_mangled(&frame.function)) else { return };
        let mut symbol = Vec::new();
        if self.get(NameSource::Symtab).is_some_and(|table| table.frames(address, &mut symbol).is_ok())
            && let Some(symbol) = symbol.pop().filter(|symbol| is_mangled(&symbol.function))
        {
            function.function = symbol.function;
        }
    }
}

fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}
