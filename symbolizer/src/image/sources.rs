use super::dwarf::{Dwarf, DwarfFiles, DwarfNames};
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
use std::path::PathBuf;
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

/// An image and the files that its debug information is in.
#[derive(Debug)]
pub struct ImageFiles<'a> {
    /// The image.
    pub image: &'a Elf<'a>,
    /// Its separate debug file.
    pub debug: Option<&'a Elf<'a>>,
    /// What `dwz` moved out of the debug information.
    pub supplementary: Option<&'a Elf<'a>>,
    /// Its packed split units (`.dwp`).
    pub package: Option<&'a Elf<'a>>,
    /// Where split units (`.dwo`) may be.
    pub split_dirs: Vec<PathBuf>,
}

impl<'a> ImageFiles<'a> {
    /// An image that has everything in itself.
    #[must_use]
    pub fn only(image: &'a Elf<'a>) -> Self {
        Self { image, debug: None, supplementary: None, package: None, split_dirs: Vec::new() }
    }

    /// The file with this source, the image before its debug file.
    fn with_section(&self, name: &str) -> Option<&'a Elf<'a>> {
        [Some(self.image), self.debug].into_iter().flatten().find(|elf| elf.section(name).is_some())
    }
}

/// Everything that can name an address of one image. Shared between threads; each looks names up through a [`Worker`].
pub struct Sources<'a> {
    files: ImageFiles<'a>,
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
    pub fn new(files: ImageFiles<'a>) -> Self {
        Self {
            gopclntab: Gopclntab::load(files.image),
            files,
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
        let has = |name| self.files.with_section(name).is_some();
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
        self.unwind.get_or_init(|| UnwindTable::load(self.files.image)).as_ref()?.function(address)
    }

    /// Split units that were needed and not found: where they were looked for first.
    pub fn missing_split_units(&self) -> impl Iterator<Item = &PathBuf> {
        self.dwarf.get().into_iter().flatten().flat_map(Dwarf::missing_split_units)
    }

    fn dwarf(&self) -> Option<&Dwarf<'a>> {
        let load = || {
            let main = self.files.with_section(".debug_info").or_else(|| self.files.with_section(".zdebug_info"))?;
            let (supplementary, package) = (self.files.supplementary, self.files.package);
            Dwarf::load(&DwarfFiles { main, supplementary, package, split_dirs: self.files.split_dirs.clone() })
        };
        self.dwarf.get_or_init(load).as_ref()
    }

    fn table(&self, source: NameSource, section: &str) -> Option<SymbolTable<'a>> {
        SymbolTable::load(self.files.with_section(section)?, source)
    }
}

/// Look-ups of one thread.
pub struct Worker<'s, 'a> {
    sources: &'s Sources<'a>,
    dwarf: OnceCell<Option<DwarfNames<'s>>>,
}

impl<'s> Worker<'s, '_> {
    fn dwarf(&self) -> Option<&DwarfNames<'s>> {
        self.dwarf.get_or_init(|| self.sources.dwarf().and_then(DwarfNames::new)).as_ref()
    }

    fn get(&self, source: NameSource) -> Option<&dyn Names> {
        let s: &'s Sources<'_> = self.sources;
        match source {
            NameSource::Gopclntab => s.gopclntab.as_ref().map(|names| names as &dyn Names),
            NameSource::Dwarf => self.dwarf().map(|names| names as &dyn Names),
            NameSource::Symtab => {
                let names = s.symtab.get_or_init(|| s.table(source, ".symtab"));
                names.as_ref().map(|names| names as &dyn Names)
            }
            NameSource::Dynsym => {
                let names = s.dynsym.get_or_init(|| s.table(source, ".dynsym"));
                names.as_ref().map(|names| names as &dyn Names)
            }
            NameSource::GnuDebugdata => {
                let names = s.gnu_debugdata.get_or_init(|| GnuDebugdata::load(s.files.image));
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
