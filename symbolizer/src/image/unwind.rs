use super::elf::Elf;
use crate::address::ImageAddress;
use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use std::borrow::Cow;
use std::ops::Range;

/// Function bounds from `.eh_frame`: they survive stripping, since exceptions and backtraces need them.
#[derive(Debug)]
pub struct UnwindTable {
    /// By start, not overlapping.
    functions: Vec<Range<u64>>,
}

impl UnwindTable {
    /// Collect the bounds, if the image has unwind tables.
    #[must_use]
    pub fn load(elf: &Elf<'_>) -> Option<Self> {
        let section = elf.section(".eh_frame")?;
        let content: Cow<'_, [u8]> = elf.content(".eh_frame")?;
        let address = |name| elf.section(name).map(|s| s.sh_addr);
        let mut bases = BaseAddresses::default().set_eh_frame(section.sh_addr);
        if let Some(text) = address(".text") {
            bases = bases.set_text(text);
        }
        if let Some(got) = address(".got") {
            bases = bases.set_got(got);
        }
        let mut frames = EhFrame::new(&content, LittleEndian);
        frames.set_address_size(elf.address_size());

        let mut functions = Vec::new();
        let mut entries = frames.entries(&bases);
        // A damaged entry ends the walk; what was read so far is good.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(EhFrame::<EndianSlice<'_, LittleEndian>>::cie_from_offset) else { continue };
            let start = fde.initial_address();
            if let Some(end) = start.checked_add(fde.len()).filter(|end| *end > start) {
                functions.push(start..end);
            }
        }
        functions.sort_unstable_by_key(|f| (f.start, f.end));
        functions.dedup_by_key(|f| f.start);
        (!functions.is_empty()).then_some(Self { functions })
    }

    /// The function that holds the address.
    #[must_use]
    pub fn function(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
        let after = self.functions.partition_point(|f| f.start <= address.0);
        let found = self.functions[..after].last().filter(|f| f.contains(&address.0))?;
        Some(ImageAddress(found.start)..ImageAddress(found.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_own_functions() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        let table = UnwindTable::load(&elf).unwrap();
        let text = elf.section(".text").unwrap();
        let middle = &table.functions[table.functions.len() / 2];
        assert!(text.sh_addr <= middle.start && middle.end <= text.sh_addr + text.sh_size);
        let found = table.function(ImageAddress(middle.end - 1)).unwrap();
        assert_eq!(found.start, ImageAddress(middle.start));
        assert_eq!(table.function(ImageAddress(0)), None);
        assert_eq!(table.function(ImageAddress(u64::MAX)), None);
    }
}
