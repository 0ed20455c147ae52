//! The images that the loader has, and their memory. Asked by the agent's threads only: the loader has a lock.

use crate::boundary::contain;
use std::ffi::{CStr, c_int, c_void};
use std::ops::{ControlFlow, Range};

/// An image that the loader has, and keeps mapped while this can be looked at.
pub(crate) struct LoadedImage<'a> {
    info: &'a libc::dl_phdr_info,
    headers: &'a [libc::Elf64_Phdr],
}

/// Shows the images one by one, until told to stop. One that makes `look` panic counts as seen.
pub(crate) fn for_each_image<F>(mut look: F)
where
    F: FnMut(&LoadedImage) -> ControlFlow<()>,
{
    unsafe extern "C" fn show<F>(info: *mut libc::dl_phdr_info, _: usize, look: *mut c_void) -> c_int
    where
        F: FnMut(&LoadedImage) -> ControlFlow<()>,
    {
        let shown = contain(|| {
            // SAFETY: the loader passes the description of an image that it keeps mapped until this returns; program
            // headers are a part of that. `look` is the closure below, which nobody else has meanwhile.
            let (image, look) = unsafe {
                let info = &*info;
                if info.dlpi_phdr.is_null() {
                    return ControlFlow::Continue(());
                }
                let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
                (LoadedImage { info, headers }, &mut *look.cast::<F>())
            };
            look(&image)
        });
        shown.is_some_and(|flow| flow.is_break()).into()
    }
    // SAFETY: the callback fulfils its contract and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(show::<F>), (&raw mut look).cast()) };
}

impl<'a> LoadedImage<'a> {
    /// What the loader added to link-time addresses.
    pub(crate) fn bias(&self) -> u64 {
        self.info.dlpi_addr
    }

    /// Path; `None` for the executable, whose name the loader leaves empty.
    pub(crate) fn path(&self) -> Option<String> {
        // SAFETY: null, or a NUL-terminated string of the loader.
        let name = (!self.info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(self.info.dlpi_name) })?;
        (!name.is_empty()).then(|| name.to_string_lossy().into_owned())
    }

    /// Program headers of one type.
    pub(crate) fn headers(&self, kind: u32) -> impl Iterator<Item = &'a libc::Elf64_Phdr> + use<'a> {
        self.headers.iter().filter(move |header| header.p_type == kind)
    }

    /// Where in this process a header's part of the image is.
    pub(crate) fn mapped(&self, header: &libc::Elf64_Phdr) -> Range<u64> {
        let start = self.bias().wrapping_add(header.p_vaddr);
        start..start.saturating_add(header.p_memsz)
    }

    /// From the first segment to the last.
    pub(crate) fn span(&self) -> Range<u64> {
        let segments = self.headers(libc::PT_LOAD).map(|header| self.mapped(header));
        segments.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
    }

    /// The memory in a range; `None` when it is not wholly inside a readable segment.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> Option<&'a [u8]> {
        // SAFETY: the segment is mapped as long as the image is.
        inside(&self.readable(), range).then(|| unsafe { slice(range) })
    }

    fn readable(&self) -> Vec<Range<u64>> {
        let readable = self.headers(libc::PT_LOAD).filter(|header| header.p_flags & libc::PF_R != 0);
        readable.map(|header| self.mapped(header)).collect()
    }

    /// The same image for later, if it is never unloaded: because the process started with it, or because it is marked so,
    /// as Go's shared libraries are.
    pub(crate) fn staying(&self, startup: &StartupImages) -> Option<StayingImage> {
        let stays = startup.0.contains(&self.number()) || self.is_nodelete();
        stays.then(|| StayingImage { readable: self.readable() })
    }

    /// The dynamic section:
    ///
    /// ```text
    /// entries of 16 bytes: i64 tag, u64 value; the tag 0 ends the list
    /// ```
    fn is_nodelete(&self) -> bool {
        const DT_FLAGS_1: u64 = 0x6fff_fffb;
        const DF_1_NODELETE: u64 = 8;
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        self.headers(libc::PT_DYNAMIC).filter_map(|header| self.bytes(&self.mapped(header))).any(|dynamic| {
            let entries = dynamic.chunks_exact(16).map(|entry| (word(&entry[..8]), word(&entry[8..])));
            entries.take_while(|&(tag, _)| tag != 0).any(|(tag, value)| tag == DT_FLAGS_1 && value & DF_1_NODELETE != 0)
        })
    }

    /// Tells it from the others that are loaded now.
    fn number(&self) -> u64 {
        self.info.dlpi_phdr as u64
    }
}

/// Images that the process started with; they are never unloaded.
pub(crate) struct StartupImages(Vec<u64>);

impl StartupImages {
    /// Lists them. Must run before `main`, when nothing can have been loaded by `dlopen`.
    pub(crate) fn read() -> Self {
        let mut list = Vec::new();
        for_each_image(|image| {
            list.push(image.number());
            ControlFlow::Continue(())
        });
        Self(list)
    }
}

/// An image that is mapped for ever.
pub(crate) struct StayingImage {
    readable: Vec<Range<u64>>,
}

impl StayingImage {
    /// The memory in a range; `None` when it is not wholly inside a readable segment.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> Option<&'static [u8]> {
        // SAFETY: the segment is mapped until the process ends.
        inside(&self.readable, range).then(|| unsafe { slice(range) })
    }
}

fn inside(segments: &[Range<u64>], range: &Range<u64>) -> bool {
    range.start <= range.end && segments.iter().any(|it| it.start <= range.start && range.end <= it.end)
}

/// # Safety
/// The range is mapped for `'a`.
unsafe fn slice<'a>(range: &Range<u64>) -> &'a [u8] {
    let length = (range.end - range.start) as usize;
    // SAFETY: by the contract. Not guaranteed: that writable data does not change while it is read. What is looked for there
    // is constant, and found by comparing.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, length) }
}

/// Counts of images ever loaded and unloaded: they differ when what was read of them is stale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    pub(super) loaded: u64,
    pub(super) unloaded: u64,
}

/// The loader's present [`Generation`].
pub(crate) fn loader_generation() -> Generation {
    let mut generation = Generation::default();
    for_each_image(|image| {
        generation = Generation { loaded: image.info.dlpi_adds, unloaded: image.info.dlpi_subs };
        ControlFlow::Break(())
    });
    generation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_within_readable_segments_only() {
        let mut seen = 0;
        let startup = StartupImages::read();
        for_each_image(|image| {
            let staying = image.staying(&startup).expect("loaded before this began");
            for header in image.headers(libc::PT_LOAD) {
                let range = image.mapped(header);
                let is_readable = header.p_flags & libc::PF_R != 0;
                assert_eq!(image.bytes(&range).is_some(), is_readable);
                assert_eq!(staying.bytes(&range).map(<[u8]>::len), is_readable.then_some(header.p_memsz as usize));
                assert_eq!(image.bytes(&(range.start..range.end + 1)), None);
                assert_eq!(image.bytes(&(range.end..range.start)), None);
                seen += 1;
            }
            ControlFlow::Continue(())
        });
        assert!(seen > 4, "{seen}");
    }

    #[test]
    fn one_image_that_panics_does_not_hide_the_others() {
        let (mut all, mut others) = (0, 0);
        for_each_image(|_| {
            all += 1;
            ControlFlow::Continue(())
        });
        let mut first = true;
        for_each_image(|_| {
            assert!(!std::mem::take(&mut first), "the first one");
            others += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(others, all - 1);
    }
}
