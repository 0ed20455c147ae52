//! The loop over the sources of names.

use crate::address::ImageAddress;
use crate::debug_files::{DebugFiles, Wanted};
use crate::demangle::demangle;
use crate::frame::{Frame, NoName};
use crate::image::{Elf, ImageFile, ImageFiles, LookUps, Segments, Sources};
use crate::modules::{self, Candidate, Module, Place, Search, SearchPlaces, Verdict};
use crate::profile::{Function, FunctionId, Line, Profile};
use crate::report::{ImageReport, Report};
use crate::symbol_dirs::SymbolDirs;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where images and their debug files may be looked for.
#[derive(Clone, Debug, Default)]
pub struct SymbolizeOptions {
    /// The live process that the profile was taken from: its files are read through `/proc/PID/root` and
    /// `/proc/PID/map_files`.
    pub pid: Option<u32>,
    /// The main executable, named by the user.
    pub binary: Option<PathBuf>,
    /// Directories with debug files or images, named by the user.
    pub symbols: Vec<PathBuf>,
    /// Root under which recorded paths are looked up, named by the user.
    pub sysroot: Option<PathBuf>,
}

/// Fill in the lines of every location that has none.
///
/// Locations are looked up at their address as it stands: the formats have already moved return addresses into their
/// calls ([`of_call`](crate::address::RuntimeAddress::of_call)) when they built the locations, and nothing is subtracted here.
///
/// A location without a name gets a line all the same, whose function says where it is and claims nothing:
/// `libfoo.so.1+0x1234` in a file (the start of the function when the unwind tables tell it, so that one function is one
/// row), `[vdso]` in a pseudo-file, `[unknown]` in no mapping.
pub fn symbolize(profile: &mut Profile, options: &SymbolizeOptions) -> Report {
    let recorded_at = u64::try_from(profile.time_nanos).ok().filter(|nanos| *nanos > 0);
    let symbols = SymbolDirs::new(&options.symbols);
    let places = SearchPlaces {
        pid: options.pid,
        binary: options.binary.as_deref(),
        symbols: Some(&symbols),
        sysroot: options.sysroot.as_deref(),
        recorded_at: recorded_at.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)),
    };
    let modules = modules::modules(profile);
    let main = modules::main_module(&modules, options.binary.as_deref());
    let questions = Questions::of(profile, &modules);

    let answers: Vec<Answers> = modules
        .par_iter()
        .zip(&questions.by_module)
        .enumerate()
        .filter(|(_, (_, locations))| !locations.is_empty())
        .map(|(index, (module, locations))| answer(profile, module, locations, &places, main == Some(index)))
        .collect();

    let mut writer = Writer::new(profile);
    let mut report = Report::default();
    for answers in answers {
        writer.write(&answers);
        report.images.push(answers.report);
    }
    for (location, why) in questions.outside {
        *report.outside.entry(why).or_default() += 1;
        writer.write_unnamed(location);
    }
    let unnamed = writer.unnamed;
    (report.total, report.unnamed) = weigh(profile, &unnamed);
    report
}

/// The locations without lines, by the module they fall into.
struct Questions {
    by_module: Vec<Vec<usize>>,
    outside: Vec<(usize, NoName)>,
}

impl Questions {
    fn of(profile: &Profile, modules: &[Module]) -> Self {
        let mut module_of = vec![None; profile.mappings.len()];
        for (index, module) in modules.iter().enumerate() {
            for mapping in &module.mappings {
                module_of[*mapping] = Some(index);
            }
        }
        let mut questions = Self { by_module: vec![Vec::new(); modules.len()], outside: Vec::new() };
        for (index, location) in profile.locations.iter().enumerate().filter(|(_, l)| l.lines.is_empty()) {
            match location.mapping.map(|id| module_of.get(id.0 as usize).copied().flatten()) {
                Some(Some(module)) => questions.by_module[module].push(index),
                Some(None) => questions.outside.push((index, NoName::NotAFile)),
                None => questions.outside.push((index, NoName::NoMapping)),
            }
        }
        questions
    }
}

/// Missing split units that are listed, of possibly thousands.
const MISSING_MAX: usize = 8;

/// What is known about an address.
enum Answer {
    Named(Vec<Frame>),
    /// The name to print in place of the missing one.
    Unnamed(String),
}

/// Answers about the locations of one module.
struct Answers {
    by_location: Vec<(usize, Answer)>,
    mappings: Vec<usize>,
    build_id: Option<String>,
    report: ImageReport,
}

fn answer(
    profile: &Profile,
    module: &Module,
    locations: &[usize],
    places: &SearchPlaces<'_>,
    is_main: bool,
) -> Answers {
    let Search { file, candidates } = module.find(places, is_main);
    let mut answers = Answers {
        by_location: Vec::with_capacity(locations.len()),
        mappings: module.mappings.clone(),
        build_id: None,
        report: ImageReport {
            path: module.path.clone(),
            build_id: module.build_id.clone(),
            file: file.as_ref().map(|file| file.path().to_owned()),
            looked_at: candidates,
            addresses: locations.len(),
            ..ImageReport::default()
        },
    };
    match file {
        Some(file) => answers.ask_image(profile, module, locations, &file, places),
        None => answers.do_without_image(profile, locations),
    }
    answers
}

impl Answers {
    fn ask_image(
        &mut self,
        profile: &Profile,
        module: &Module,
        locations: &[usize],
        file: &ImageFile,
        places: &SearchPlaces<'_>,
    ) {
        // It parsed when it was judged.
        let Ok(elf) = Elf::parse(file.bytes()) else { return self.do_without_image(profile, locations) };
        if let Some(build_id) = elf.build_id() {
            self.report.build_id.clone_from(&build_id);
            self.build_id = Some(build_id);
        }
        let wanted = Wanted { elf: &elf, path: file.path(), recorded: &module.path };
        let debug_files = DebugFiles::find(&wanted, places);
        self.report.looked_at.extend(debug_files.candidates.iter().cloned());
        self.report.debug_file = debug_files.debug.as_ref().map(|file| file.path().to_owned());
        let debug = parse(&debug_files.debug);
        let supplementary = parse(&debug_files.supplementary);
        let package = parse(&debug_files.package);
        let sources = Sources::new(ImageFiles {
            image: &elf,
            debug: debug.as_ref(),
            supplementary: supplementary.as_ref(),
            package: package.as_ref(),
            split_dirs: debug_files.split_dirs.clone(),
        });
        self.report.sources = sources.present();

        let (mut asked, outside) = image_addresses(profile, locations, elf.segments());
        for location in outside {
            *self.report.unresolved.entry(NoName::OutsideSegments).or_default() += 1;
            self.by_location
                .push((location, Answer::Unnamed(profile.fallback_name(&profile.locations[location]).into_owned())));
        }
        asked.sort_unstable();
        let addresses: Vec<ImageAddress> = asked.iter().map(|(address, _)| *address).collect();
        let found = LookUps::new(&sources).all(&addresses);
        for ((address, location), found) in asked.into_iter().zip(found) {
            let answer = match found {
                Ok((source, frames)) => {
                    *self.report.resolved.entry(source).or_default() += 1;
                    Answer::Named(frames)
                }
                Err(why) => {
                    *self.report.unresolved.entry(why).or_default() += 1;
                    let start = sources.function_bounds(address).map_or(address, |bounds| bounds.start);
                    Answer::Unnamed(format!("{}+{start}", module.name()))
                }
            };
            self.by_location.push((location, answer));
        }
        let missing = sources.missing_split_units().take(MISSING_MAX).cloned();
        let missing = missing.map(|path| Candidate { path, place: Place::SplitUnit, verdict: Verdict::Missing });
        self.report.looked_at.extend(missing);
    }

    fn do_without_image(&mut self, profile: &Profile, locations: &[usize]) {
        let is_mismatch = |verdict: &Verdict| matches!(verdict, Verdict::BuildIdDiffers(_));
        let mismatch = self.report.looked_at.iter().any(|c| is_mismatch(&c.verdict));
        let why = if mismatch { NoName::BuildIdMismatch } else { NoName::NoImage };
        self.report.unresolved = BTreeMap::from([(why, locations.len())]);
        let unnamed = |location: &usize| {
            (*location, Answer::Unnamed(profile.fallback_name(&profile.locations[*location]).into_owned()))
        };
        self.by_location.extend(locations.iter().map(unnamed));
    }
}

fn parse(file: &Option<ImageFile>) -> Option<Elf<'_>> {
    Elf::parse(file.as_ref()?.bytes()).ok()
}

/// Image addresses of the locations that have one, and the locations that have none.
fn image_addresses(
    profile: &Profile,
    locations: &[usize],
    segments: &Segments,
) -> (Vec<(ImageAddress, usize)>, Vec<usize>) {
    let (mut inside, mut outside) = (Vec::with_capacity(locations.len()), Vec::new());
    for &index in locations {
        let location = &profile.locations[index];
        let address = location.mapping.and_then(|id| {
            let mapping = profile.mapping(id);
            segments.image_address(location.address, mapping.start, mapping.offset)
        });
        match address {
            Some(address) => inside.push((address, index)),
            None => outside.push(index),
        }
    }
    (inside, outside)
}

/// Puts answers into the profile.
struct Writer<'p> {
    profile: &'p mut Profile,
    functions: HashMap<Function, FunctionId>,
    demangled: HashMap<Arc<str>, Arc<str>>,
    empty: Arc<str>,
    /// Whether location by location there is no name.
    unnamed: Vec<bool>,
}

impl<'p> Writer<'p> {
    fn new(profile: &'p mut Profile) -> Self {
        let by_value = |(index, function): (usize, &Function)| (function.clone(), FunctionId(index as u32));
        let functions = profile.functions.iter().enumerate().map(by_value).collect();
        let unnamed = vec![false; profile.locations.len()];
        Self { profile, functions, demangled: HashMap::new(), empty: Arc::from(""), unnamed }
    }

    fn write(&mut self, answers: &Answers) {
        if let Some(build_id) = &answers.build_id {
            let build_id: Arc<str> = Arc::from(build_id.as_str());
            for &mapping in &answers.mappings {
                self.profile.mappings[mapping].build_id = Arc::clone(&build_id);
            }
        }
        for (location, answer) in &answers.by_location {
            match answer {
                Answer::Named(frames) => self.write_frames(*location, frames),
                Answer::Unnamed(name) => self.write_name(*location, name),
            }
        }
    }

    fn write_frames(&mut self, location: usize, frames: &[Frame]) {
        if let Some(id) = self.profile.locations[location].mapping {
            let mapping = &mut self.profile.mappings[id.0 as usize];
            mapping.has_functions = true;
            mapping.has_filenames |= frames.iter().any(|f| f.file.is_some());
            mapping.has_line_numbers |= frames.iter().any(|f| f.line.is_some());
            mapping.has_inline_frames |= frames.iter().any(|f| f.inlined);
        }
        let lines = frames.iter().map(|frame| self.line(frame)).collect();
        self.profile.locations[location].lines = lines;
    }

    fn write_unnamed(&mut self, location: usize) {
        let name = self.profile.fallback_name(&self.profile.locations[location]);
        self.write_name(location, &name);
    }

    fn write_name(&mut self, location: usize, name: &str) {
        self.unnamed[location] = true;
        let line = self.line(&Frame { function: Arc::from(name), ..Frame::default() });
        self.profile.locations[location].lines = vec![line];
    }

    fn line(&mut self, frame: &Frame) -> Line {
        let function = self.function(frame);
        Line { function, line: frame.line.map_or(0, i64::from), column: frame.column.map_or(0, i64::from) }
    }

    fn function(&mut self, frame: &Frame) -> FunctionId {
        let name = match self.demangled.get(&frame.function) {
            Some(name) => Arc::clone(name),
            None => {
                let name: Arc<str> = Arc::from(demangle(&frame.function));
                self.demangled.insert(Arc::clone(&frame.function), Arc::clone(&name));
                name
            }
        };
        let function = Function {
            name,
            system_name: Arc::clone(&frame.function),
            file: frame.file.as_ref().unwrap_or(&self.empty).clone(),
            start_line: frame.start_line.map_or(0, i64::from),
        };
        if let Some(id) = self.functions.get(&function) {
            return *id;
        }
        let id = FunctionId(self.profile.functions.len() as u32);
        self.profile.functions.push(function.clone());
        self.functions.insert(function, id);
        id
    }
}

/// The profile's main value in all stacks, and in those whose leaf has no name.
fn weigh(profile: &Profile, unnamed: &[bool]) -> (i64, i64) {
    let by_name = profile.default_value_type.as_deref().and_then(|kind| profile.value_index(kind));
    let Some(index) = by_name.or(profile.value_types.len().checked_sub(1)) else { return (0, 0) };
    let (mut total, mut without) = (0i64, 0i64);
    for sample in &profile.samples {
        let Some(leaf) = sample.locations.first() else { continue };
        let value = sample.values.get(index).copied().unwrap_or(0);
        total = total.saturating_add(value);
        if unnamed.get(leaf.0 as usize).copied().unwrap_or(false) {
            without = without.saturating_add(value);
        }
    }
    (total, without)
}
