//! The table of loaded images: built on an agent thread, read by the hook.

use super::golang::{self, GoSections, GoText};
use super::storage::FixedStorage;
use crate::boundary::contain;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder, UnwinderNative};
use offheap_wire as wire;
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::ops::{Deref, Range};
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

/// Counts of objects ever loaded and unloaded: differs when the table is stale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    loaded: u64,
    unloaded: u64,
}

/// The loader's present [`Generation`].
pub(crate) fn loader_generation() -> Generation {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid info, and `out` is the `Generation` below.
        unsafe {
            *out.cast::<Generation>() = Generation { loaded: (*info).dlpi_adds, unloaded: (*info).dlpi_subs };
        }
        1
    }
    let mut generation = Generation::default();
    // SAFETY: the callback fulfils its contract and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut generation).cast()) };
    generation
}

impl ModuleTable {
    /// Reads the images that are loaded now. Go's tables are taken over from the table `known` before.
    pub(crate) fn read(known: Option<&Self>, startup_images: &StartupImages) -> Self {
        // Before the images: what is loaded meanwhile makes the table stale, not unnoticed.
        let generation = loader_generation();
        let mut images: Vec<Image> = Vec::new();
        let mut context = Collect { images: &mut images, startup_images };
        // SAFETY: the callback fulfils its contract and does not unwind. The loader keeps every image mapped meanwhile.
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut context).cast()) };

        let own_address = (&raw const super::COUNTERS) as u64;
        let mut unwinder = HookUnwinder::default();
        let mut code = Vec::new();
        let mut own = 0..0;
        let mut go = Vec::new();
        for image in images {
            if image.span.contains(&own_address) {
                own = bounds(&image.code);
            }
            if let Some(text) = known.and_then(|known| known.go_in(&image.span)) {
                go.push(text.clone());
            } else if image.stays {
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

    /// Whether an address is in the executable part of a known image.
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

fn bounds(ranges: &[Range<u64>]) -> Range<u64> {
    let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
    start..ranges.iter().map(|range| range.end).max().unwrap_or(0)
}

/// Addresses of the images that the process started with; they are never unloaded.
pub(crate) struct StartupImages(Vec<u64>);

impl StartupImages {
    /// Lists them. Must run before `main`, when nothing can have been loaded by `dlopen`.
    pub(crate) fn read() -> Self {
        unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
            let _ = contain(|| {
                // SAFETY: the loader passes a valid info, and `out` is the vector below.
                unsafe { (*out.cast::<Vec<u64>>()).push((*info).dlpi_phdr as u64) };
            });
            0
        }
        let mut list: Vec<u64> = Vec::new();
        // SAFETY: the callback fulfils its contract and does not unwind.
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut list).cast()) };
        Self(list)
    }
}

/// Bytes of thread-local storage that each new thread gets at least: those of the images that are loaded.
pub(crate) fn thread_local_bytes() -> usize {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid info of an image that it holds mapped, and `out` is the number below.
        unsafe {
            for header in program_headers(&*info).unwrap_or_default() {
                if header.p_type == libc::PT_TLS {
                    let bytes = (header.p_memsz as usize).saturating_add(header.p_align as usize);
                    *out.cast::<usize>() = (*out.cast::<usize>()).saturating_add(bytes);
                }
            }
        }
        0
    }
    let mut bytes = 0;
    // SAFETY: the callback fulfils its contract and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut bytes).cast::<c_void>()) };
    bytes
}

/// The loaded images, for whoever reads addresses of this process elsewhere.
pub(crate) fn loaded_modules() -> Vec<wire::Module> {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        let _ = contain(|| {
            // SAFETY: the loader passes a valid info of an image that it holds mapped, and `out` is the vector below.
            unsafe {
                if let Some(module) = describe(&*info) {
                    (*out.cast::<Vec<wire::Module>>()).push(module);
                }
            }
        });
        0
    }
    let mut list: Vec<wire::Module> = Vec::new();
    // SAFETY: the callback fulfils its contract and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut list).cast()) };
    list
}

/// # Safety
/// As for [`Image::read`].
unsafe fn describe(info: &libc::dl_phdr_info) -> Option<wire::Module> {
    // SAFETY: by the contract.
    let headers = unsafe { program_headers(info) }?;
    let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind).map(|header| mapped(info, header));
    let span = bounds(&of_type(libc::PT_LOAD).collect::<Vec<_>>());
    // SAFETY: notes are in a mapped segment.
    let build_id = of_type(libc::PT_NOTE).find_map(|notes| unsafe { build_id(&notes) });
    Some(wire::Module { path: path_of(info), start: span.start, end: span.end, build_id: build_id.unwrap_or_default() })
}

/// The GNU build id among an image's notes.
///
/// ```text
/// u32 name length   u32 description length   u32 type   name, padded to 4   description, padded to 4
/// 4                 20                       3          "GNU\0"             the id
/// ```
///
/// # Safety
/// The range is mapped.
unsafe fn build_id(notes: &Range<u64>) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let length = usize::try_from(notes.end.checked_sub(notes.start)?).ok()?;
    // SAFETY: by the contract.
    let mut rest: &[u8] = unsafe { std::slice::from_raw_parts(notes.start as *const u8, length) };
    while let Some((head, tail)) = rest.split_at_checked(12) {
        let word = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let (name_bytes, id_bytes) = (word(0) as usize, word(4) as usize);
        let name = tail.get(..name_bytes)?;
        let at = name_bytes.next_multiple_of(4);
        let id = tail.get(at..at.checked_add(id_bytes)?)?;
        if word(8) == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        rest = tail.get(at + id_bytes.next_multiple_of(4)..)?;
    }
    None
}

/// # Safety
/// `info` comes from `dl_iterate_phdr`, during its callback.
unsafe fn program_headers(info: &libc::dl_phdr_info) -> Option<&[libc::Elf64_Phdr]> {
    // SAFETY: the loader's own description of the image.
    (!info.dlpi_phdr.is_null())
        .then(|| unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) })
}

fn mapped(info: &libc::dl_phdr_info, header: &libc::Elf64_Phdr) -> Range<u64> {
    let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
    start..start.saturating_add(header.p_memsz)
}

/// Path of an image; the loader leaves the executable's empty.
fn path_of(info: &libc::dl_phdr_info) -> String {
    // SAFETY: null, or a NUL-terminated string of the loader.
    let name = (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy());
    match name {
        Some(name) if !name.is_empty() => name.into_owned(),
        _ => std::fs::read_link("/proc/self/exe").map_or_else(|_| String::new(), |exe| exe.to_string_lossy().into()),
    }
}

struct Collect<'a> {
    images: &'a mut Vec<Image>,
    startup_images: &'a StartupImages,
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, context: *mut c_void) -> c_int {
    // An image that makes the reader panic is left out; what lies in it ends its stacks.
    let _ = contain(|| {
        // SAFETY: `context` is the `Collect` of the caller, and the loader passes a valid info.
        let (context, info) = unsafe { (&mut *context.cast::<Collect>(), &*info) };
        let stays = context.startup_images.0.contains(&(info.dlpi_phdr as u64));
        // SAFETY: the loader holds the image mapped during the callback.
        if let Some(image) = unsafe { Image::read(info, stays) } {
            context.images.push(image);
        }
    });
    0
}

/// One loaded image.
struct Image {
    path: String,
    bias: u64,
    span: Range<u64>,
    code: Vec<Range<u64>>,
    eh_frame_hdr: Option<(u64, Bytes)>,
    eh_frame: Option<(u64, Bytes)>,
    stays: bool,
}

impl Image {
    /// # Safety
    /// `info` comes from `dl_iterate_phdr`, during its callback.
    unsafe fn read(info: &libc::dl_phdr_info, stays: bool) -> Option<Self> {
        // SAFETY: by the contract.
        let headers = unsafe { program_headers(info) }?;
        let bias = info.dlpi_addr;
        let range = |header: &libc::Elf64_Phdr| mapped(info, header);
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let span = bounds(&loads.clone().map(range).collect::<Vec<_>>());
        // SAFETY: the dynamic section of an image that the loader holds mapped.
        let stays =
            stays || headers.iter().filter(|h| h.p_type == libc::PT_DYNAMIC).any(|h| unsafe { nodelete(range(h)) });
        let code = loads.clone().filter(|header| header.p_flags & libc::PF_X != 0).map(range).collect::<Vec<_>>();

        let mut image = Self {
            // The executable is opened by /proc/self/exe: its path can name another file by now.
            path: match path_of(info) {
                // SAFETY: the loader's string.
                _ if info.dlpi_name.is_null() || unsafe { *info.dlpi_name } == 0 => "/proc/self/exe".into(),
                path => path,
            },
            bias,
            span,
            code,
            eh_frame_hdr: None,
            eh_frame: None,
            stays,
        };
        if let Some(header) = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME) {
            let hdr = range(header);
            // The table's own size is not in the program headers; it ends at the latest where its segment does.
            let segment = loads.clone().map(range).find(|segment| segment.contains(&hdr.start))?;
            // SAFETY: a range inside a PT_LOAD segment of a mapped image, checked by `contains` above and here.
            image.eh_frame_hdr = unsafe { bytes(hdr.start..hdr.end.min(segment.end), stays) };
            if let Some(start) = image.eh_frame_hdr.as_ref().and_then(|(at, hdr)| eh_frame_address(*at, hdr))
                && let Some(segment) = loads.clone().find(|header| range(header).contains(&start))
            {
                // The part of the segment that comes from the file; what follows is zeros.
                let end = bias.wrapping_add(segment.p_vaddr).saturating_add(segment.p_filesz);
                // SAFETY: as above.
                image.eh_frame = unsafe { bytes(start..end, stays) };
            }
        }
        Some(image)
    }

    /// Go's text in this image, if it is a Go program or library.
    fn go_text(&self) -> Option<GoText> {
        if !self.path.starts_with('/') {
            return None; // the vdso
        }
        let file = File::open(&self.path).ok()?;
        let read = |offset: u64, length: usize| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
        };
        let mut sections: GoSections = golang::sections(self.bias, read)?;
        // The file could have been replaced since it was loaded: nothing outside the image is looked at.
        let inside = |range: &Range<u64>| self.span.start <= range.start && range.end <= self.span.end;
        if !inside(&sections.pclntab) {
            return None;
        }
        sections.data.retain(inside);
        // SAFETY: the ranges are inside an image that stays mapped (`go_text` is only asked of those).
        unsafe { golang::find(&sections) }
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

/// Whether an image is marked as never to be unloaded, as Go's shared libraries are.
///
/// ```text
/// entries of 16 bytes: i64 tag, u64 value; the tag 0 ends the list
/// ```
///
/// # Safety
/// The range is a mapped dynamic section.
unsafe fn nodelete(range: Range<u64>) -> bool {
    const DT_FLAGS_1: u64 = 0x6fff_fffb;
    const DF_1_NODELETE: u64 = 8;
    let entries = (range.end.saturating_sub(range.start) / 16) as usize;
    // SAFETY: by the contract.
    let entries = unsafe { std::slice::from_raw_parts(range.start as *const [u64; 2], entries) };
    entries.iter().take_while(|[tag, _]| *tag != 0).any(|&[tag, value]| tag == DT_FLAGS_1 && value & DF_1_NODELETE != 0)
}

/// # Safety
/// The range is mapped, for ever when `stays`, else during the call.
unsafe fn bytes(range: Range<u64>, stays: bool) -> Option<(u64, Bytes)> {
    /// More than any real table; a damaged header must not make the agent copy gigabytes.
    const LIMIT: u64 = 1 << 30;
    let length = range.end.checked_sub(range.start).filter(|&length| length > 0 && length < LIMIT)?;
    // SAFETY: by the contract; `'static` is only kept when the image stays.
    let mapped: &'static [u8] = unsafe { std::slice::from_raw_parts(range.start as *const u8, length as usize) };
    Some((range.start, if stays { Bytes::Mapped(mapped) } else { Bytes::Copied(mapped.into()) }))
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
