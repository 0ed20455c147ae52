use super::header::Header;
use crate::address::ImageAddress;
use crate::image::elf::Elf;
use crate::image::relocations;
use memchr::memmem;

/// What `runtime.firstmoduledata` knows and the header does not: where the text starts, and where funcdata may be.
///
/// Its first words, the same from Go 1.18 to 1.27 (a slice takes three):
///
/// ```text
/// 0 header · 1 function names[3] · 4 cutab[3] · 7 file names[3] · 10 pctab[3] · 13 pclntable[3] · 16 ftab[3]
/// 19 findfunctab · 20 minpc · 21 maxpc · 22 text · 23 etext
/// ```
///
/// Further on stands `gofunc`, the base of funcdata offsets, whose place moved: word 38 in Go 1.18, 40 in 1.20, 43 in
/// 1.27. It is told from its neighbours by what it points to (see `Table::with_inline_trees`), not by version.
#[derive(Debug)]
pub(super) struct ModuleData {
    pub(super) text: ImageAddress,
    /// The words that may be `gofunc`.
    pub(super) gofunc_candidates: Vec<ImageAddress>,
}

const TEXT: usize = 22;
const GOFUNC_MIN: usize = 32;
const WORDS: u64 = 56;

impl ModuleData {
    /// Find it by its first word, the address of the header.
    pub(super) fn find(elf: &Elf<'_>, header_address: ImageAddress, header: &Header) -> Option<Self> {
        let by_relocation = || {
            relocations::relative(elf)
                .filter(|(_, target)| *target == header_address)
                .find_map(|(place, _)| Self::parse(elf, place, header_address, header))
        };
        Self::find_by_content(elf, header_address, header).or_else(by_relocation)
    }

    /// In images that are not position independent, and in those whose relocations keep their addend in place.
    fn find_by_content(elf: &Elf<'_>, header_address: ImageAddress, header: &Header) -> Option<Self> {
        let bytes = header_address.0.to_le_bytes();
        let pointer = &bytes[..header.pointer_size as usize];
        // It is writable data, which linkers put last.
        elf.segments().iter().filter(|s| !s.executable).rev().find_map(|segment| {
            let tail = elf.tail_at(segment.address)?;
            memmem::find_iter(tail, pointer)
                .map(|at| ImageAddress(segment.address.0.wrapping_add(at as u64)))
                .filter(|place| place.0 % header.pointer_size == 0)
                .find_map(|place| Self::parse(elf, place, header_address, header))
        })
    }

    fn parse(elf: &Elf<'_>, place: ImageAddress, header_address: ImageAddress, header: &Header) -> Option<Self> {
        let words = relocations::words_at(elf, place, WORDS)?;
        let is_part = |word: usize, offset: u64| words[word] == header_address.0.wrapping_add(offset);
        let is_module = is_part(1, header.names)
            && is_part(4, header.units)
            && is_part(7, header.files)
            && is_part(10, header.pc_values)
            && is_part(13, header.functions)
            && words[TEXT] <= words[TEXT + 1];
        is_module.then(|| Self {
            text: ImageAddress(words[TEXT]),
            gofunc_candidates: words[GOFUNC_MIN..].iter().copied().map(ImageAddress).collect(),
        })
    }
}
