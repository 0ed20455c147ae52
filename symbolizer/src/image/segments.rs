use crate::address::{FileOffset, ImageAddress, RuntimeAddress};
use goblin::elf::program_header::{PF_X, PT_LOAD, ProgramHeader};

/// A loadable segment (`PT_LOAD`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `p_offset`.
    pub offset: FileOffset,
    /// `p_filesz`.
    pub file_size: u64,
    /// `p_vaddr`.
    pub address: ImageAddress,
    /// `p_memsz`.
    pub memory_size: u64,
    /// `p_flags` has `PF_X`.
    pub executable: bool,
}

/// The loadable segments of an image: how its file is laid out in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

/// Page sizes of the kernels that a profile may come from. The loader rounds segments to the page size of *that*
/// kernel, which the profile does not tell.
const PAGE_SIZES: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];

impl Segments {
    /// Collect the loadable segments; executable ones first.
    pub(super) fn new(headers: &[ProgramHeader]) -> Self {
        let mut segments: Vec<_> = headers
            .iter()
            .filter(|h| h.p_type == PT_LOAD)
            .map(|h| Segment {
                offset: FileOffset(h.p_offset),
                file_size: h.p_filesz,
                address: ImageAddress(h.p_vaddr),
                memory_size: h.p_memsz,
                executable: h.p_flags & PF_X != 0,
            })
            .collect();
        // Code is what gets looked up. Where segments overlap in the file (they may share a page), the executable one
        // is meant.
        segments.sort_by_key(|s| !s.executable);
        Self(segments)
    }

    /// The segments, executable ones first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.0.iter()
    }

    /// The image address behind a runtime address.
    ///
    /// The kernel maps file offset `map_offset` at `map_start`, and the linker placed file offset `p_offset` at
    /// `p_vaddr`, so
    ///
    /// ```text
    /// offset        = address − map_start + map_offset
    /// image address = offset − p_offset + p_vaddr
    /// ```
    ///
    /// with the segment that holds the offset. The familiar `address − base` is right only where p_offset equals
    /// p_vaddr for the text segment; lld and `-z separate-code` layouts break that.
    #[must_use]
    pub fn image_address(
        &self,
        address: RuntimeAddress,
        map_start: RuntimeAddress,
        map_offset: FileOffset,
    ) -> Option<ImageAddress> {
        let distance = address.0.checked_sub(map_start.0)?;
        if let Some(hollow) = self.hollow_text() {
            let image_address = (hollow.address.0 & !(PAGE_SIZES[0] - 1)).checked_add(distance)?;
            return hollow.holds_address(image_address).then_some(ImageAddress(image_address));
        }
        let offset = distance.checked_add(map_offset.0)?;
        let segment = self.0.iter().find(|s| s.holds_offset(offset))?;
        Some(ImageAddress((offset - segment.offset.0).checked_add(segment.address.0)?))
    }

    /// The text segment of a separate debug file whose maker emptied it (`objcopy --only-keep-debug`): its size in the
    /// file is 0 and its offset no longer that of the image. Addresses can still be told where there is only one such
    /// segment and the mapping is all of it, since the kernel maps whole pages:
    ///
    /// ```text
    /// image address = address − map_start + p_vaddr rounded down to a page
    /// ```
    fn hollow_text(&self) -> Option<&Segment> {
        let mut executable = self.0.iter().filter(|s| s.executable);
        let only = executable.next().filter(|s| s.file_size == 0 && s.memory_size > 0)?;
        executable.next().is_none().then_some(only)
    }

    /// The file offset of an image address.
    #[must_use]
    pub fn file_offset(&self, address: ImageAddress) -> Option<FileOffset> {
        let segment = self.0.iter().find(|s| {
            address.0.checked_sub(s.address.0).is_some_and(|distance| distance < s.file_size.min(s.memory_size))
        })?;
        segment.offset.0.checked_add(address.0 - segment.address.0).map(FileOffset)
    }

    /// Whether the kernel could have made this executable mapping from this file: some executable segment, rounded to
    /// pages, covers it.
    #[must_use]
    pub fn fits(&self, map_offset: FileOffset, map_size: u64) -> bool {
        if let Some(hollow) = self.hollow_text() {
            let page = PAGE_SIZES[0];
            let start = hollow.address.0 & !(page - 1);
            let end =
                hollow.address.0.checked_add(hollow.memory_size).and_then(|end| end.checked_next_multiple_of(page));
            return end.is_some_and(|end| end - start == map_size);
        }
        let segments = || self.0.iter().filter(|s| s.executable);
        segments().any(|s| PAGE_SIZES.iter().any(|&page| s.covers(map_offset, map_size, page)))
    }

    /// Whether these executable mappings are all that the kernel makes of this file: they reach from the first to the last
    /// page of each of its executable segments that they touch. (They may be torn apart, and something else may be mapped
    /// into the middle, as programs do that put their code into huge pages.)
    ///
    /// Another build of the same program has code of another size, and at best the same number of pages.
    #[must_use]
    pub fn fill(&self, mappings: &[(FileOffset, u64)]) -> bool {
        if self.hollow_text().is_some() {
            return mappings.iter().all(|&(offset, size)| self.fits(offset, size));
        }
        let by_segment = |page: u64| {
            let mut hulls: Vec<Option<(u64, u64)>> = vec![None; self.0.len()];
            for &(offset, size) in mappings {
                let at = self.0.iter().position(|s| s.executable && s.covers(offset, size, page))?;
                let (start, end) = hulls[at].unwrap_or((u64::MAX, 0));
                hulls[at] = Some((start.min(offset.0), end.max(offset.0 + size)));
            }
            Some(hulls)
        };
        let is_filled = |page: u64| {
            let hulls = by_segment(page)?;
            let parts = self.0.iter().zip(hulls).filter_map(|(s, hull)| Some((s.pages(page)?, hull?)));
            Some(parts.into_iter().all(|(pages, hull)| pages == hull))
        };
        PAGE_SIZES.iter().any(|&page| is_filled(page) == Some(true))
    }
}

impl Segment {
    /// First and last file offset of its pages.
    fn pages(&self, page: u64) -> Option<(u64, u64)> {
        let end = self.offset.0.checked_add(self.file_size)?;
        Some((self.offset.0 & !(page - 1), end.checked_next_multiple_of(page)?))
    }

    /// Whether its pages hold this mapping.
    fn covers(&self, map_offset: FileOffset, map_size: u64, page: u64) -> bool {
        let map_end = map_offset.0.checked_add(map_size);
        self.pages(page).zip(map_end).is_some_and(|((first, last), map_end)| {
            first <= map_offset.0 && map_end <= last && map_offset.0 < self.offset.0 + self.file_size
        })
    }

    fn holds_offset(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset.0).is_some_and(|distance| distance < self.file_size)
    }

    fn holds_address(&self, address: u64) -> bool {
        address.checked_sub(self.address.0).is_some_and(|distance| distance < self.memory_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, file_size: u64, address: u64, executable: bool) -> Segment {
        let (offset, address) = (FileOffset(offset), ImageAddress(address));
        Segment { offset, file_size, address, memory_size: file_size, executable }
    }

    #[test]
    fn runtime_to_image() {
        let gnu = vec![segment(0x1000, 0x5000, 0x1000, true), segment(0, 0x800, 0, false)];
        let lld = vec![segment(0x6c0, 0x5000, 0x16c0, true), segment(0, 0x6b4, 0, false)];
        let fixed = vec![segment(0, 0x9000, 0x40_0000, true)];
        for (label, segments, address, start, offset, expected) in [
            ("p_offset = p_vaddr", &gnu, 0x7f00_0000_1234, 0x7f00_0000_1000, 0x1000, Some(0x1234)),
            ("lld, p_vaddr − p_offset = 0x1000", &lld, 0x7f00_0000_1800, 0x7f00_0000_1000, 0, Some(0x1800)),
            ("lld, in the page shared with the header", &lld, 0x7f00_0000_1100, 0x7f00_0000_1000, 0, Some(0x100)),
            ("not position independent", &fixed, 0x40_1234, 0x40_0000, 0, Some(0x40_1234)),
            ("mapping split in two", &gnu, 0x7f00_0000_3234, 0x7f00_0000_3000, 0x3000, Some(0x3234)),
            ("beyond the file part", &gnu, 0x7f00_0000_6234, 0x7f00_0000_1000, 0x1000, None),
            ("below the mapping", &gnu, 0xfff, 0x1000, 0, None),
            ("offsets that overflow", &gnu, u64::MAX, 1, u64::MAX, None),
        ] {
            let got = Segments(segments.clone()).image_address(
                RuntimeAddress(address),
                RuntimeAddress(start),
                FileOffset(offset),
            );
            assert_eq!(got, expected.map(ImageAddress), "{label}");
        }
    }

    #[test]
    fn emptied_text_segment() {
        let hollow = Segment { file_size: 0, memory_size: 0x151, ..segment(0, 0, 0x1550, true) };
        let segments = Segments(vec![hollow, segment(0, 0x294, 0, false)]);
        let at =
            |address| segments.image_address(RuntimeAddress(address), RuntimeAddress(0x7f00_0000_1000), FileOffset(0));
        assert_eq!(at(0x7f00_0000_1560), Some(ImageAddress(0x1560)));
        assert_eq!(at(0x7f00_0000_1540), None, "before the segment");
        assert_eq!(at(0x7f00_0000_1700), None, "behind it");
        assert!(segments.fits(FileOffset(0), 0x1000));
        assert!(!segments.fits(FileOffset(0), 0x2000));
    }

    #[test]
    fn image_to_file() {
        let segments = Segments(vec![segment(0x6c0, 0x5000, 0x16c0, true), segment(0, 0x6b4, 0, false)]);
        assert_eq!(segments.file_offset(ImageAddress(0x16c0)), Some(FileOffset(0x6c0)));
        assert_eq!(segments.file_offset(ImageAddress(0x100)), Some(FileOffset(0x100)));
        assert_eq!(segments.file_offset(ImageAddress(0x66c0)), None);
    }

    #[test]
    fn mappings_fill_the_segment_or_not() {
        let segments = Segments(vec![segment(0x16c0, 0x5000, 0x26c0, true), segment(0x8000, 0x800, 0x9000, true)]);
        for (label, mappings, expected) in [
            ("whole segment", vec![(0x1000, 0x6000)], true),
            ("both", vec![(0x1000, 0x6000), (0x8000, 0x1000)], true),
            ("torn in two", vec![(0x1000, 0x2000), (0x3000, 0x4000)], true),
            ("its middle replaced", vec![(0x1000, 0x1000), (0x6000, 0x1000)], true),
            ("64 KiB pages", vec![(0, 0x1_0000)], true),
            ("of a smaller build", vec![(0x1000, 0x5000)], false),
            ("of a larger build", vec![(0x1000, 0x7000)], false),
            ("one is and one is not", vec![(0x1000, 0x6000), (0x2_0000, 0x1000)], false),
        ] {
            let mappings: Vec<_> = mappings.into_iter().map(|(offset, size)| (FileOffset(offset), size)).collect();
            assert_eq!(segments.fill(&mappings), expected, "{label}");
        }
    }

    #[test]
    fn mapping_fits_or_not() {
        let segments = Segments(vec![segment(0x16c0, 0x5000, 0x26c0, true), segment(0x8000, 0x1000, 0x9000, false)]);
        for (label, offset, size, expected) in [
            ("whole segment", 0x1000, 0x6000, true),
            ("second half of a split one", 0x3000, 0x4000, true),
            ("64 KiB pages", 0, 0x1_0000, true),
            ("larger than the segment", 0x1000, 0x1_0000, false),
            ("other offset", 0x2_0000, 0x1000, false),
            ("the data segment", 0x2_8000, 0x1000, false),
            ("overflow", u64::MAX, 2, false),
        ] {
            assert_eq!(segments.fits(FileOffset(offset), size), expected, "{label}");
        }
    }
}
