use super::bytes::{c_str_at, slice_at, u16_at, u32_at, u64_at};
use super::elf::Elf;
use super::names::Names;
use super::ranges::RangeMap;
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use goblin::elf::header::EM_ARM;
use goblin::elf::section_header::{SHN_UNDEF, SHT_NOBITS};
use goblin::elf::sym::{STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, st_bind, st_type};
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
    symbols: RangeMap<Symbol>,
}

/// An entry of the table as it stands in the file.
struct Entry {
    name: u32,
    info: u8,
    section: u16,
    value: u64,
    size: u64,
}

impl Entry {
    /// ```text
    /// 64 bit:  0 st_name u32 · 4 st_info u8 · 5 st_other u8 · 6 st_shndx u16 · 8 st_value u64 · 16 st_size u64
    /// 32 bit:  0 st_name u32 · 4 st_value u32 · 8 st_size u32 · 12 st_info u8 · 13 st_other u8 · 14 st_shndx u16
    /// ```
    fn read(entry: &[u8], is_64: bool) -> Option<Self> {
        let name = u32_at(entry, 0)?;
        Some(if is_64 {
            Self {
                name,
                info: *entry.get(4)?,
                section: u16_at(entry, 6)?,
                value: u64_at(entry, 8)?,
                size: u64_at(entry, 16)?,
            }
        } else {
            let (value, size) = (u32_at(entry, 4)?.into(), u32_at(entry, 8)?.into());
            Self { name, info: *entry.get(12)?, section: u16_at(entry, 14)?, value, size }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    /// Where in the strings.
    name: u32,
    /// `STB_…`
    binding: u8,
}

impl<'a> SymbolTable<'a> {
    /// Read the table of `source`, if the image has one with functions in it.
    #[must_use]
    pub fn load(elf: &Elf<'a>, source: NameSource) -> Option<Self> {
        let section = elf.section(match source {
            NameSource::Dynsym => ".dynsym",
            _ => ".symtab",
        })?;
        let entries = elf.raw_content(section)?.chunks_exact(if elf.is_64() { 24 } else { 16 });
        let strings = elf.sections().get(section.sh_link as usize).filter(|s| s.sh_type != SHT_NOBITS)?;
        let strings = slice_at(elf.bytes(), strings.sh_offset, strings.sh_size)?;

        let is_arm = elf.machine() == EM_ARM;
        let symbol = |entry: Entry| {
            let is_function = matches!(st_type(entry.info), STT_FUNC | STT_GNU_IFUNC);
            // Bit 0 of an ARM function's value says that it is Thumb code.
            let start = if is_arm { entry.value & !1 } else { entry.value };
            let end = start.checked_add(entry.size)?;
            let symbol = Symbol { name: entry.name, binding: st_bind(entry.info) };
            (is_function && u32::from(entry.section) != SHN_UNDEF).then_some((start..end, symbol))
        };
        let symbols: RangeMap<_> = entries.filter_map(|entry| symbol(Entry::read(entry, elf.is_64())?)).collect();
        (!symbols.is_empty()).then_some(Self { source, strings: Cow::Borrowed(strings), symbols })
    }

    /// The same table, independent of the image it was read from.
    pub(super) fn into_owned(self, source: NameSource) -> SymbolTable<'static> {
        SymbolTable { source, strings: Cow::Owned(self.strings.into_owned()), symbols: self.symbols }
    }

    /// The name of the innermost symbol that covers the address.
    fn find(&self, address: ImageAddress) -> Option<&[u8]> {
        let mut covering = self.symbols.covering(address.0).peekable();
        let start = covering.peek()?.0.start;
        let name = |(_, symbol): (_, Symbol)| {
            let name = c_str_at(&self.strings, symbol.name.into()).filter(|name| !name.is_empty())?;
            Some((Rank::of(symbol.binding, name), symbol.name, without_version(name)))
        };
        let together = covering.take_while(|(range, _)| range.start == start);
        together.filter_map(name).min().map(|(.., name)| name)
    }
}

impl Names for SymbolTable<'_> {
    fn source(&self) -> NameSource {
        self.source
    }

    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName> {
        let name = self.find(address).ok_or(NoName::NoSymbol)?;
        frames.push(Frame { function: Arc::from(String::from_utf8_lossy(name)), ..Frame::default() });
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

    #[test]
    fn only_within_a_symbol() {
        let symbol = |(start, end, name): (u64, u64, u32)| (start..end, Symbol { name, binding: STB_GLOBAL });
        let symbols = [(0x100, 0x200, 0), (0x120, 0x130, 2), (0x120, 0x128, 4), (0x300, 0x301, 7), (0x400, 0x500, 1)];
        let table = SymbolTable {
            source: NameSource::Symtab,
            strings: Cow::Borrowed(b"a\0b\0_c\0d\0"),
            symbols: symbols.into_iter().map(symbol).collect(),
        };
        for (address, expected) in [
            (0xff, None),
            (0x100, Some("a")),
            (0x120, Some("b")),
            (0x12f, Some("b")),
            (0x130, Some("a")),
            (0x1ff, Some("a")),
            (0x200, None),
            (0x300, Some("d")),
            (0x301, None),
            // Without a name.
            (0x400, None),
        ] {
            let expected = expected.map(str::as_bytes);
            assert_eq!(table.find(ImageAddress(address)), expected, "{address:#x}");
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
