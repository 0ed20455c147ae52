//! The table of loaded images: built on an agent thread, read by the hook.

use super::golang::{self, GoSections, GoText};
use super::loader::{Generation, LoadedImage, StartupImages, StayingImage, for_each_image, loader_generation};
use super::storage::FixedStorage;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder, UnwinderNative};
use std::fs::File;
use std::ops::{ControlFlow, Deref, Range};
use std::os::unix::fs::FileExt;

pub(crate) type HookUnwinder = UnwinderNative<Bytes, FixedStorage>;

/// Everything the hook may ask about code addresses. Immutable once published.
pub(crate) struct ModuleTable {
    pub(super) unwinder: HookUnwinder,
    /// Executable ranges of all images, sorted.
    code: Vec<Range<u64>>,
    /// Executable ranges of the agent itself: jemalloc's frames and the hook's, which are not recorded.
    own: Range<u64>,
    go: Vec<GoText>,
    /// [`loader_generation`] at the time of the reading.
    pub(crate) generation: Generation,
}

/// Unwind data of an image.
///
/// An image that was there when the process started stays until it ends, so its tables are used where they are mapped.
/// One that came by `dlopen` can be unmapped while the hook reads, so its tables are copied.
pub(crate) enum Bytes {
    Mapped(&'static [u8]),
    Copied(Box<[u8]>),
}

impl Default for Bytes {
    fn default() -> Self {
        Self::Mapped(&[])
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

impl ModuleTable {
    /// Reads the images that are loaded now. Go's tables are taken over from the table `known` before.
    pub(crate) fn read(known: Option<&Self>, startup_images: &StartupImages) -> Self {
        // Before the images: what is loaded meanwhile makes the table stale, not unnoticed.
        let generation = loader_generation();
        let mut images: Vec<Image> = Vec::new();
        // One that makes the reader panic is left out; what lies in it ends its stacks.
        for_each_image(|image| {
            images.push(Image::read(image, startup_images));
            ControlFlow::Continue(())
        });

        let own_address = (&raw const super::COUNTERS) as u64;
        let mut unwinder = HookUnwinder::default();
        let mut code = Vec::new();
        let mut own = 0..0;
        let mut go = Vec::new();
        for image in images {
            if image.span.contains(&own_address) {
                let (starts, ends) = (image.code.iter().map(|it| it.start), image.code.iter().map(|it| it.end));
                own = starts.min().unwrap_or(0)..ends.max().unwrap_or(0);
            }
            if let Some(text) = known.and_then(|known| known.go_in(&image.span)) {
                go.push(text.clone());
            } else {
                go.extend(image.go_text());
            }
            code.extend(image.code.iter().cloned());
            unwinder.add_module(image.into_module());
        }
        code.sort_by_key(|range| range.start);
        Self { unwinder, code, own, go, generation }
    }

    fn go_in(&self, span: &Range<u64>) -> Option<&GoText> {
        self.go.iter().find(|go| span.contains(&go.text.start))
    }

    /// The executable part of a known image that an address is in.
    pub(super) fn code_around(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.code.partition_point(|range| range.start <= address);
        self.code.get(after.checked_sub(1)?).filter(|range| address < range.end)
    }

    /// A table of no images, told from others by a number.
    #[cfg(test)]
    pub(super) fn of_generation(loaded: u64) -> Self {
        let generation = Generation { loaded, unloaded: 0 };
        Self {
            unwinder: HookUnwinder::default(),
            code: std::iter::once(loaded..loaded).collect(),
            own: 0..0,
            go: Vec::new(),
            generation,
        }
    }

    /// The number that [`Self::of_generation`] was given.
    #[cfg(test)]
    pub(super) fn number(&self) -> u64 {
        assert_eq!(self.code[0].start, self.generation.loaded, "the table is gone");
        self.generation.loaded
    }

    #[cfg(test)]
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.code_around(address).is_some()
    }

    /// Whether an address is in the agent.
    #[inline]
    pub(super) fn is_own(&self, address: u64) -> bool {
        self.own.contains(&address)
    }

    /// The Go text that a return address lies in.
    #[inline]
    pub(super) fn go_text(&self, return_address: u64) -> Option<&GoText> {
        self.go.iter().find(|go| go.contains(return_address))
    }
}

/// What the table needs of one loaded image.
struct Image {
    path: String,
    bias: u64,
    span: Range<u64>,
    code: Vec<Range<u64>>,
    eh_frame_hdr: Option<(u64, Bytes)>,
    eh_frame: Option<(u64, Bytes)>,
    staying: Option<StayingImage>,
}

impl Image {
    fn read(image: &LoadedImage, startup_images: &StartupImages) -> Self {
        let staying = image.staying(startup_images);
        let code = image.headers(libc::PT_LOAD).filter(|header| header.p_flags & libc::PF_X != 0);
        let code = code.map(|header| image.mapped(header)).collect();
        let bytes = |range: Range<u64>| Some((range.start, table_bytes(image, staying.as_ref(), &range)?));
        let segment_at = |address| image.headers(libc::PT_LOAD).find(|it| image.mapped(it).contains(&address));
        let eh_frame_hdr = image.headers(libc::PT_GNU_EH_FRAME).next().and_then(|header| {
            let range = image.mapped(header);
            // The table's own size is not in the program headers; it ends at the latest where its segment does.
            let segment = image.mapped(segment_at(range.start)?);
            bytes(range.start..range.end.min(segment.end))
        });
        let eh_frame = eh_frame_hdr.as_ref().and_then(|(at, table)| {
            let start = eh_frame_address(*at, table)?;
            // The part of the segment that comes from the file; what follows is zeros.
            let segment = segment_at(start)?;
            bytes(start..image.bias().wrapping_add(segment.p_vaddr).saturating_add(segment.p_filesz))
        });
        Self {
            // The executable is opened by /proc/self/exe: its path can name another file by now.
            path: image.path().unwrap_or_else(|| "/proc/self/exe".into()),
            bias: image.bias(),
            span: image.span(),
            code,
            eh_frame_hdr,
            eh_frame,
            staying,
        }
    }

    /// Go's text in this image, if it is a Go program or library, and stays: of others nothing could be read later.
    fn go_text(&self) -> Option<GoText> {
        let staying = self.staying.as_ref()?;
        if !self.path.starts_with('/') {
            return None; // the vdso
        }
        let file = File::open(&self.path).ok()?;
        let read = |offset: u64, length: usize| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
        };
        let sections: GoSections = golang::sections(self.bias, read)?;
        // The file could have been replaced since it was loaded: nothing outside the image is looked at.
        golang::find(&sections, |range| staying.bytes(range))
    }

    fn into_module(self) -> Module<Bytes> {
        // framehop wants link-time addresses; with a base of zero those are relative to the bias.
        let link_time = |at: u64, bytes: &Bytes| {
            let start = at.wrapping_sub(self.bias);
            start..start.wrapping_add(bytes.len() as u64)
        };
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            eh_frame_hdr_svma: self.eh_frame_hdr.as_ref().map(|(at, bytes)| link_time(*at, bytes)),
            eh_frame_svma: self.eh_frame.as_ref().map(|(at, bytes)| link_time(*at, bytes)),
            eh_frame_hdr: self.eh_frame_hdr.map(|(_, bytes)| bytes),
            eh_frame: self.eh_frame.map(|(_, bytes)| bytes),
            ..Default::default()
        };
        Module::new(self.path, self.span, self.bias, info)
    }
}

fn table_bytes(image: &LoadedImage, staying: Option<&StayingImage>, range: &Range<u64>) -> Option<Bytes> {
    /// More than any real table; a damaged header must not make the agent copy gigabytes.
    const LIMIT: u64 = 1 << 30;
    range.end.checked_sub(range.start).filter(|&length| length > 0 && length < LIMIT)?;
    Some(match staying {
        Some(staying) => Bytes::Mapped(staying.bytes(range)?),
        None => Bytes::Copied(image.bytes(range)?.into()),
    })
}

/// Address of `.eh_frame`, from the header in front of the search table.
///
/// ```text
/// 0  u8 version 1   1  u8 encoding of eh_frame_ptr   2  u8 of the count   3  u8 of the table   4  eh_frame_ptr
/// ```
///
/// Linkers write 0x1b: signed, 4 bytes, relative to the field.
fn eh_frame_address(at: u64, hdr: &[u8]) -> Option<u64> {
    const PCREL_SDATA4: u8 = 0x1b;
    if hdr.first() != Some(&1) || hdr.get(1) != Some(&PCREL_SDATA4) {
        return None;
    }
    let relative = i32::from_le_bytes(hdr.get(4..8)?.try_into().ok()?);
    Some(at.wrapping_add(4).wrapping_add_signed(i64::from(relative)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_code_that_is_known() {
        let startup = StartupImages::read();
        let table = ModuleTable::read(None, &startup);
        let here = this_process_has_code_that_is_known as *const () as u64;
        assert!(table.is_code(here));
        assert!(table.is_own(here));
        assert!(table.is_code(libc::getpid as *const () as u64));
        assert!(!table.is_own(libc::getpid as *const () as u64));
        for nowhere in [0, 1, u64::MAX] {
            assert!(!table.is_code(nowhere));
        }
        assert_eq!(table.generation, loader_generation());
    }

    #[test]
    fn eh_frame_pointer_is_relative_to_its_field() {
        assert_eq!(eh_frame_address(0x1000, &[1, 0x1b, 3, 0x3b, 0xfc, 0xff, 0xff, 0xff]), Some(0x1000));
        assert_eq!(eh_frame_address(0x1000, &[1, 0x1b, 3, 0x3b, 0xfc]), None);
        assert_eq!(eh_frame_address(0x1000, &[2, 0x1b, 3, 0x3b, 0, 0, 0, 0]), None);
    }
}
