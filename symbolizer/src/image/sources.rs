use super::dwarf::{Dwarf, DwarfFiles};
use super::elf::Elf;
use super::gnu_debugdata::GnuDebugdata;
use super::gopclntab::Gopclntab;
use super::names::Names;
use super::symbol_table::SymbolTable;
use super::unwind::UnwindTable;
use crate::address::ImageAddress;
use crate::frame::NameSource;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

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

/// Everything that can name an address of one image. [`LookUps`](super::LookUps) ask it.
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

    /// Bounds of the function that holds the address, from the unwind tables.
    pub fn function_bounds(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
        self.unwind.get_or_init(|| UnwindTable::load(self.files.image)).as_ref()?.function(address)
    }

    /// Split units that were needed and not found: where they were looked for first.
    pub fn missing_split_units(&self) -> impl Iterator<Item = &PathBuf> {
        self.dwarf.get().into_iter().flatten().flat_map(Dwarf::missing_split_units)
    }

    pub(super) fn gopclntab(&self) -> Option<&Gopclntab<'a>> {
        self.gopclntab.as_ref()
    }

    pub(super) fn dwarf(&self) -> Option<&Dwarf<'a>> {
        let load = || {
            let main = self.files.with_section(".debug_info").or_else(|| self.files.with_section(".zdebug_info"))?;
            let (supplementary, package) = (self.files.supplementary, self.files.package);
            Dwarf::load(&DwarfFiles { main, supplementary, package, split_dirs: self.files.split_dirs.clone() })
        };
        self.dwarf.get_or_init(load).as_ref()
    }

    /// One of the symbol tables.
    pub(super) fn symbols(&self, source: NameSource) -> Option<&dyn Names> {
        let load = |section| SymbolTable::load(self.files.with_section(section)?, source);
        match source {
            NameSource::Symtab => Some(self.symtab.get_or_init(|| load(".symtab")).as_ref()?),
            NameSource::Dynsym => Some(self.dynsym.get_or_init(|| load(".dynsym")).as_ref()?),
            NameSource::GnuDebugdata => {
                Some(self.gnu_debugdata.get_or_init(|| GnuDebugdata::load(self.files.image)).as_ref()?)
            }
            NameSource::Gopclntab | NameSource::Dwarf | NameSource::Input => None,
        }
    }
}
