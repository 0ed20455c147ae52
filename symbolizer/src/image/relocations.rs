//! Pointers in the data of position-independent images, as the loader will leave them.

use super::bytes::{slice_at, u64_at, word_at};
use super::elf::Elf;
use crate::address::ImageAddress;
use goblin::elf::header::{EM_386, EM_AARCH64, EM_X86_64};
use goblin::elf::section_header::SHT_RELA;

/// The loader adds the load address to these words: `r_addend` is an image address.
fn relative_kind(machine: u16) -> Option<u32> {
    match machine {
        EM_X86_64 => Some(goblin::elf::reloc::R_X86_64_RELATIVE),
        EM_AARCH64 => Some(goblin::elf::reloc::R_AARCH64_RELATIVE),
        EM_386 => Some(goblin::elf::reloc::R_386_RELATIVE),
        _ => None,
    }
}

/// Relative relocations with addends (64-bit `SHT_RELA`), as (where, image address):
///
/// ```text
/// 0 r_offset u64 · 8 r_info u64 (symbol << 32 | type) · 16 r_addend i64
/// ```
pub(super) fn relative<'e>(elf: &'e Elf<'_>) -> impl Iterator<Item = (ImageAddress, ImageAddress)> + 'e {
    let kind = relative_kind(elf.machine()).filter(|_| elf.is_64());
    elf.sections()
        .iter()
        .filter(move |s| kind.is_some() && s.sh_type == SHT_RELA)
        .filter_map(|s| elf.raw_content(s))
        .flat_map(|content| content.chunks_exact(24))
        .filter_map(move |entry| {
            let is_relative = u64_at(entry, 8)? as u32 == kind?;
            is_relative.then_some((ImageAddress(u64_at(entry, 0)?), ImageAddress(u64_at(entry, 16)?)))
        })
}

/// The `count` words at `address` with relative relocations applied.
pub(super) fn words_at(elf: &Elf<'_>, address: ImageAddress, count: u64) -> Option<Vec<u64>> {
    let size = u64::from(elf.address_size());
    let content = slice_at(elf.tail_at(address)?, 0, count.checked_mul(size)?)?;
    let mut words: Vec<u64> = (0..count).filter_map(|i| word_at(content, i * size, size)).collect();
    for (place, target) in relative(elf) {
        if let Some(distance) = place.0.checked_sub(address.0)
            && let Some(word) = words.get_mut(usize::try_from(distance / size).ok()?)
        {
            *word = target.0;
        }
    }
    Some(words)
}
