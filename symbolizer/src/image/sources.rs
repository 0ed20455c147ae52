use super::dwarf::{Dwarf, DwarfNames};
use super::elf::Elf;
use super::gnu_debugdata::GnuDebugdata;
use super::gopclntab::Gopclntab;
use super::names::Names;
use super::symbol_table::SymbolTable;
use super::unwind::UnwindTable;
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use std::cell::OnceCell;
use std::ops::Range;
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

/// Everything in one image that can name an address. Shared between threads; each looks names up through a [`Worker`].
pub struct Sources<'a> {
    elf: &'a Elf<'a>,
    gopclntab: Option<Gopclntab<'a>>,
    // Decompressing and sorting are only worth it when an address gets this far.
    dwarf: OnceLock<Option<Dwarf<'a>>>,
    symtab: OnceLock<Option<SymbolTable<'a>>>,
    dynsym: OnceLock<Option<SymbolTable<'a>>>,
    gnu_debugdata: OnceLock<Option<GnuDebugdata>>,
    unwind: OnceLock<Option<UnwindTable>>,
}

impl<'a> Sources<'a> {
    /// The sources of an image.
    #[must_use]
    pub fn new(elf: &'a Elf<'a>) -> Self {
        Self {
            elf,
            gopclntab: Gopclntab::load(elf),
            dwarf: OnceLock::new(),
            symtab: OnceLock::new(),
            dynsym: OnceLock::new(),
            gnu_debugdata: OnceLock::new(),
            unwind: OnceLock::new(),
        }
    }

    /// Which sources the image has, most trusted first.
    #[must_use]
    pub fn present(&self) -> Vec<NameSource> {
        let has = |name| self.elf.section(name).is_some();
        [
            (self.gopclntab.is_some(), NameSource::Gopclntab),
            (has(".debug_info") || has(".zdebug_info"), NameSource::Dwarf),
            (has(".symtab"), NameSource::Symtab),
            (has(".dynsym"), NameSource::Dynsym),
            (has(".gnu_debugdata"), NameSource::GnuDebugdata),
        ]
        .into_iter()
        .filter_map(|(present, source)| present.then_some(source))
        .collect()
    }

    /// Start looking names up on this thread.
    #[must_use]
    pub fn worker(&self) -> Worker<'_, 'a> {
        Worker { sources: self, dwarf: OnceCell::new() }
    }

    /// Bounds of the function that holds the address, from the unwind tables.
    pub fn function_bounds(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
        self.unwind.get_or_init(|| UnwindTable::load(self.elf)).as_ref()?.function(address)
    }
}

/// Look-ups of one thread.
pub struct Worker<'s, 'a> {
    sources: &'s Sources<'a>,
    dwarf: OnceCell<Option<DwarfNames<'s>>>,
}

impl Worker<'_, '_> {
    fn get(&self, source: NameSource) -> Option<&dyn Names> {
        let s = self.sources;
        let table = |source| SymbolTable::load(s.elf, source);
        match source {
            NameSource::Gopclntab => s.gopclntab.as_ref().map(|names| names as &dyn Names),
            NameSource::Dwarf => {
                let dwarf = || s.dwarf.get_or_init(|| Dwarf::load(s.elf)).as_ref().and_then(DwarfNames::new);
                self.dwarf.get_or_init(dwarf).as_ref().map(|names| names as &dyn Names)
            }
            NameSource::Symtab => s.symtab.get_or_init(|| table(source)).as_ref().map(|names| names as &dyn Names),
            NameSource::Dynsym => s.dynsym.get_or_init(|| table(source)).as_ref().map(|names| names as &dyn Names),
            NameSource::GnuDebugdata => {
                let names = s.gnu_debugdata.get_or_init(|| GnuDebugdata::load(s.elf));
                names.as_ref().map(|names| names as &dyn Names)
            }
            NameSource::Input => None,
        }
    }

    /// Append the frames at `address` from the first source that knows it, and say which that was.
    ///
    /// # Errors
    /// The reason of the last source when none does.
    pub fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<NameSource, NoName> {
        for names in ORDER.iter().filter_map(|source| self.get(*source)) {
            if names.frames(address, frames).is_ok() {
                return Ok(names.source());
            }
        }
        Err(NoName::NoSymbol)
    }
}
