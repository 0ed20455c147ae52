use super::GoBuild;
use goblin::container::{Container, Ctx};
use goblin::elf::Elf;
use goblin::elf::header::{EI_CLASS, ELFCLASS64};
use goblin::elf::program_header::{PT_INTERP, ProgramHeader};
use goblin::elf::section_header::SectionHeader;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of one table that are read at most: a real program header table has some dozen entries, a string table of a
/// large C++ service tens of megabytes.
const MAX_TABLE: u64 = 64 << 20;

/// Facts of one executable.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Executable {
    /// `e_machine`.
    pub(crate) machine: u16,
    /// 64-bit class.
    pub(crate) is_64: bool,
    /// The loader that the kernel starts it with; `None` for a static one.
    pub(crate) interpreter: Option<String>,
    /// Built by the Go toolchain.
    pub(crate) is_go: bool,
    /// Its build information, where it could be read.
    pub(crate) go: Option<GoBuild>,
    /// jemalloc is linked into it.
    pub(crate) has_jemalloc: bool,
}

/// Read the facts; `None` when the file is no ELF file.
pub(crate) fn read(file: &File) -> io::Result<Option<Executable>> {
    let mut head = vec![0; 64];
    let got = file.read_at(&mut head, 0)?;
    if got < 52 || !head.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let header = Elf::parse_header(&head).map_err(invalid)?;
    let is_64 = header.e_ident[EI_CLASS] == ELFCLASS64;
    let endianness = header.endianness().map_err(invalid)?;
    let ctx = Ctx::new(if is_64 { Container::Big } else { Container::Little }, endianness);
    let mut facts = Executable { machine: header.e_machine, is_64, ..Executable::default() };

    let count = usize::from(header.e_phnum);
    let table = table(file, header.e_phoff, count as u64 * u64::from(header.e_phentsize))?;
    for segment in ProgramHeader::parse(&table, 0, count, ctx).map_err(invalid)? {
        if segment.p_type == PT_INTERP {
            let path = self::table(file, segment.p_offset, segment.p_filesz)?;
            facts.interpreter = Some(String::from_utf8_lossy(&path).trim_end_matches('\0').to_owned());
        }
    }

    // A file without sections is still a whole executable: what follows only adds to the facts.
    let count = usize::from(header.e_shnum);
    // goblin takes a table at offset 0 for none at all: some bytes stand before it.
    const BEFORE: u64 = 8;
    let size = BEFORE + count as u64 * u64::from(header.e_shentsize);
    let table = header.e_shoff.checked_sub(BEFORE).and_then(|start| self::table(file, start, size).ok());
    let Some(table) = table else { return Ok(Some(facts)) };
    let Ok(sections) = SectionHeader::parse(&table, BEFORE as usize, count, ctx) else { return Ok(Some(facts)) };
    let bytes_of = |section: &SectionHeader| self::table(file, section.sh_offset, section.sh_size).unwrap_or_default();
    let names = sections.get(usize::from(header.e_shstrndx)).map(bytes_of).unwrap_or_default();
    for section in &sections {
        match name_at(&names, section.sh_name) {
            b".go.buildinfo" => {
                facts.is_go = true;
                facts.go = GoBuild::parse(&bytes_of(section));
            }
            b".gopclntab" | b".note.go.buildid" => facts.is_go = true,
            b".strtab" | b".dynstr" => facts.has_jemalloc |= names_jemalloc(&bytes_of(section)),
            _ => {}
        }
    }
    Ok(Some(facts))
}

/// jemalloc's control function, under the prefixes that distributions and bindings give it.
fn names_jemalloc(strings: &[u8]) -> bool {
    const NAMES: [&[u8]; 3] = [b"mallctl", b"je_mallctl", b"_rjem_mallctl"];
    strings.split(|byte| *byte == 0).any(|name| NAMES.contains(&name))
}

fn name_at(names: &[u8], offset: usize) -> &[u8] {
    names.get(offset..).and_then(|rest| rest.split(|byte| *byte == 0).next()).unwrap_or_default()
}

fn table(file: &File, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_TABLE {
        return Err(invalid("a table is larger than any real one"));
    }
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{names_jemalloc, read};
    use std::fs::File;
    use std::io::{Seek, Write};

    #[test]
    fn this_test_is_a_dynamic_executable_without_go() {
        let facts = read(&File::open("/proc/self/exe").unwrap()).unwrap().unwrap();
        assert!(facts.interpreter.unwrap().contains("ld-linux"));
        assert!(facts.is_64 && !facts.is_go);
    }

    #[test]
    fn sections_are_known_by_their_names() {
        let mut image = std::fs::read("/proc/self/exe").unwrap();
        // A section that every dynamic executable has, renamed to one that only Go's linker writes.
        let at = image.windows(16).rposition(|name| name == b"\0.gnu.version_r\0").unwrap();
        image[at + 1..at + 15].copy_from_slice(b".go.buildinfo\0");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&image).unwrap();
        assert!(read(&file).unwrap().unwrap().is_go);
    }

    #[test]
    fn what_is_no_elf_file_or_a_cut_one_is_told() {
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            file
        };
        assert!(read(&file(b"#!/bin/sh\n")).unwrap().is_none());
        let whole = std::fs::read("/proc/self/exe").unwrap();
        assert!(read(&file(&whole[..200])).is_err());
        let mut huge = whole[..4096].to_vec();
        // e_phnum and e_phentsize at their largest: refused by reading, not by allocating.
        huge[54..58].copy_from_slice(&[0xff; 4]);
        assert!(read(&file(&huge)).is_err());
    }

    #[test]
    fn jemalloc_is_known_by_its_whole_name() {
        for (strings, expected) in [
            (&b"\0free\0mallctl\0"[..], true),
            (b"\0_rjem_mallctl\0", true),
            (b"\0not_mallctl_really\0", false),
            (b"", false),
        ] {
            assert_eq!(names_jemalloc(strings), expected);
        }
    }
}
