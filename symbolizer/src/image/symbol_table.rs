use super::bytes::{c_str_at, slice_at};
use super::elf::Elf;
use super::names::Names;
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use goblin::elf::header::EM_ARM;
use goblin::elf::section_header::{SHN_UNDEF, SHT_NOBITS};
use goblin::elf::sym::{STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, Symtab};
use std::borrow::Cow;
use std::sync::Arc;

/// Function symbols of `.symtab` or `.dynsym`.
///
/// An address gets a name only from a function symbol whose `st_size` covers it. The nearest symbol below, which other
/// tools print, is how everything in a stripped library becomes the last function it happens to export.
#[derive(Debug)]
pub struct SymbolTable<'a> {
    source: NameSource,
    strings: Cow<'a, [u8]>,
    /// By start; one for each start.
    symbols: Vec<Symbol>,
}

#[derive(Debug)]
struct Symbol {
    start: u64,
    end: u64,
    /// The largest `end` of this symbol and all before it: how far back a covering symbol can stand.
    reach: u64,
    name: u32,
}

impl<'a> SymbolTable<'a> {
    /// Read the table of `source`, if the image has one with functions in it.
    #[must_use]
    pub fn load(elf: &Elf<'a>, source: NameSource) -> Option<Self> {
        let section = elf.section(match source {
            NameSource::Dynsym => ".dynsym",
            _ => ".symtab",
        })?;
        // Section headers may be gone or false in a damaged file; goblin would believe the count.
        elf.raw_content(section)?;
        let entry_size = if elf.is_64() { 24 } else { 16 };
        let count = section.sh_size / entry_size;
        let table = Symtab::parse(
            elf.bytes(),
            usize::try_from(section.sh_offset).ok()?,
            usize::try_from(count).ok()?,
            elf.ctx(),
        )
        .ok()?;
        let strings = elf.sections().get(section.sh_link as usize).filter(|s| s.sh_type != SHT_NOBITS)?;
        let strings = slice_at(elf.bytes(), strings.sh_offset, strings.sh_size)?;

        let is_arm = elf.machine() == EM_ARM;
        let mut found: Vec<(u64, u64, u8, u32)> = Vec::new();
        for symbol in &table {
            if !matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF as usize {
                continue;
            }
            // Bit 0 of an ARM function's value says that it is Thumb code.
            let start = if is_arm { symbol.st_value & !1 } else { symbol.st_value };
            let Some(end) = start.checked_add(symbol.st_size).filter(|end| *end > start) else { continue };
            if strings.get(symbol.st_name).is_some_and(|first| *first != 0) {
                found.push((start, end, symbol.st_bind(), symbol.st_name as u32));
            }
        }
        // Names are read only where several symbols start together.
        found.sort_unstable_by_key(|(start, ..)| *start);
        let rank = |(_, _, binding, name): &(u64, u64, u8, u32)| {
            (Rank::of(*binding, c_str_at(strings, u64::from(*name)).unwrap_or_default()), *name)
        };
        let best = |together: &[(u64, u64, u8, u32)]| match together {
            [only] => Some(*only),
            _ => together.iter().min_by_key(|symbol| rank(symbol)).copied(),
        };

        let mut reach = 0;
        let symbols: Vec<_> = found
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(best)
            .map(|(start, end, _, name)| {
                reach = end.max(reach);
                Symbol { start, end, reach, name }
            })
            .collect();
        (!symbols.is_empty()).then_some(Self { source, strings: Cow::Borrowed(strings), symbols })
    }

    /// The same table, independent of the image it was read from.
    pub(super) fn into_owned(self, source: NameSource) -> SymbolTable<'static> {
        SymbolTable { source, strings: Cow::Owned(self.strings.into_owned()), symbols: self.symbols }
    }

    /// The innermost symbol that covers the address.
    fn find(&self, address: ImageAddress) -> Option<&Symbol> {
        let before = self.symbols.partition_point(|s| s.start <= address.0);
        self.symbols[..before].iter().rev().take_while(|s| s.reach > address.0).find(|s| s.end > address.0)
    }
}

impl Names for SymbolTable<'_> {
    fn source(&self) -> NameSource {
        self.source
    }

    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName> {
        let symbol = self.find(address).ok_or(NoName::NoSymbol)?;
        let name = c_str_at(&self.strings, u64::from(symbol.name)).ok_or(NoName::NoSymbol)?;
        frames.push(Frame { function: Arc::from(String::from_utf8_lossy(without_version(name))), ..Frame::default() });
        Ok(())
    }
}

/// Among symbols with one address, the one that people call it by: exported, few leading underscores, short.
/// (`malloc`, not `__libc_malloc`.)
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    binding: u8,
    underscores: usize,
    length: usize,
}

impl Rank {
    fn of(binding: u8, name: &[u8]) -> Self {
        let binding = match binding {
            STB_GLOBAL => 0,
            STB_WEAK => 1,
            STB_LOCAL => 2,
            _ => 3,
        };
        let name = without_version(name);
        Self { binding, underscores: name.iter().take_while(|b| **b == b'_').count(), length: name.len() }
    }
}

/// Linkers write versioned symbols into `.symtab` as `memcpy@@GLIBC_2.14`.
fn without_version(name: &[u8]) -> &[u8] {
    match memchr::memchr(b'@', name) {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64)]) -> SymbolTable<'static> {
        let mut reach = 0;
        let symbols = symbols
            .iter()
            .map(|&(start, end)| {
                reach = end.max(reach);
                Symbol { start, end, reach, name: 0 }
            })
            .collect();
        SymbolTable { source: NameSource::Symtab, strings: Cow::Borrowed(b"f\0"), symbols }
    }

    #[test]
    fn only_within_a_symbol() {
        let table = table(&[(0x100, 0x200), (0x120, 0x130), (0x300, 0x301)]);
        for (address, expected) in [
            (0xff, None),
            (0x100, Some(0x100)),
            (0x120, Some(0x120)),
            (0x12f, Some(0x120)),
            (0x130, Some(0x100)),
            (0x1ff, Some(0x100)),
            (0x200, None),
            (0x300, Some(0x300)),
            (0x301, None),
        ] {
            assert_eq!(table.find(ImageAddress(address)).map(|s| s.start), expected, "{address:#x}");
        }
    }

    #[test]
    fn aliases() {
        let best = |names: &[(u8, &'static str)]| {
            names.iter().min_by_key(|(binding, name)| Rank::of(*binding, name.as_bytes())).unwrap().1
        };
        assert_eq!(best(&[(STB_GLOBAL, "__libc_malloc"), (STB_GLOBAL, "malloc"), (STB_LOCAL, "m")]), "malloc");
        assert_eq!(best(&[(STB_WEAK, "write"), (STB_GLOBAL, "__write")]), "__write");
        assert_eq!(without_version(b"memcpy@@GLIBC_2.14"), b"memcpy");
        assert_eq!(without_version(b"@x"), b"@x");
    }
}
