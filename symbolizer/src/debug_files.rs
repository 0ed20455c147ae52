//! Which files the debug information of an image was moved to.
//!
//! A debug file is accepted when its build id is that of the image; where neither has one, when its CRC is the one that
//! the image asks for, or when the user named its place and its sections lie where those of the image do.

use crate::image::{AltLink, DebugLink, Elf, ImageFile, OpenError};
use crate::modules::{Candidate, Place, SearchPlaces, Verdict};
use crate::symbol_dirs::{SymbolDirs, build_id_path};
use std::path::{Path, PathBuf};

/// The files found for one image.
#[derive(Debug, Default)]
pub struct DebugFiles {
    /// The separate debug file.
    pub debug: Option<ImageFile>,
    /// What `dwz` moved out of the debug information.
    pub supplementary: Option<ImageFile>,
    /// Packed split units.
    pub package: Option<ImageFile>,
    /// Directories that may have split units.
    pub split_dirs: Vec<PathBuf>,
    /// What was looked at, in order.
    pub candidates: Vec<Candidate>,
}

/// An image whose debug files are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The image.
    pub elf: &'a Elf<'a>,
    /// File that it was read from.
    pub path: &'a Path,
    /// Path as recorded.
    pub recorded: &'a str,
}

impl DebugFiles {
    /// Look for them.
    #[must_use]
    pub fn find(wanted: &Wanted<'_>, places: &SearchPlaces<'_>) -> Self {
        let mut found = Self { split_dirs: split_dirs(wanted, places), ..Self::default() };
        if !wanted.elf.has_dwarf() {
            found.find_debug(wanted, places);
        }
        found.find_supplementary(wanted, places);
        found.find_package(wanted, places);
        found
    }

    fn find_debug(&mut self, wanted: &Wanted<'_>, places: &SearchPlaces<'_>) {
        let build_id = wanted.elf.build_id().unwrap_or_default();
        let link = DebugLink::of(wanted.elf);
        for (place, path) in debug_candidates(wanted, places, &build_id, link.as_ref()) {
            let judge = |file: &ImageFile| judge(wanted, file, place, &build_id, link.as_ref());
            if let Some(file) = self.consider(place, path, judge) {
                self.debug = Some(file);
                return;
            }
        }
    }

    fn find_supplementary(&mut self, wanted: &Wanted<'_>, places: &SearchPlaces<'_>) {
        let (link, dir) = match &self.debug {
            Some(file) => (Elf::parse(file.bytes()).ok().and_then(|elf| AltLink::of(&elf)), real_dir(file.path())),
            None => (AltLink::of(wanted.elf), real_dir(wanted.path)),
        };
        let Some(link) = link else { return };
        let judge = |file: &ImageFile| match Elf::parse(file.bytes()) {
            Err(error) => Verdict::NotAnImage(error.to_string()),
            Ok(elf) => match elf.build_id() {
                Some(id) if id == link.build_id => Verdict::Accepted,
                other => Verdict::BuildIdDiffers(other.unwrap_or_default()),
            },
        };
        for path in alt_candidates(&link, dir.as_deref(), places) {
            if let Some(file) = self.consider(Place::AltLink, path, judge) {
                self.supplementary = Some(file);
                return;
            }
        }
    }

    /// Packed units carry no build id; the units inside are found by ids of their own.
    fn find_package(&mut self, wanted: &Wanted<'_>, places: &SearchPlaces<'_>) {
        let with_suffix = |path: &Path| {
            let mut path = path.as_os_str().to_owned();
            path.push(".dwp");
            PathBuf::from(path)
        };
        let mut candidates = vec![with_suffix(wanted.path)];
        candidates.extend(self.debug.as_ref().map(|file| with_suffix(file.path())));
        let name = wanted.recorded.rsplit('/').next().unwrap_or_default();
        candidates.extend(symbol_dirs(places).iter().map(|dir| with_suffix(&dir.join(name))));
        let judge = |file: &ImageFile| match Elf::parse(file.bytes()) {
            Err(error) => Verdict::NotAnImage(error.to_string()),
            Ok(_) => Verdict::Accepted,
        };
        // Hardly anything has one, so that it is missing is not worth a line.
        for path in candidates.into_iter().filter(|path| path.is_file()) {
            if let Some(file) = self.consider(Place::Package, path, judge) {
                self.package = Some(file);
                return;
            }
        }
    }

    /// Open a candidate, judge it, write it down; the file when it is accepted.
    fn consider(&mut self, place: Place, path: PathBuf, judge: impl Fn(&ImageFile) -> Verdict) -> Option<ImageFile> {
        if self.candidates.iter().any(|c| c.path == path) {
            return None;
        }
        let opened = ImageFile::open(&path);
        let verdict = match &opened {
            Ok(file) => judge(file),
            Err(OpenError::Missing) => Verdict::Missing,
            Err(error) => Verdict::Unreadable(error.to_string()),
        };
        let accepted = verdict == Verdict::Accepted;
        self.candidates.push(Candidate { path, place, verdict });
        opened.ok().filter(|_| accepted)
    }
}

fn judge(wanted: &Wanted<'_>, file: &ImageFile, place: Place, build_id: &str, link: Option<&DebugLink>) -> Verdict {
    let elf = match Elf::parse(file.bytes()) {
        Ok(elf) => elf,
        Err(error) => return Verdict::NotAnImage(error.to_string()),
    };
    let found = elf.build_id().unwrap_or_default();
    let is_same = match (build_id.is_empty(), found.is_empty()) {
        (false, false) if build_id != found => return Verdict::BuildIdDiffers(found),
        (false, false) => true,
        _ => false,
    };
    if !elf.has_debug_symbols() {
        return Verdict::NothingToAdd;
    }
    if is_same {
        return Verdict::Accepted;
    }
    let is_linked = link.is_some_and(|link| link.matches(file.bytes()));
    match place {
        _ if is_linked => Verdict::Accepted,
        Place::DebugLink => Verdict::CrcDiffers,
        _ if elf.has_layout_of(wanted.elf) => Verdict::Accepted,
        _ => Verdict::LayoutDiffers,
    }
}

fn symbol_dirs<'a>(places: &SearchPlaces<'a>) -> &'a [PathBuf] {
    places.symbols.map_or(&[], SymbolDirs::dirs)
}

/// File systems whose `/usr/lib/debug` is meant: the one that the user names, that of the process, this machine's.
fn roots(places: &SearchPlaces<'_>) -> Vec<PathBuf> {
    let of_process = places.pid.map(|pid| PathBuf::from(format!("/proc/{pid}/root")));
    places.sysroot.map(Path::to_owned).into_iter().chain(of_process).chain([PathBuf::from("/")]).collect()
}

/// Candidates in the order of gdb's search, what the user names first.
fn debug_candidates(
    wanted: &Wanted<'_>,
    places: &SearchPlaces<'_>,
    build_id: &str,
    link: Option<&DebugLink>,
) -> Vec<(Place, PathBuf)> {
    let mut out = Vec::new();
    let recorded = wanted.recorded.trim_start_matches('/');
    let name = recorded.rsplit('/').next().unwrap_or_default();
    let in_tree = build_id_path(build_id).map(|(first, rest)| format!("{first}/{rest}.debug"));

    for dir in symbol_dirs(places) {
        let by_id = in_tree.iter().flat_map(|path| [dir.join(".build-id").join(path), dir.join(path)]);
        let by_link = link.map(|link| dir.join(&link.name));
        let by_name = [recorded, name].into_iter().flat_map(|n| [dir.join(format!("{n}.debug")), dir.join(n)]);
        let all = by_id.chain(by_link).chain(by_name).chain(dir.is_file().then(|| dir.clone()));
        out.extend(all.map(|path| (Place::Symbols, path)));
    }
    let by_build_id = places.symbols.map_or(&[][..], |dirs| dirs.by_build_id(build_id));
    out.extend(by_build_id.iter().map(|path| (Place::Symbols, path.clone())));

    let dir_in_root = Path::new(recorded).parent().unwrap_or(Path::new(""));
    for root in roots(places) {
        let global = root.join("usr/lib/debug");
        out.extend(in_tree.iter().map(|path| (Place::BuildIdDir, global.join(".build-id").join(path))));
        if let Some(link) = link {
            let dir = root.join(dir_in_root);
            let beside = [dir.join(&link.name), dir.join(".debug").join(&link.name)];
            let global = global.join(dir_in_root).join(&link.name);
            out.extend(beside.into_iter().chain([global]).map(|path| (Place::DebugLink, path)));
        }
    }
    if let Some((link, dir)) = link.zip(real_dir(wanted.path)) {
        out.push((Place::DebugLink, dir.join(&link.name)));
        out.push((Place::DebugLink, dir.join(".debug").join(&link.name)));
    }
    // The image itself, under a name that leads to it, has nothing to add.
    out.retain(|(_, path)| path != wanted.path);
    out
}

fn alt_candidates(link: &AltLink, dir: Option<&Path>, places: &SearchPlaces<'_>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = dir.map(|dir| dir.join(&link.path)).into_iter().collect();
    let in_tree = build_id_path(&link.build_id).map(|(first, rest)| format!(".build-id/{first}/{rest}.debug"));
    for dir in symbol_dirs(places) {
        out.extend(in_tree.iter().map(|path| dir.join(path)));
        out.extend(link.path.file_name().map(|name| dir.join(name)));
    }
    out.extend(places.symbols.map_or(&[][..], |dirs| dirs.by_build_id(&link.build_id)).iter().cloned());
    for root in roots(places) {
        out.extend(in_tree.iter().map(|path| root.join("usr/lib/debug").join(path)));
        if let Ok(absolute) = link.path.strip_prefix("/") {
            out.push(root.join(absolute));
        }
    }
    out
}

/// Directory of a file, links resolved: entries of build-id trees are links, and relative names count from their target.
fn real_dir(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()?.parent().map(Path::to_owned)
}

fn split_dirs(wanted: &Wanted<'_>, places: &SearchPlaces<'_>) -> Vec<PathBuf> {
    symbol_dirs(places).iter().cloned().chain(real_dir(wanted.path)).collect()
}
