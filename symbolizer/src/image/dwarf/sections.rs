use super::split::SplitFiles;
use crate::image::elf::Elf;
use gimli::{DwarfPackageSections, DwarfSections, EndianSlice, LittleEndian, Section, SectionId};
use std::borrow::Cow;
use std::convert::Infallible;
use std::path::PathBuf;

pub(super) type Reader<'s> = EndianSlice<'s, LittleEndian>;

/// Where the DWARF of one image is.
#[derive(Debug)]
pub struct DwarfFiles<'a> {
    /// The image or its separate debug file.
    pub main: &'a Elf<'a>,
    /// What `dwz` moved out of it (`.gnu_debugaltlink`).
    pub supplementary: Option<&'a Elf<'a>>,
    /// Its split units, packed together (`.dwp`).
    pub package: Option<&'a Elf<'a>>,
    /// Where split units (`.dwo`) may be, beside the place that the unit names.
    pub split_dirs: Vec<PathBuf>,
}

/// The DWARF sections of an image, decompressed where they have to be. Shared between threads.
#[derive(Debug)]
pub struct Dwarf<'a> {
    main: DwarfSections<Cow<'a, [u8]>>,
    supplementary: Option<DwarfSections<Cow<'a, [u8]>>>,
    package: Option<DwarfPackageSections<Cow<'a, [u8]>>>,
    split: SplitFiles,
}

/// Sections that look-ups never touch, some of them large: locations of variables, macros, type units.
const UNUSED: [SectionId; 5] = [
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugTypes,
];

impl<'a> Dwarf<'a> {
    /// Take the sections, if there are any.
    #[must_use]
    pub fn load(files: &DwarfFiles<'a>) -> Option<Self> {
        let dwarf = Self {
            main: sections(files.main),
            supplementary: files.supplementary.map(sections),
            package: files.package.and_then(package_sections),
            split: SplitFiles::new(files.split_dirs.clone()),
        };
        (!dwarf.borrow().debug_info.reader().is_empty()).then_some(dwarf)
    }

    pub(super) fn borrow(&self) -> gimli::Dwarf<Reader<'_>> {
        self.main.borrow_with_sup(self.supplementary.as_ref(), |section| reader(section))
    }

    pub(super) fn package(&self) -> Option<gimli::DwarfPackage<Reader<'_>>> {
        self.package.as_ref()?.borrow(|section| reader(section), reader(&[])).ok()
    }

    pub(super) fn supplementary(&self) -> Option<gimli::Dwarf<Reader<'_>>> {
        Some(self.supplementary.as_ref()?.borrow(|section| reader(section)))
    }

    pub(super) fn split_files(&self) -> &SplitFiles {
        &self.split
    }

    /// Split units that were needed and not found: where they were looked for first.
    pub fn missing_split_units(&self) -> impl Iterator<Item = &PathBuf> {
        self.split.missing()
    }
}

fn reader(section: &[u8]) -> Reader<'_> {
    EndianSlice::new(section, LittleEndian)
}

fn sections<'a>(elf: &Elf<'a>) -> DwarfSections<Cow<'a, [u8]>> {
    let load = |id: SectionId| -> Result<_, Infallible> { Ok(content(elf, id, id.name())) };
    let Ok(sections) = DwarfSections::load(load);
    sections
}

/// All of them, since the index of a package refers to parts of each and is refused when one is missing.
fn package_sections<'a>(elf: &Elf<'a>) -> Option<DwarfPackageSections<Cow<'a, [u8]>>> {
    let load = |id: SectionId| -> Result<_, gimli::Error> {
        Ok(id.dwo_name().and_then(|name| elf.content(name)).unwrap_or_default())
    };
    DwarfPackageSections::load(load).ok()
}

/// The sections of a `.dwo` file, independent of the file.
pub(super) fn owned_split_sections(elf: &Elf<'_>) -> DwarfSections<Vec<u8>> {
    let load = |id: SectionId| -> Result<_, Infallible> {
        Ok(id.dwo_name().map(|name| content(elf, id, name).into_owned()).unwrap_or_default())
    };
    let Ok(sections) = DwarfSections::load(load);
    sections
}

fn content<'a>(elf: &Elf<'a>, id: SectionId, name: &str) -> Cow<'a, [u8]> {
    if UNUSED.contains(&id) { Cow::default() } else { elf.content(name).unwrap_or_default() }
}
