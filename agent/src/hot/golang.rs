//! Go code in a loaded image: where it is, and where its stacks begin.
//!
//! Go's machine code has no unwind tables that are mapped at run time, but every function keeps a frame pointer. So the
//! walker must know which addresses are Go's. The `.gopclntab` section says so, and it survives `-w -s` since the Go
//! runtime itself needs it.

use std::ops::Range;

/// Go text of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoText {
    /// `runtime.text` to `runtime.etext`.
    pub(crate) text: Range<u64>,
    /// Functions that have no caller: `runtime.goexit` for goroutines, `runtime.mstart` for threads, `rt0_go` for the
    /// process.
    roots: Vec<Range<u64>>,
}

/// Functions at the bottom of every stack.
const ROOTS: [&[u8]; 4] = [b"runtime.goexit", b"runtime.mstart", b"runtime.rt0_go", b"runtime.mstart0"];

impl GoText {
    /// Whether a return address lies in Go code.
    #[inline]
    pub(crate) fn contains(&self, return_address: u64) -> bool {
        // A call can be the last instruction of the last function.
        let call = return_address.wrapping_sub(1);
        self.text.start <= call && call < self.text.end
    }

    /// Whether nothing called the function of this return address.
    #[inline]
    pub(crate) fn is_root(&self, return_address: u64) -> bool {
        let call = return_address.wrapping_sub(1);
        self.roots.iter().any(|root| root.contains(&call))
    }
}

/// The sections that matter, as addresses in this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GoSections {
    /// `.gopclntab`, or `.data.rel.ro.gopclntab` in position-independent images of older linkers.
    pub(crate) pclntab: Range<u64>,
    /// Writable sections in which the runtime's `moduledata` can be.
    pub(crate) data: Vec<Range<u64>>,
}

/// Header of the table since Go 1.18, all words 8 bytes:
///
/// ```text
///  0  u32 magic  0xfffffff0 (1.18, 1.19) or 0xfffffff1 (1.20 and later)
///  4  u8 0, u8 0, u8 instruction size quantum, u8 pointer size
///  8  nfunc      16  nfiles
/// 24  text start (run-time address; 0 since 1.26)
/// 32  funcname   40  cu   48  file   56  pc   64  functab: offsets from the header
/// ```
///
/// functab: `nfunc` pairs `{u32 entry, u32 func}`, then one u32, the end of the text. `entry` counts from the text start,
/// `func` from functab to `{u32 entry, i32 name, …}`, and `name` from the funcname table.
struct Pclntab<'a> {
    bytes: &'a [u8],
    function_count: usize,
    text_start: u64,
    names: usize,
    functab: usize,
}

const MAGIC_118: u32 = 0xffff_fff0;
const MAGIC_120: u32 = 0xffff_fff1;

impl<'a> Pclntab<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let magic = read_u32(bytes, 0)?;
        if !matches!(magic, MAGIC_118 | MAGIC_120) || bytes.get(4..6)? != [0, 0] || *bytes.get(7)? != 8 {
            return None;
        }
        let table = Self {
            bytes,
            function_count: usize::try_from(read_u64(bytes, 8)?).ok()?,
            text_start: read_u64(bytes, 24)?,
            names: usize::try_from(read_u64(bytes, 32)?).ok()?,
            functab: usize::try_from(read_u64(bytes, 64)?).ok()?,
        };
        let functab_bytes = table.function_count.checked_mul(8)?.checked_add(4)?;
        (table.functab.checked_add(functab_bytes)? <= bytes.len()).then_some(table)
    }

    /// Entry of function `index` from the text start; for `function_count`, the end of the text.
    fn entry(&self, index: usize) -> Option<u64> {
        read_u32(self.bytes, self.functab + index * 8).map(u64::from)
    }

    fn name(&self, index: usize) -> Option<&'a [u8]> {
        let func = self.functab.checked_add(read_u32(self.bytes, self.functab + index * 8 + 4)? as usize)?;
        let name = self.names.checked_add(read_u32(self.bytes, func.checked_add(4)?)? as usize)?;
        let rest = self.bytes.get(name..)?;
        Some(&rest[..rest.iter().take(256).position(|&byte| byte == 0)?])
    }
}

/// Finds Go's text in an image; `None` when it has no table that this code knows.
///
/// `memory` gives the bytes in a range of addresses, if they are the image's.
pub(crate) fn find<'m>(sections: &GoSections, memory: impl Fn(&Range<u64>) -> Option<&'m [u8]>) -> Option<GoText> {
    let table = Pclntab::parse(memory(&sections.pclntab)?)?;
    let text_start = match table.text_start {
        0 => sections.data.iter().find_map(|data| text_start_in(memory(data)?, sections.pclntab.start, &table))?,
        start => start,
    };
    let end = text_start.checked_add(table.entry(table.function_count)?)?;
    let mut roots = Vec::new();
    for index in 0..table.function_count {
        let Some(name) = table.name(index) else { continue };
        let name = name.strip_suffix(b".abi0").unwrap_or(name);
        if ROOTS.contains(&name) {
            roots.push(text_start + table.entry(index)?..text_start + table.entry(index + 1)?);
        }
    }
    Some(GoText { text: text_start..end, roots })
}

/// The text start from `runtime.firstmoduledata`, since Go 1.26 does not repeat it in the table's header.
///
/// ```text
///   0  pointer to the table
///   8  funcnametab {pointer, length, capacity}, then cutab, filetab, pctab, pclntable, ftab likewise
/// 152  findfunctab   160  minpc   168  maxpc   176  text   184  etext
/// ```
fn text_start_in(data: &[u8], pclntab: u64, table: &Pclntab) -> Option<u64> {
    const TEXT: usize = 176;
    let names = pclntab.checked_add(table.names as u64)?;
    let words = data.chunks_exact(8);
    for (index, word) in words.enumerate() {
        let offset = index * 8;
        if word == pclntab.to_le_bytes() && read_u64(data, offset + 8) == Some(names) {
            return read_u64(data, offset + TEXT).filter(|&text| text != 0);
        }
    }
    None
}

/// Picks the Go sections out of an ELF file's section headers.
///
/// ```text
/// ELF64 header:  40 e_shoff   58 e_shentsize   60 e_shnum   62 e_shstrndx
/// section header: 0 u32 name   4 u32 type   8 flags   16 addr   24 offset   32 size
/// ```
///
/// `read(offset, length)` gives bytes of the file; `bias` is what the loader added to link-time addresses.
pub(crate) fn sections(bias: u64, read: impl Fn(u64, usize) -> Option<Vec<u8>>) -> Option<GoSections> {
    const HEADER_BYTES: usize = 64;
    const SHT_PROGBITS: u32 = 1;
    const SHF_WRITE: u64 = 1;
    let header = read(0, HEADER_BYTES)?;
    if header.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let entry_bytes = usize::from(read_u16(&header, 58)?);
    let count = usize::from(read_u16(&header, 60)?);
    let names_index = usize::from(read_u16(&header, 62)?);
    if entry_bytes != 64 || count == 0 {
        return None;
    }
    let table = read(read_u64(&header, 40)?, count * entry_bytes)?;
    let entry = |index: usize| table.get(index * entry_bytes..(index + 1) * entry_bytes);
    let names_entry = entry(names_index)?;
    let names_bytes = usize::try_from(read_u64(names_entry, 32)?).ok().filter(|&bytes| bytes <= 1 << 20)?;
    let names = read(read_u64(names_entry, 24)?, names_bytes)?;

    let mut found = GoSections::default();
    for index in 0..count {
        let section = entry(index)?;
        let name = names.get(read_u32(section, 0)? as usize..).unwrap_or_default();
        let name = &name[..name.iter().position(|&byte| byte == 0).unwrap_or(0)];
        let start = bias.wrapping_add(read_u64(section, 16)?);
        let range = start..start.checked_add(read_u64(section, 32)?)?;
        if matches!(name, b".gopclntab" | b".data.rel.ro.gopclntab") {
            found.pclntab = range;
        } else if read_u32(section, 4)? == SHT_PROGBITS && read_u64(section, 8)? & SHF_WRITE != 0 {
            match name {
                b".go.module" => found.data.insert(0, range),
                b".noptrdata" | b".data" | b".data.rel.ro" => found.data.push(range),
                _ => {}
            }
        }
    }
    (!found.pclntab.is_empty()).then_some(found)
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with the functions `main.f` (16 bytes) and `runtime.goexit` (8 bytes).
    fn table(text_start: u64) -> Vec<u8> {
        let names = b"main.f\0runtime.goexit\0\0\0";
        let names_at = 72u64;
        let functab_at = names_at + names.len() as u64;
        let mut bytes = Vec::new();
        bytes.extend(MAGIC_120.to_le_bytes());
        bytes.extend([0, 0, 1, 8]);
        for word in [2, 0, text_start, names_at, 0, 0, 0, functab_at] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(names);
        for word in [0u32, 20, 16, 28, 24] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [0u32, 0, 16, 7] {
            bytes.extend(word.to_le_bytes()); // {entry, name} twice
        }
        bytes
    }

    /// Finds what is in a table at some address.
    fn find_in(bytes: &[u8]) -> Option<GoText> {
        let pclntab = 0x1000..0x1000 + bytes.len() as u64;
        find(&GoSections { pclntab: pclntab.clone(), data: vec![] }, |range| (*range == pclntab).then_some(bytes))
    }

    #[test]
    fn text_and_root_from_the_header() {
        let go = find_in(&table(0x40_0000)).unwrap();
        assert_eq!(go.text, 0x40_0000..0x40_0018);
        assert!(go.contains(0x40_0018), "a call as the last instruction");
        assert!(!go.contains(0x40_0000));
        assert!(go.is_root(0x40_0011) && !go.is_root(0x40_0010));
    }

    #[test]
    fn text_start_from_moduledata() {
        let bytes = table(0);
        let pclntab = 0x1000..0x1000 + bytes.len() as u64;
        let mut data = vec![0u64; 40];
        data[3] = pclntab.start;
        data[4] = pclntab.start + 72;
        data[3 + 22] = 0x50_0000;
        let data = data.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let sections = GoSections { pclntab: pclntab.clone(), data: vec![0x8000..0x9000, 0x2000..0x2140] };
        let go = find(&sections, |range| match range.start {
            0x1000 => Some(&bytes[..]),
            0x2000 => Some(&data[..]),
            _ => None, // outside the image
        });
        assert_eq!(go.unwrap().text.start, 0x50_0000);
    }

    #[test]
    fn damaged_tables_are_refused() {
        let whole = table(0x40_0000);
        assert!(find_in(&whole).is_some());
        for cut in 0..whole.len() {
            let _ = find_in(&whole[..cut]);
        }
        let mut huge = whole.clone();
        huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(find_in(&huge), None);
    }
}
