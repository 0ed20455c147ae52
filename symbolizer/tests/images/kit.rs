//! Build things, ask other tools, ask the library.

use offheap_symbolizer::address::{FileOffset, ImageAddress, RuntimeAddress};
use offheap_symbolizer::frame::{Frame, NameSource};
use offheap_symbolizer::image::{Elf, Found, ImageFile, ImageFiles, LookUps, Sources};
use offheap_symbolizer::profile::{Location, LocationId, Mapping, MappingId, Profile, Sample, ValueType};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder of sources and what was built from them.
pub(crate) struct Workshop(tempfile::TempDir);

impl Workshop {
    pub(crate) fn new(sources: &[(&str, &str)]) -> Self {
        let workshop = Self(tempfile::tempdir().unwrap());
        for (name, text) in sources {
            std::fs::write(workshop.path(name), text).unwrap();
        }
        workshop
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Run a command in the folder; its standard output.
    pub(crate) fn run(&self, program: impl AsRef<OsStr>, args: &[&str]) -> String {
        self.run_with(program, args, &[])
    }

    pub(crate) fn run_with(&self, program: impl AsRef<OsStr>, args: &[&str], env: &[(&str, &str)]) -> String {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.0.path()).envs(env.iter().copied());
        let out = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    /// Build with the C compiler.
    pub(crate) fn cc(&self, args: &[&str]) {
        self.run("cc", args);
    }

    /// Build with the C++ compiler.
    pub(crate) fn cxx(&self, args: &[&str]) {
        self.run("c++", args);
    }

    /// Function symbols of a built image: name, address, size.
    pub(crate) fn functions(&self, image: &str) -> BTreeMap<String, (u64, u64)> {
        let text = self.run("nm", &["--defined-only", "--print-size", image]);
        text.lines()
            .filter_map(|line| {
                let mut fields = line.split(' ');
                let (address, size, kind, name) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
                let hex = |text| u64::from_str_radix(text, 16).ok();
                matches!(kind, "t" | "T" | "w" | "W").then_some((name.to_owned(), (hex(address)?, hex(size)?)))
            })
            .collect()
    }

    /// What binutils' `addr2line` says: for each address, innermost first, (function, file, line).
    pub(crate) fn addr2line(&self, image: &str, addresses: &[u64]) -> Vec<Vec<(String, String, u32)>> {
        self.oracle("addr2line", &["-a", "-f", "-i", "-e", image], addresses)
    }

    /// What `llvm-symbolizer` says; binutils does not read the DWARF 5 of Go.
    pub(crate) fn llvm_symbolizer(&self, image: &str, addresses: &[u64]) -> Vec<Vec<(String, String, u32)>> {
        let args = ["--output-style=GNU", "--no-demangle", "-a", "-f", "-i", "-e", image];
        self.oracle("llvm-symbolizer", &args, addresses)
    }

    fn oracle(&self, program: &str, args: &[&str], addresses: &[u64]) -> Vec<Vec<(String, String, u32)>> {
        let mut child = Command::new(program)
            .args(args)
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}; scripts/setup installs it"));
        let mut stdin = child.stdin.take().unwrap();
        let input: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
        let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        writer.join().unwrap();

        let mut answers = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("0x") {
                answers.push(Vec::new());
                continue;
            }
            let (file, place) = lines.next().unwrap().rsplit_once(':').unwrap();
            let number = place.split(' ').next().unwrap().parse().unwrap_or(0);
            answers.last_mut().unwrap().push((line.to_owned(), base_name(file).to_owned(), number));
        }
        answers
    }

    /// What the library says.
    pub(crate) fn ask(&self, image: &str, addresses: &[u64]) -> Vec<Found> {
        ask(&self.path(image), addresses)
    }
}

pub(crate) fn ask(image: &Path, addresses: &[u64]) -> Vec<Found> {
    let file = ImageFile::open(image).unwrap();
    let elf = Elf::parse(file.bytes()).unwrap();
    let sources = Sources::new(ImageFiles::only(&elf));
    let addresses: Vec<_> = addresses.iter().copied().map(ImageAddress).collect();
    LookUps::new(&sources).all(&addresses)
}

/// Function names, innermost first; none for an address without one.
pub(crate) fn names(found: &Found) -> Vec<&str> {
    found.as_ref().map_or(Vec::new(), |(_, frames)| frames.iter().map(|f| &*f.function).collect())
}

/// (function, base name of the file, line), innermost first.
pub(crate) fn places(found: &Found) -> Vec<(String, String, u32)> {
    let place = |f: &Frame| {
        (f.function.to_string(), base_name(f.file.as_deref().unwrap_or("??")).to_owned(), f.line.unwrap_or(0))
    };
    found.as_ref().map_or(Vec::new(), |(_, frames)| frames.iter().map(place).collect())
}

pub(crate) fn source(found: &Found) -> Option<NameSource> {
    found.as_ref().ok().map(|(source, _)| *source)
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Addresses all over the functions.
pub(crate) fn inside<'f>(functions: impl IntoIterator<Item = &'f (u64, u64)>, step: usize) -> Vec<u64> {
    functions.into_iter().flat_map(|&(start, size)| (start..start + size).step_by(step)).collect()
}

/// A profile of one library, mapped as the kernel would, with one location for each image address.
pub(crate) fn profile_of(workshop: &Workshop, image: &str, addresses: &[u64]) -> Profile {
    const START: u64 = 0x7f00_1230_0000;
    let bytes = std::fs::read(workshop.path(image)).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    let text = elf.segments().iter().find(|s| s.executable).unwrap();
    let offset = text.offset.0 & !0xfff;
    let mapping = Mapping {
        start: RuntimeAddress(START),
        end: RuntimeAddress(START + (text.offset.0 + text.file_size).next_multiple_of(0x1000) - offset),
        offset: FileOffset(offset),
        path: format!("/srv/lib/{image}").as_str().into(),
        ..Mapping::default()
    };
    let runtime = |address: u64| RuntimeAddress(address - text.address.0 + text.offset.0 - offset + START);
    let location =
        |address: &u64| Location { mapping: Some(MappingId(0)), address: runtime(*address), ..Location::default() };
    let locations: Vec<_> = addresses.iter().map(location).collect();
    let samples = (0..locations.len() as u32).map(|id| Sample {
        locations: vec![LocationId(id)],
        values: vec![100],
        ..Sample::default()
    });
    Profile {
        value_types: vec![ValueType { kind: "inuse_space".into(), unit: "bytes".into() }],
        samples: samples.collect(),
        locations,
        mappings: vec![mapping],
        ..Profile::default()
    }
}

pub(crate) fn name_of(profile: &Profile, location: usize) -> Vec<String> {
    profile.locations[location].lines.iter().map(|line| profile.function(line.function).name.to_string()).collect()
}
