use super::kept::Kept;
use super::sections::{Reader, owned_split_sections};
use crate::image::elf::Elf;
use crate::image::file::ImageFile;
use addr2line::SplitDwarfLoad;
use gimli::{DwarfSections, DwoId, EndianSlice, LittleEndian};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Split units (`.dwo` files) that look-ups ran into. Each is opened once, whichever thread comes first.
#[derive(Debug)]
pub(super) struct SplitUnits {
    dirs: Vec<PathBuf>,
    units: Kept<SplitUnit>,
}

#[derive(Debug)]
struct SplitUnit {
    id: DwoId,
    found: Result<DwarfSections<Vec<u8>>, PathBuf>,
}

impl SplitUnits {
    pub(super) fn new(dirs: Vec<PathBuf>) -> Self {
        Self { dirs, units: Kept::new() }
    }

    /// The unit that a look-up asks for.
    pub(super) fn load<'s>(&'s self, load: &SplitDwarfLoad<Reader<'s>>) -> Option<Arc<gimli::Dwarf<Reader<'s>>>> {
        let known = self.units.iter().find(|unit| unit.id == load.dwo_id);
        let unit = known.unwrap_or_else(|| self.units.push(self.open(load)));
        let mut dwarf = borrow(unit.found.as_ref().ok()?);
        dwarf.make_dwo(&load.parent);
        Some(Arc::new(dwarf))
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = &PathBuf> {
        self.units.iter().filter_map(|unit| unit.found.as_ref().err())
    }

    fn open(&self, load: &SplitDwarfLoad<Reader<'_>>) -> SplitUnit {
        let candidates = self.candidates(load);
        let found = candidates.iter().find_map(|path| open_if_same(path, load.dwo_id));
        SplitUnit { id: load.dwo_id, found: found.ok_or_else(|| candidates.into_iter().next().unwrap_or_default()) }
    }

    /// The place that the unit names, then its file name in each of our directories. A file is taken only when it has
    /// the id that the unit asks for, so looking on this machine for a path of another one is harmless.
    fn candidates(&self, load: &SplitDwarfLoad<Reader<'_>>) -> Vec<PathBuf> {
        let path = |reader: &Option<Reader<'_>>| reader.as_ref().map(|r| PathBuf::from(OsStr::from_bytes(r.slice())));
        let Some(named) = path(&load.path) else { return Vec::new() };
        let mut out = vec![path(&load.comp_dir).unwrap_or_default().join(&named)];
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
    let dwarf = borrow(&sections);
    let header = dwarf.units().next().ok()??;
    let found = dwarf.unit(header).ok()?.dwo_id;
    (found == Some(id)).then_some(sections)
}

fn borrow(sections: &DwarfSections<Vec<u8>>) -> gimli::Dwarf<Reader<'_>> {
    let mut dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    dwarf.file_type = gimli::DwarfFileType::Dwo;
    dwarf
}
