use crate::address::ImageAddress;
use crate::image::bytes::{slice_at, u32_at, word_at};
use crate::image::elf::Elf;
use memchr::memmem;

/// Which layout of the tables behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Go 1.18 and 1.19.
    Go118,
    /// Go 1.20 and newer.
    Go120,
}

/// The header of the table (`runtime.pcHeader`), which the other parts are counted from.
///
/// ```text
/// 0  magic u32: fffffff0 (Go 1.18), fffffff1 (Go 1.20)
/// 4  0, 0
/// 6  minimal instruction size u8: 1 (amd64), 4 (arm64)
/// 7  pointer size p u8: 4 or 8
/// then words of p bytes:
/// 8        number of functions
/// 8 + p    number of files
/// 8 + 2p   start of the text; unused since Go 1.26
/// 8 + 3p   offset of the function names
/// 8 + 4p   offset of the compilation units' file indexes (cutab)
/// 8 + 5p   offset of the file names
/// 8 + 6p   offset of the pc-value tables (pctab)
/// 8 + 7p   offset of the functions (functab)
/// ```
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) layout: Layout,
    pub(super) instruction_size: u64,
    pub(super) pointer_size: u64,
    pub(super) function_count: u64,
    pub(super) names: u64,
    pub(super) units: u64,
    pub(super) files: u64,
    pub(super) pc_values: u64,
    pub(super) functions: u64,
}

impl Header {
    /// Words that the header takes, at most.
    pub(super) const WORDS: u64 = 10;

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let layout = match u32_at(bytes, 0)? {
            0xffff_fff0 => Layout::Go118,
            0xffff_fff1 => Layout::Go120,
            _ => return None,
        };
        let &[0, 0, instruction_size @ (1 | 2 | 4), pointer_size @ (4 | 8)] = slice_at(bytes, 4, 4)? else {
            return None;
        };
        let pointer_size = u64::from(pointer_size);
        let word = |index: u64| word_at(bytes, 8 + index * pointer_size, pointer_size);
        let header = Self {
            layout,
            instruction_size: u64::from(instruction_size),
            pointer_size,
            function_count: word(0)?,
            names: word(3)?,
            units: word(4)?,
            files: word(5)?,
            pc_values: word(6)?,
            functions: word(7)?,
        };
        header.is_sane(bytes.len() as u64).then_some(header)
    }

    /// The parts stand in this order, and there is room for the functions.
    fn is_sane(&self, len: u64) -> bool {
        let order = [8, self.names, self.units, self.files, self.pc_values, self.functions];
        order.is_sorted()
            && self.function_count > 0
            && self
                .function_count
                .checked_mul(8)
                .and_then(|size| size.checked_add(self.functions))
                .is_some_and(|end| end < len)
    }

    /// Index of the start of the text among the words from the start of the header.
    pub(super) fn text_start_word(&self) -> usize {
        (8 / self.pointer_size + 2) as usize
    }
}

/// Sections that hold the table, most likely first. External linkers merge the second into the third in
/// position-independent images, and then only its header gives the table away.
const SECTIONS: [&str; 4] = [".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro", ".rodata"];

/// Find the table: its image address, its bytes to the end of the section or segment, its header.
pub(super) fn find<'a>(elf: &Elf<'a>) -> Option<(ImageAddress, &'a [u8], Header)> {
    let in_section = SECTIONS.iter().filter_map(|name| elf.section(name)).find_map(|section| {
        let (at, header) = scan(elf.raw_content(section)?)?;
        Some((ImageAddress(section.sh_addr.checked_add(at)?), header))
    });
    // Without section headers (sstrip, or a file cut at its end) the segments still hold it.
    let in_segment = || {
        elf.segments().iter().find_map(|segment| {
            let (at, header) = scan(slice_at(elf.bytes(), segment.offset.0, segment.file_size)?)?;
            Some((ImageAddress(segment.address.0.checked_add(at)?), header))
        })
    };
    let (address, header) = if elf.sections().is_empty() { in_segment() } else { in_section }?;
    Some((address, elf.tail_at(address)?, header))
}

/// Offset of the first sane header. The linker aligns the table to 32 bytes or more within its section.
fn scan(content: &[u8]) -> Option<(u64, Header)> {
    // 0xff ff ff 00 00: the part that both magic numbers share, one byte in.
    memmem::find_iter(content, b"\xff\xff\xff\0\0").find_map(|at| {
        let at = at.checked_sub(1).filter(|at| at % 8 == 0)?;
        Some((at as u64, Header::parse(&content[at..])?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(magic: u32, functions: u64) -> Vec<u8> {
        let words = [functions, 3, 0x40_1000, 72, 80, 88, 96, 104];
        let mut bytes = [&magic.to_le_bytes()[..], &[0, 0, 1, 8]].concat();
        bytes.extend(words.iter().flat_map(|w: &u64| w.to_le_bytes()));
        bytes.resize(256, 0);
        bytes
    }

    #[test]
    fn versions() {
        assert_eq!(Header::parse(&header(0xffff_fff0, 2)).unwrap().layout, Layout::Go118);
        let newest = Header::parse(&header(0xffff_fff1, 2)).unwrap();
        assert_eq!((newest.layout, newest.pointer_size, newest.functions), (Layout::Go120, 8, 104));
        assert!(Header::parse(&header(0xffff_fffb, 2)).is_none(), "Go 1.2");
    }

    #[test]
    fn insane() {
        assert!(Header::parse(&header(0xffff_fff1, 0)).is_none(), "no functions");
        assert!(Header::parse(&header(0xffff_fff1, 1 << 61)).is_none(), "more functions than bytes");
        assert!(Header::parse(&header(0xffff_fff1, 2)[..70]).is_none(), "cut");
        let mut disordered = header(0xffff_fff1, 2);
        disordered[8 + 3 * 8] = 200;
        assert!(Header::parse(&disordered).is_none());
    }

    #[test]
    fn scanned_for() {
        let mut content = vec![0xff; 64];
        content.extend(header(0xffff_fff1, 2));
        assert_eq!(scan(&content).unwrap().0, 64);
        assert!(scan(&[0xff; 64]).is_none());
    }
}
