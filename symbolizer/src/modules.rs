//! Which file stands behind a mapping.
//!
//! A name from the wrong file is worse than none. A file is accepted when the user names it, when it is read through the
//! live process itself, or when it is shown to be the one that was mapped: by its build id, or by device, inode and a
//! segment layout that fits the mappings. What was looked at and why it was passed over is kept for the report.

use crate::address::{FileOffset, RuntimeAddress};
use crate::image::{Elf, FileIdentity, ImageFile, OpenError, Segment};
use crate::profile::{Mapping, Profile};
use crate::recorded_calls::RecordedCalls;
use crate::rooted;
use crate::symbol_dirs::{KeptFile, SymbolDirs, build_id_path};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where images may be looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchPlaces<'a> {
    /// A live process that has the mappings.
    pub pid: Option<u32>,
    /// The main executable, named by the user.
    pub binary: Option<&'a Path>,
    /// Directories named by the user.
    pub symbols: Option<&'a SymbolDirs>,
    /// Root under which recorded paths are looked up, named by the user.
    pub sysroot: Option<&'a Path>,
    /// When the mappings were recorded.
    pub recorded_at: Option<SystemTime>,
}

/// A file as the profile speaks of it: its mappings and what was recorded about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Path as recorded.
    pub path: String,
    /// Build id as recorded; empty when unknown.
    pub build_id: String,
    /// Device and inode as recorded.
    pub identity: Option<FileIdentity>,
    /// Indexes of its mappings in the profile.
    pub mappings: Vec<usize>,
    extents: Vec<Extent>,
    calls: RecordedCalls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    start: RuntimeAddress,
    end: RuntimeAddress,
    offset: FileOffset,
}

/// Where a candidate was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// `--binary`.
    Binary,
    /// Under a `--symbols` directory.
    Symbols,
    /// Under `--sysroot`.
    Sysroot,
    /// `/proc/PID/map_files`: the mapped file itself.
    MapFiles,
    /// `/proc/PID/root`: the path as the process sees it.
    ProcRoot,
    /// `/proc/PID/exe`.
    ProcExe,
    /// The path as recorded, on this machine.
    Recorded,
    /// A build-id directory, `/usr/lib/debug/.build-id`.
    BuildIdDir,
    /// The name that the image gives its debug file (`.gnu_debuglink`).
    DebugLink,
    /// The file that the debug information refers to (`.gnu_debugaltlink`).
    AltLink,
    /// Packed split units beside the image.
    Package,
    /// Split units where the debug information says they are.
    SplitUnit,
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// This is the file.
    Accepted,
    /// There is no such file.
    Missing,
    /// It could not be read.
    Unreadable(String),
    /// It is not a usable ELF image.
    NotAnImage(String),
    /// Its build id is this one, another than the recorded one.
    BuildIdDiffers(String),
    /// No executable segment fits the recorded mappings.
    LayoutDiffers,
    /// Too few of the recorded calls are calls in it.
    CallsDiffer {
        /// Those that are.
        found: usize,
        /// Those that were looked at.
        of: usize,
    },
    /// Neither build id nor device and inode show that it is the same file.
    NotShownToBeTheSame,
    /// Several files of this place fit, and nothing tells which it is.
    Ambiguous,
    /// It was written after the profile was recorded.
    WrittenLater,
    /// It is not the debug file that the image means: its CRC differs.
    CrcDiffers,
    /// It has neither debug information nor symbols.
    NothingToAdd,
}

/// A file that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its path.
    pub path: PathBuf,
    /// Why it was looked at.
    pub place: Place,
    /// What became of it.
    pub verdict: Verdict,
}

/// Outcome of a search.
#[derive(Debug, Default)]
pub struct Search {
    /// The accepted file.
    pub file: Option<ImageFile>,
    /// What was looked at, in order; the accepted file last.
    pub candidates: Vec<Candidate>,
}

/// Group the mappings of a profile by the file they map. Pseudo-files and anonymous memory are left out.
#[must_use]
pub fn modules(profile: &Profile) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    for (index, mapping) in profile.mappings.iter().enumerate().filter(|(_, m)| !is_pseudo_file(&m.path)) {
        let extent = Extent { start: mapping.start, end: mapping.end, offset: mapping.offset };
        let new = Module::of(mapping);
        // Mappings of one file are neighbours, so the search from the end is short.
        match modules.iter_mut().rev().find(|m| m.is_same_file(&new)) {
            Some(module) => {
                module.mappings.push(index);
                module.extents.push(extent);
            }
            None => modules.push(Module { mappings: vec![index], extents: vec![extent], ..new }),
        }
    }
    add_calls(profile, &mut modules);
    modules
}

/// Device and inode come from map lines, beside which all addresses are of calls; other writers of profiles have other
/// ideas of what a location's address is.
fn add_calls(profile: &Profile, modules: &mut [Module]) {
    let mut of_mapping = vec![None; profile.mappings.len()];
    for (index, module) in modules.iter().enumerate().filter(|(_, module)| module.identity.is_some()) {
        module.mappings.iter().for_each(|&mapping| of_mapping[mapping] = Some(index));
    }
    for location in profile.locations.iter().filter(|location| location.lines.is_empty()) {
        let Some(id) = location.mapping else { continue };
        let Some(module) = of_mapping.get(id.0 as usize).copied().flatten() else { continue };
        let mapping = profile.mapping(id);
        modules[module].calls.add(location.address, mapping.start, mapping.offset);
    }
}

/// The executable mappings of a program that is always loaded at the addresses it was linked for, for dumps that lack
/// their map section.
///
/// # Errors
/// Why the file tells no addresses, in words that go after its name.
pub fn fixed_mappings(path: &Path) -> Result<Vec<Mapping>, String> {
    let file = ImageFile::open(path).map_err(|error| error.to_string())?;
    let elf = Elf::parse(file.bytes()).map_err(|error| error.to_string())?;
    if elf.is_position_independent() {
        return Err("position-independent, so the dump must tell where it was loaded: add --maps".into());
    }
    let path: Arc<str> = path.to_string_lossy().into();
    // As the kernel maps it, in whole pages.
    const PAGE: u64 = 4096;
    let mapping = |segment: &Segment| {
        let end = segment.address.0.checked_add(segment.file_size)?.checked_next_multiple_of(PAGE)?;
        Some(Mapping {
            start: RuntimeAddress(segment.address.0 & !(PAGE - 1)),
            end: RuntimeAddress(end),
            offset: FileOffset(segment.offset.0 & !(PAGE - 1)),
            path: Arc::clone(&path),
            ..Mapping::default()
        })
    };
    Ok(elf.segments().iter().filter(|segment| segment.executable).filter_map(mapping).collect())
}

/// Whether a recorded path names no file: `[vdso]`, `//anon`, `/memfd:x`, `/dev/zero`, `anon_inode:[perf_event]`.
///
/// Such mappings are named after it and never opened: what lies there by that name is another thing.
#[must_use]
pub fn is_pseudo_file(path: &str) -> bool {
    const PREFIXES: [&str; 7] = ["[", "//anon", "/memfd:", "/dev/", "/SYSV", "anon_inode:", "/anon_hugepage"];
    path.is_empty() || PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

/// Index of the module of the main executable, which `--binary` speaks of: the one of the same name, else the first that
/// does not look like a shared library.
#[must_use]
pub fn main_module(modules: &[Module], binary: Option<&Path>) -> Option<usize> {
    let has_its_name = |m: &Module| binary.is_some_and(|binary| Path::new(&m.path).file_name() == binary.file_name());
    modules.iter().position(has_its_name).or_else(|| modules.iter().position(|m| !m.looks_like_a_library()))
}

impl Module {
    fn of(mapping: &Mapping) -> Self {
        let identity = match (mapping.device, mapping.inode) {
            (Some(device), Some(inode)) if inode != 0 => Some(FileIdentity { device, inode }),
            _ => None,
        };
        let (path, build_id) = (mapping.path.to_string(), mapping.build_id.to_string());
        Self { path, build_id, identity, mappings: Vec::new(), extents: Vec::new(), calls: RecordedCalls::default() }
    }

    fn is_same_file(&self, other: &Self) -> bool {
        self.path == other.path && self.identity == other.identity && self.build_id == other.build_id
    }

    /// Last component of the recorded path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    fn looks_like_a_library(&self) -> bool {
        self.name().ends_with(".so") || self.name().contains(".so.")
    }

    /// Find the file.
    #[must_use]
    pub fn find(&self, places: &SearchPlaces<'_>, is_main: bool) -> Search {
        let mut search = Search::default();
        for (place, path) in self.candidates(places, is_main) {
            if search.candidates.iter().any(|c| c.path == path) {
                continue;
            }
            let verdict = match ImageFile::open(&path) {
                Ok(file) => {
                    let verdict = self.judge(&file, place, places.recorded_at);
                    if verdict == Verdict::Accepted {
                        search.file = Some(file);
                    }
                    verdict
                }
                Err(OpenError::Missing) => Verdict::Missing,
                Err(error) => Verdict::Unreadable(error.to_string()),
            };
            search.candidates.push(Candidate { path, place, verdict });
            if search.file.is_some() {
                break;
            }
        }
        if search.file.is_none() && self.build_id.is_empty() {
            self.guess(places, is_main, &mut search);
        }
        search
    }

    /// Where no build id was recorded, as in every jemalloc dump, a file that the user gave under a name of his own is
    /// taken when it is the only one there that fits: one whose name begins like the module's, and for the main executable
    /// any program with enough code. (Programs of a page or two often have the same layout by accident.)
    fn guess(&self, places: &SearchPlaces<'_>, is_main: bool, search: &mut Search) {
        const ENOUGH: u64 = 64 << 10;
        let is_meant = |kept: &&KeptFile| {
            (is_main && kept.is_program && kept.code_bytes >= ENOUGH) || self.is_named_like(&kept.path)
        };
        let kept = places.symbols.map_or(&[][..], SymbolDirs::files).iter().filter(is_meant);
        let new = kept.filter(|kept| search.candidates.iter().all(|c| c.path != kept.path));
        let opened = new.filter_map(|kept| ImageFile::open(&kept.path).ok());
        let mut fitting: Vec<ImageFile> =
            opened.filter(|file| self.judge(file, Place::Symbols, places.recorded_at) == Verdict::Accepted).collect();
        let verdict = if fitting.len() == 1 { Verdict::Accepted } else { Verdict::Ambiguous };
        let candidate = |file: &ImageFile| Candidate {
            path: file.path().to_owned(),
            place: Place::Symbols,
            verdict: verdict.clone(),
        };
        search.candidates.extend(fitting.iter().map(candidate));
        search.file = fitting.pop().filter(|_| verdict == Verdict::Accepted);
    }

    /// `ledgerd-1.2`, `ledgerd.debug` for `ledgerd`; `librock.so.debug` for `librock.so.3`.
    fn is_named_like(&self, path: &Path) -> bool {
        let stem = self.name().find(".so").map_or(self.name(), |at| &self.name()[..at + 3]);
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(stem))
    }

    /// Where to look, in order: what the user names, then the live process, then the recorded path.
    fn candidates(&self, places: &SearchPlaces<'_>, is_main: bool) -> Vec<(Place, PathBuf)> {
        let mut out = Vec::new();
        if let Some(binary) = places.binary.filter(|_| is_main) {
            out.push((Place::Binary, binary.to_owned()));
        }
        // Debug files serve as the image where that is not at hand.
        let debug_name = format!("{}.debug", self.name());
        let debug_path = format!("{}.debug", self.path.trim_start_matches('/'));
        for dir in places.symbols.map_or(&[][..], SymbolDirs::dirs) {
            if let Some((first, rest)) = build_id_path(&self.build_id) {
                out.push((Place::Symbols, dir.join(".build-id").join(first).join(rest)));
                out.push((Place::Symbols, dir.join(".build-id").join(first).join(format!("{rest}.debug"))));
            }
            for name in [self.path.trim_start_matches('/'), self.name(), &debug_path, &debug_name] {
                out.push((Place::Symbols, dir.join(name)));
            }
        }
        let by_build_id = places.symbols.map_or(&[][..], |dirs| dirs.by_build_id(&self.build_id));
        out.extend(by_build_id.iter().map(|path| (Place::Symbols, path.clone())));
        let is_absolute = self.path.starts_with('/');
        if let Some(sysroot) = places.sysroot.filter(|_| is_absolute) {
            out.push((Place::Sysroot, rooted::resolve(sysroot, Path::new(&self.path))));
        }
        if let Some(pid) = places.pid {
            let proc = PathBuf::from(format!("/proc/{pid}"));
            for extent in &self.extents {
                out.push((Place::MapFiles, proc.join(format!("map_files/{:x}-{:x}", extent.start.0, extent.end.0))));
            }
            if is_absolute {
                out.push((Place::ProcRoot, rooted::resolve(&proc.join("root"), Path::new(&self.path))));
            }
            if !self.looks_like_a_library() {
                out.push((Place::ProcExe, proc.join("exe")));
            }
        }
        if is_absolute {
            out.push((Place::Recorded, PathBuf::from(&self.path)));
        }
        out
    }

    fn judge(&self, file: &ImageFile, place: Place, recorded_at: Option<SystemTime>) -> Verdict {
        let elf = match Elf::parse(file.bytes()) {
            Ok(elf) => elf,
            Err(error) => return Verdict::NotAnImage(error.to_string()),
        };
        let found = elf.build_id().unwrap_or_default();
        if !self.build_id.is_empty() && !found.is_empty() {
            if self.build_id != found {
                return Verdict::BuildIdDiffers(found);
            }
            return if self.fits(&elf) { Verdict::Accepted } else { Verdict::LayoutDiffers };
        }
        if !self.fits(&elf) {
            return Verdict::LayoutDiffers;
        }
        match place {
            // The layout alone speaks for a file that the user names: it must be the same and not just large enough.
            Place::Binary | Place::Symbols | Place::Sysroot if !self.fills(&elf) => Verdict::LayoutDiffers,
            Place::Binary | Place::Symbols | Place::Sysroot => self.judge_calls(&elf),
            Place::MapFiles => Verdict::Accepted,
            // Device numbers in map lines and of `stat` may differ on overlay file systems; the path is the process's
            // own, so the inode decides.
            Place::ProcRoot | Place::ProcExe => match self.identity {
                Some(identity) if identity.inode != file.inode() => Verdict::NotShownToBeTheSame,
                _ => Verdict::Accepted,
            },
            // All others are places where something happens to lie.
            _ => match self.identity {
                Some(identity) if file.is(identity) => {
                    // Inodes are reused: a rebuilt binary often gets the one that its predecessor had.
                    let later = |at| file.modified().is_some_and(|m| m > at + Duration::from_secs(1));
                    if recorded_at.is_some_and(later) { Verdict::WrittenLater } else { self.judge_calls(&elf) }
                }
                _ => Verdict::NotShownToBeTheSame,
            },
        }
    }

    /// What is left to say where nothing but the layout, or an inode that may have been written again, speaks for a file.
    fn judge_calls(&self, elf: &Elf<'_>) -> Verdict {
        match self.calls.missing_in(elf) {
            Some((found, of)) => Verdict::CallsDiffer { found, of },
            None => Verdict::Accepted,
        }
    }

    fn fills(&self, elf: &Elf<'_>) -> bool {
        let known = self.extents.iter().filter(|e| e.end > e.start);
        elf.segments().fill(&known.map(|e| (e.offset, e.end.0 - e.start.0)).collect::<Vec<_>>())
    }

    fn fits(&self, elf: &Elf<'_>) -> bool {
        // Profiles of other origin may lack the extents of mappings; then there is nothing to compare.
        let known = |e: &&Extent| e.end > e.start;
        self.extents.iter().filter(known).all(|e| elf.segments().fits(e.offset, e.end.0 - e.start.0))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "--binary",
            Self::Symbols => "--symbols",
            Self::Sysroot => "--sysroot",
            Self::MapFiles => "mapped file of the process",
            Self::ProcRoot => "path as the process sees it",
            Self::ProcExe => "executable of the process",
            Self::Recorded => "recorded path",
            Self::BuildIdDir => "debug file by build id",
            Self::DebugLink => "debug file by name",
            Self::AltLink => "supplementary debug file",
            Self::Package => "split debug information",
            Self::SplitUnit => "split debug information",
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted"),
            Self::Missing => f.write_str("no such file"),
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Self::NotAnImage(what) => f.write_str(what),
            Self::BuildIdDiffers(found) => write!(f, "refused: its build id is {found}"),
            Self::LayoutDiffers => f.write_str("refused: its segments do not fit the recorded mappings"),
            Self::CallsDiffer { found, of } => write!(
                f,
                "refused: another build, since only {found} of the {of} calls on the recorded stacks are calls in it"
            ),
            Self::NotShownToBeTheSame => f.write_str(
                "passed over: nothing shows that it is the file that was mapped (name it with --binary, --symbols or \
                 --sysroot if it is)",
            ),
            Self::Ambiguous => f.write_str("passed over: it fits, and so do others; name the right one with --binary"),
            Self::WrittenLater => f.write_str("passed over: written after the profile was recorded"),
            Self::CrcDiffers => f.write_str("refused: its CRC is not the one that the image wants"),
            Self::NothingToAdd => f.write_str("passed over: it has no debug information"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn pseudo_files() {
        for path in ["", "[vdso]", "[uprobes]", "//anon", "/memfd:jit", "/dev/zero", "anon_inode:[x]", "/SYSV00000000"]
        {
            assert!(is_pseudo_file(path), "{path}");
        }
        for path in ["/usr/bin/svc", "svc", "/usr/lib/odd name.so"] {
            assert!(!is_pseudo_file(path), "{path}");
        }
    }

    fn exec_mapping(path: &Path) -> Mapping {
        let bytes = fs::read(path).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        let text = elf.segments().iter().find(|s| s.executable).unwrap();
        let offset = text.offset.0 & !0xfff;
        let size = (text.offset.0 + text.file_size).next_multiple_of(0x1000) - offset;
        let metadata = fs::metadata(path).unwrap();
        let device = metadata.dev();
        Mapping {
            start: RuntimeAddress(0x5000_0000),
            end: RuntimeAddress(0x5000_0000 + size),
            offset: FileOffset(offset),
            path: path.to_str().unwrap().into(),
            device: Some(((device >> 8) as u32 & 0xfff, device as u32 & 0xff)),
            inode: Some(metadata.ino()),
            ..Mapping::default()
        }
    }

    fn only_module(mapping: Mapping) -> Module {
        let profile = Profile { mappings: vec![mapping], ..Profile::default() };
        modules(&profile).remove(0)
    }

    fn last_verdict(module: &Module, places: &SearchPlaces<'_>) -> Verdict {
        module.find(places, true).candidates.pop().unwrap().verdict
    }

    #[test]
    fn recorded_path_needs_proof() {
        let exe = std::env::current_exe().unwrap();
        let same = exec_mapping(&exe);
        let places = SearchPlaces::default();
        assert_eq!(last_verdict(&only_module(same.clone()), &places), Verdict::Accepted);
        let other_inode = Mapping { inode: Some(1), ..same.clone() };
        assert_eq!(last_verdict(&only_module(other_inode), &places), Verdict::NotShownToBeTheSame);
        let no_inode = Mapping { inode: None, ..same.clone() };
        assert_eq!(last_verdict(&only_module(no_inode), &places), Verdict::NotShownToBeTheSame);
        let other_layout = Mapping { offset: FileOffset(1 << 40), ..same.clone() };
        assert_eq!(last_verdict(&only_module(other_layout), &places), Verdict::LayoutDiffers);
        let long_ago = SearchPlaces { recorded_at: Some(SystemTime::UNIX_EPOCH), ..places };
        assert_eq!(last_verdict(&only_module(same.clone()), &long_ago), Verdict::WrittenLater);
        let gone = Mapping { path: "/no/such/file".into(), ..same };
        assert_eq!(last_verdict(&only_module(gone), &places), Verdict::Missing);
    }

    #[test]
    fn named_files() {
        let exe = std::env::current_exe().unwrap();
        let elsewhere = Mapping { path: "/srv/app".into(), inode: Some(1), ..exec_mapping(&exe) };
        let named = SearchPlaces { binary: Some(&exe), ..SearchPlaces::default() };
        assert_eq!(last_verdict(&only_module(elsewhere.clone()), &named), Verdict::Accepted);
        let wrong_build = Mapping { build_id: "00".repeat(20).as_str().into(), ..elsewhere };
        let module = only_module(wrong_build);
        let refused = module.find(&named, true);
        assert!(refused.file.is_none());
        let bytes = fs::read(&exe).unwrap();
        match Elf::parse(&bytes).unwrap().build_id() {
            Some(id) => assert_eq!(refused.candidates[0].verdict, Verdict::BuildIdDiffers(id)),
            None => panic!("test binaries have a build id here"),
        }
    }

    #[test]
    fn live_process() {
        let exe = std::env::current_exe().unwrap();
        let me = SearchPlaces { pid: Some(std::process::id()), ..SearchPlaces::default() };
        let module = only_module(exec_mapping(&exe));
        assert_eq!(last_verdict(&module, &me), Verdict::Accepted);
    }

    #[test]
    fn one_file_one_module() {
        let mapping = |path: &str, inode| Mapping {
            path: path.into(),
            device: Some((8, 1)),
            inode: Some(inode),
            ..Mapping::default()
        };
        let mappings =
            vec![mapping("/a", 1), mapping("[vdso]", 0), mapping("/b", 2), mapping("/a", 1), mapping("/a", 3)];
        let modules = modules(&Profile { mappings, ..Profile::default() });
        let indexes: Vec<_> = modules.iter().map(|m| m.mappings.clone()).collect();
        assert_eq!(indexes, [vec![0, 3], vec![2], vec![4]]);
    }

    #[test]
    fn main_executable() {
        let mapping = |path: &str| Mapping { path: path.into(), ..Mapping::default() };
        let mappings = vec![mapping("/lib/libc.so.6"), mapping("/srv/app"), mapping("/srv/other")];
        let modules = modules(&Profile { mappings, ..Profile::default() });
        assert_eq!(main_module(&modules, Some(Path::new("/build/other"))), Some(2));
        assert_eq!(main_module(&modules, Some(Path::new("/build/renamed"))), Some(1));
    }
}
