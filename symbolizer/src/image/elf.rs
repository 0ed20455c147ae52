use super::bytes::{c_str_at, slice_at, u32_at};
use super::compression::{decompress_section, decompress_zdebug};
use super::segments::Segments;
use crate::address::ImageAddress;
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{EI_DATA, ET_EXEC};
use goblin::elf::program_header::{PT_INTERP, PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{SHF_ALLOC, SHF_COMPRESSED, SHN_XINDEX, SHT_NOBITS, SHT_NOTE, SectionHeader};
use std::borrow::Cow;
use thiserror::Error;

/// A file is not a usable ELF image.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ElfError {
    /// Another kind of file.
    #[error("not an ELF file")]
    NotElf,
    /// A byte order that no supported target has.
    #[error("a big-endian ELF file")]
    BigEndian,
    /// Header or program headers point outside the file.
    #[error("damaged ELF file: {0}")]
    Damaged(&'static str),
}

/// The parts of an ELF file that naming needs: segments, sections, notes, build id.
///
/// goblin decodes the headers; its `Elf::parse` is not used because it reads everything at once and gives up on the
/// whole file when one table is odd, as the dynamic section of a separate debug file always is.
#[derive(Debug)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    ctx: Ctx,
    machine: u16,
    kind: u16,
    has_interpreter: bool,
    segments: Segments,
    notes: Vec<(u64, u64, u64)>,
    sections: Vec<SectionHeader>,
    section_names: &'a [u8],
}

impl<'a> Elf<'a> {
    /// Read the headers.
    ///
    /// # Errors
    /// When it is no ELF file, or its headers lie outside. Sections that cannot be read are left out: a file cut at the
    /// end still has its segments.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        if bytes.get(EI_DATA) == Some(&2) {
            return Err(ElfError::BigEndian);
        }
        let header = goblin::elf::Elf::parse_header(bytes).map_err(|_| ElfError::Damaged("header"))?;
        let container = header.container().map_err(|_| ElfError::Damaged("class"))?;
        let ctx = Ctx::new(container, Endian::Little);
        let program_headers = usize::try_from(header.e_phoff)
            .ok()
            .and_then(|offset| ProgramHeader::parse(bytes, offset, usize::from(header.e_phnum), ctx).ok())
            .ok_or(ElfError::Damaged("program headers"))?;
        let sections = usize::try_from(header.e_shoff)
            .ok()
            .and_then(|offset| SectionHeader::parse(bytes, offset, usize::from(header.e_shnum), ctx).ok())
            .unwrap_or_default();
        let names_index = match u32::from(header.e_shstrndx) {
            SHN_XINDEX => sections.first().map_or(0, |s| s.sh_link as usize),
            index => index as usize,
        };
        let section_names =
            sections.get(names_index).and_then(|s| slice_at(bytes, s.sh_offset, s.sh_size)).unwrap_or(&[]);
        let notes = program_headers
            .iter()
            .filter(|h| h.p_type == PT_NOTE)
            .map(|h| (h.p_offset, h.p_filesz, h.p_align))
            .chain(sections.iter().filter(|s| s.sh_type == SHT_NOTE).map(|s| (s.sh_offset, s.sh_size, s.sh_addralign)))
            .collect();
        let segments = Segments::new(&program_headers);
        let has_interpreter = program_headers.iter().any(|h| h.p_type == PT_INTERP);
        Ok(Self {
            bytes,
            ctx,
            machine: header.e_machine,
            kind: header.e_type,
            has_interpreter,
            segments,
            notes,
            sections,
            section_names,
        })
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The loadable segments.
    #[must_use]
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// `e_machine`.
    #[must_use]
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// Whether it is loaded wherever there is room (`ET_DYN`): libraries, and executables unless linked otherwise.
    #[must_use]
    pub fn is_position_independent(&self) -> bool {
        self.kind != ET_EXEC
    }

    /// Whether it can be started as a program; of a debug file, whether the image can be.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.kind == ET_EXEC || self.has_interpreter
    }

    /// Size of an address in bytes.
    #[must_use]
    pub fn address_size(&self) -> u8 {
        if self.is_64() { 8 } else { 4 }
    }

    pub(super) fn is_64(&self) -> bool {
        self.ctx.container == Container::Big
    }

    /// The section headers.
    pub(super) fn sections(&self) -> &[SectionHeader] {
        &self.sections
    }

    /// Header of the first section of this name that has content in the file.
    pub(super) fn section(&self, name: &str) -> Option<&SectionHeader> {
        self.sections.iter().find(|s| {
            s.sh_type != SHT_NOBITS && c_str_at(self.section_names, s.sh_name as u64) == Some(name.as_bytes())
        })
    }

    /// Whether there is debug information.
    #[must_use]
    pub fn has_dwarf(&self) -> bool {
        self.section(".debug_info").is_some() || self.section(".zdebug_info").is_some()
    }

    /// Whether there is anything beyond the dynamic symbols that names functions.
    #[must_use]
    pub fn has_debug_symbols(&self) -> bool {
        self.has_dwarf() || self.section(".symtab").is_some()
    }

    /// Whether two files have the same code and data at the same addresses, by the headers of the sections that get
    /// loaded: how a debug file is known where neither file has a build id.
    #[must_use]
    pub fn has_layout_of(&self, other: &Self) -> bool {
        let layout = |elf: &Self| -> Vec<(Vec<u8>, u64, u64)> {
            let loaded = elf.sections.iter().filter(|s| s.sh_flags & u64::from(SHF_ALLOC) != 0);
            let name = |s: &SectionHeader| c_str_at(elf.section_names, s.sh_name as u64).unwrap_or_default().to_vec();
            loaded.map(|s| (name(s), s.sh_addr, s.sh_size)).collect()
        };
        let own = layout(self);
        !own.is_empty() && own == layout(other)
    }

    /// Content of a section as it stands in the file.
    pub(super) fn raw_content(&self, section: &SectionHeader) -> Option<&'a [u8]> {
        if section.sh_type == SHT_NOBITS {
            return None;
        }
        slice_at(self.bytes, section.sh_offset, section.sh_size)
    }

    /// Content of the section of this name, decompressed. A section that is absent, lies outside the file or does not
    /// decompress is `None`.
    pub fn content(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        if let Some(section) = self.section(name) {
            let raw = self.raw_content(section)?;
            if section.sh_flags & u64::from(SHF_COMPRESSED) == 0 {
                return Some(Cow::Borrowed(raw));
            }
            return decompress_section(raw, self.is_64()).ok().map(Cow::Owned);
        }
        let old_name = format!(".z{}", name.strip_prefix('.')?);
        decompress_zdebug(self.raw_content(self.section(&old_name)?)?).ok().map(Cow::Owned)
    }

    /// The file's bytes from this image address to the end of its segment.
    pub(super) fn tail_at(&self, address: ImageAddress) -> Option<&'a [u8]> {
        let segment = self.segments.iter().find(|s| {
            address.0.checked_sub(s.address.0).is_some_and(|distance| distance < s.file_size.min(s.memory_size))
        })?;
        let distance = address.0 - segment.address.0;
        slice_at(self.bytes, segment.offset.0.checked_add(distance)?, segment.file_size - distance)
    }

    /// The GNU build id, lower-case hex; `None` when the image has none.
    ///
    /// A note: `namesz u32 · descsz u32 · type u32 · name · desc`, name and desc padded to the alignment. The build id
    /// has name `GNU\0` and type 3 (`NT_GNU_BUILD_ID`).
    #[must_use]
    pub fn build_id(&self) -> Option<String> {
        self.notes.iter().find_map(|&(offset, size, align)| build_id_in(slice_at(self.bytes, offset, size)?, align))
    }
}

fn build_id_in(mut notes: &[u8], align: u64) -> Option<String> {
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let name_size = u64::from(u32_at(notes, 0)?);
        let size = u64::from(u32_at(notes, 4)?);
        let kind = u32_at(notes, 8)?;
        let start = (12 + name_size).next_multiple_of(align);
        if kind == 3 && slice_at(notes, 12, name_size) == Some(b"GNU\0") && (4..=64).contains(&size) {
            return Some(hex(slice_at(notes, start, size)?));
        }
        notes = super::bytes::tail_at(notes, (start + size).next_multiple_of(align))?;
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let mut out =
            [(name.len() as u32).to_le_bytes(), (desc.len() as u32).to_le_bytes(), kind.to_le_bytes()].concat();
        out.extend(name);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(desc);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn build_id_among_notes() {
        let abi = note(b"GNU\0", 1, &[0; 16]);
        let go = note(b"Go\0\0", 4, b"abcdefgh");
        let id = note(b"GNU\0", 3, &[0xab, 0xcd, 0x01, 0x02]);
        assert_eq!(build_id_in(&[abi.clone(), go, id.clone()].concat(), 4).as_deref(), Some("abcd0102"));
        assert_eq!(build_id_in(&abi, 4), None);
        assert_eq!(build_id_in(&id[..14], 4), None, "cut");
        assert_eq!(build_id_in(&[0xff; 64], 4), None, "sizes that overflow");
    }

    #[test]
    fn not_elf() {
        assert_eq!(Elf::parse(b"").unwrap_err(), ElfError::NotElf);
        assert_eq!(Elf::parse(b"#!/bin/sh").unwrap_err(), ElfError::NotElf);
        assert_eq!(Elf::parse(b"\x7fELF\x02\x02\x01").unwrap_err(), ElfError::BigEndian);
        assert_eq!(Elf::parse(b"\x7fELF\x02\x01\x01").unwrap_err(), ElfError::Damaged("header"));
    }

    #[test]
    fn own_binary() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        assert!(elf.segments().iter().any(|s| s.executable));
        assert!(elf.content(".text").is_some_and(|text| !text.is_empty()));
        assert!(elf.content(".no-such-section").is_none());
    }
}
