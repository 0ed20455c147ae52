use super::kept::Kept;
use super::sections::{Dwarf, Reader, owned_split_sections};
use crate::image::elf::Elf;
use crate::image::file::ImageFile;
use gimli::{DwarfPackage, DwarfSections, DwoId, EndianSlice, LittleEndian, UnitRef};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The part of a unit that stands in another file, with that file's sections.
#[derive(Debug)]
pub(super) struct SplitUnit<'s> {
    pub(super) dwarf: gimli::Dwarf<Reader<'s>>,
    pub(super) unit: gimli::Unit<Reader<'s>>,
}

/// Where split units come from: a package of all of them, or a file for each.
#[derive(Debug)]
pub(super) struct SplitSource<'s> {
    package: Option<DwarfPackage<Reader<'s>>>,
    files: &'s SplitFiles,
}

impl<'s> SplitSource<'s> {
    pub(super) fn of(dwarf: &'s Dwarf<'_>) -> Self {
        Self { package: dwarf.package(), files: dwarf.split_files() }
    }

    /// The split part of a unit that has an id for one.
    pub(super) fn find(&self, skeleton: UnitRef<'_, Reader<'s>>) -> Option<SplitUnit<'s>> {
        let id = skeleton.dwo_id?;
        let packed = self.package.as_ref().and_then(|package| package.find_cu(id, skeleton.dwarf).ok().flatten());
        let dwarf = packed.or_else(|| self.files.load(id, skeleton))?;
        let mut unit = unit_with_id(&dwarf, id)?;
        unit.copy_relocated_attributes(skeleton.unit);
        Some(SplitUnit { dwarf, unit })
    }
}

/// Files with split units (`.dwo`) that look-ups ran into. Each is opened once, whichever thread comes first.
#[derive(Debug)]
pub(super) struct SplitFiles {
    dirs: Vec<PathBuf>,
    files: Kept<SplitFile>,
}

#[derive(Debug)]
struct SplitFile {
    id: DwoId,
    found: Result<DwarfSections<Vec<u8>>, PathBuf>,
}

impl SplitFiles {
    pub(super) fn new(dirs: Vec<PathBuf>) -> Self {
        Self { dirs, files: Kept::new() }
    }

    fn load<'s>(&'s self, id: DwoId, skeleton: UnitRef<'_, Reader<'s>>) -> Option<gimli::Dwarf<Reader<'s>>> {
        let known = self.files.iter().find(|file| file.id == id);
        let file = known.unwrap_or_else(|| self.files.push(self.open(id, skeleton)));
        let mut dwarf = borrow(file.found.as_ref().ok()?);
        dwarf.make_dwo(skeleton.dwarf);
        Some(dwarf)
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().filter_map(|file| file.found.as_ref().err())
    }

    fn open(&self, id: DwoId, skeleton: UnitRef<'_, Reader<'_>>) -> SplitFile {
        let candidates = self.candidates(skeleton);
        let found = candidates.iter().find_map(|path| open_if_same(path, id));
        SplitFile { id, found: found.ok_or_else(|| candidates.into_iter().next().unwrap_or_default()) }
    }

    /// The place that the unit names, then its file name in each of our directories. A file is taken only when it has
    /// the id that the unit asks for, so looking on this machine for a path of another one is harmless.
    fn candidates(&self, skeleton: UnitRef<'_, Reader<'_>>) -> Vec<PathBuf> {
        let path = |reader: Reader<'_>| PathBuf::from(OsStr::from_bytes(reader.slice()));
        let name = skeleton.dwo_name().ok().flatten().and_then(|name| skeleton.attr_string(name).ok());
        let Some(named) = name.map(path) else { return Vec::new() };
        let mut out = vec![skeleton.comp_dir.map(path).unwrap_or_default().join(&named)];
        for dir in &self.dirs {
            out.push(dir.join(named.strip_prefix("/").unwrap_or(&named)));
            out.extend(named.file_name().map(|name| dir.join(name)));
        }
        out
    }
}

fn open_if_same(path: &Path, id: DwoId) -> Option<DwarfSections<Vec<u8>>> {
    let file = ImageFile::open(path).ok()?;
    let sections = owned_split_sections(&Elf::parse(file.bytes()).ok()?);
    unit_with_id(&borrow(&sections), id)?;
    Some(sections)
}

/// Units of types can stand before it.
fn unit_with_id<'s>(dwarf: &gimli::Dwarf<Reader<'s>>, id: DwoId) -> Option<gimli::Unit<Reader<'s>>> {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let Ok(unit) = dwarf.unit(header)
            && unit.dwo_id == Some(id)
        {
            return Some(unit);
        }
    }
    None
}

fn borrow(sections: &DwarfSections<Vec<u8>>) -> gimli::Dwarf<Reader<'_>> {
    let mut dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    dwarf.file_type = gimli::DwarfFileType::Dwo;
    dwarf
}
