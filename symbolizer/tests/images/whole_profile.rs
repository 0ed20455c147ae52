//! From a profile with addresses to a profile with names.

use crate::kit::{Workshop, name_of, profile_of};
use offheap_symbolizer::address::{FileOffset, RuntimeAddress};
use offheap_symbolizer::frame::{NameSource, NoName};
use offheap_symbolizer::profile::{Location, Mapping, MappingId, Profile};
use offheap_symbolizer::{SymbolizeOptions, symbolize};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const SITE_C: &str = r#"#include <stdlib.h>
static inline __attribute__((always_inline)) void *inlined(size_t n) { return malloc(n + 1); }
__attribute__((noinline)) static void *hidden(size_t n) { char *p = inlined(n); if (p) p[0] = 1; return p; }
void *site(size_t n) { char *p = hidden(n); if (p) p[0] = 2; return p; }
"#;

#[test]
fn names_flags_build_id_and_report() {
    let workshop = Workshop::new(&[("site.c", SITE_C)]);
    for (image, linker) in [("gnu.so", "-fuse-ld=bfd"), ("lld.so", "-fuse-ld=lld")] {
        workshop.cc(&["-g", "-O2", "-shared", "-fPIC", "-Wl,--build-id=sha1", linker, "-o", image, "site.c"]);
        let functions = workshop.functions(image);
        let (site, hidden) = (functions["site"], functions["hidden"]);
        let mut profile = profile_of(&workshop, image, &[site.0, hidden.0 + hidden.1 - 1, hidden.0 + 5]);
        let options = SymbolizeOptions { symbols: vec![workshop.path(".")], ..SymbolizeOptions::default() };
        let report = symbolize(&mut profile, &options);

        assert_eq!(name_of(&profile, 0), ["site"], "{image}\n{report}");
        assert_eq!(name_of(&profile, 1), ["hidden"]);
        let mapping = &profile.mappings[0];
        assert!(mapping.has_functions && mapping.has_filenames && mapping.has_line_numbers);
        assert_eq!(mapping.build_id.len(), 40, "sha1 in hex");
        let line = profile.locations[0].lines[0];
        assert_eq!(line.line, 4);
        assert!(profile.function(line.function).file.ends_with("site.c"));
        assert_eq!(report.images[0].resolved.get(&NameSource::Dwarf), Some(&3));
        assert_eq!((report.total, report.unnamed), (300, 0));
    }
}

#[test]
fn nameless_code_is_grouped_by_function() {
    let workshop = Workshop::new(&[("site.c", SITE_C)]);
    workshop.cc(&["-O2", "-shared", "-fPIC", "-o", "full.so", "site.c"]);
    std::fs::create_dir(workshop.path("bin")).unwrap();
    workshop.run("strip", &["-o", "bin/libsite.so.1", "full.so"]);
    let functions = workshop.functions("full.so");
    let (site, hidden) = (functions["site"], functions["hidden"]);
    let mut profile = profile_of(&workshop, "bin/libsite.so.1", &[hidden.0 + 1, hidden.0 + 6, site.0 + 1]);
    let options = SymbolizeOptions { symbols: vec![workshop.path("bin")], ..SymbolizeOptions::default() };
    let report = symbolize(&mut profile, &options);
    let expected = format!("libsite.so.1+{:#x}", hidden.0);
    assert_eq!(name_of(&profile, 0), [expected.as_str()]);
    assert_eq!(profile.locations[0].lines, profile.locations[1].lines);
    assert_eq!(name_of(&profile, 2), ["site"]);
    assert_eq!(report.images[0].unresolved.get(&NoName::NoSymbol), Some(&2));
    assert_eq!((report.total, report.unnamed), (300, 200));
    assert!(report.warning("bytes").unwrap().starts_with("67 % of bytes have no name"));
}

#[test]
fn file_that_is_not_shown_to_be_the_same_is_passed_over() {
    let workshop = Workshop::new(&[("site.c", SITE_C)]);
    workshop.cc(&["-g", "-O2", "-shared", "-fPIC", "-o", "site.so", "site.c"]);
    let site = workshop.functions("site.so")["site"];
    let mut profile = profile_of(&workshop, "site.so", &[site.0]);
    // It exists at the recorded path, but nothing was recorded that shows it to be the file of the profile.
    profile.mappings[0].path = workshop.path("site.so").to_str().unwrap().into();
    let report = symbolize(&mut profile, &SymbolizeOptions::default());
    assert_eq!(name_of(&profile, 0), [format!("site.so+{:#x}", site.0)]);
    assert_eq!(report.images[0].unresolved.get(&NoName::NoImage), Some(&1));
    assert!(report.to_string().contains("passed over"), "{report}");

    // Another build id was recorded: refused even where the user names it.
    let mut profile = profile_of(&workshop, "site.so", &[site.0]);
    profile.mappings[0].build_id = "ab".repeat(20).as_str().into();
    let options = SymbolizeOptions { binary: Some(workshop.path("site.so")), ..SymbolizeOptions::default() };
    let report = symbolize(&mut profile, &options);
    assert_eq!(report.images[0].unresolved.get(&NoName::BuildIdMismatch), Some(&1), "{report}");
    assert_eq!(&*profile.mappings[0].build_id, "ab".repeat(20));
}

#[test]
fn outside_of_files() {
    let mapping = |path: &str| Mapping {
        start: RuntimeAddress(0x1000),
        end: RuntimeAddress(0x2000),
        path: path.into(),
        ..Mapping::default()
    };
    let mappings = vec![mapping("[vdso]"), mapping(""), mapping("/memfd:jit")];
    let at = |mapping: Option<u32>| Location {
        mapping: mapping.map(MappingId),
        address: RuntimeAddress(0x1500),
        ..Location::default()
    };
    let mut profile =
        Profile { mappings, locations: vec![at(Some(0)), at(Some(1)), at(Some(2)), at(None)], ..Profile::default() };
    let report = symbolize(&mut profile, &SymbolizeOptions::default());
    let names: Vec<_> = (0..4).flat_map(|location| name_of(&profile, location)).collect();
    assert_eq!(names, ["[vdso]+0x500", "[anon]+0x500", "memfd:jit+0x500", "[unknown]"]);
    assert_eq!(report.outside.get(&NoName::NotAFile), Some(&3));
    assert_eq!(report.outside.get(&NoName::NoMapping), Some(&1));
    assert!(report.images.is_empty());
}

#[test]
fn lines_that_are_there_stay() {
    let mut profile = Profile { locations: vec![Location::default()], ..Profile::default() };
    symbolize(&mut profile, &SymbolizeOptions::default());
    let before = profile.clone();
    symbolize(&mut profile, &SymbolizeOptions::default());
    assert_eq!(profile, before);
}

const LIVE_C: &str = r#"#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static int inner(int n) { return n + getpid(); }
int main(void) { printf("%p\n", (void *)inner); fflush(stdout); return inner(getchar()) == 0; }
"#;

/// The map line of a live process, as a dump would have recorded it.
fn mapping_of(pid: u32, address: u64) -> Mapping {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    maps.lines()
        .find_map(|line| {
            let fields: Vec<_> = line.split_ascii_whitespace().collect();
            let (start, end) = fields[0].split_once('-')?;
            let (major, minor) = fields[3].split_once(':')?;
            (hex(start)..hex(end)).contains(&address).then(|| Mapping {
                start: RuntimeAddress(hex(start)),
                end: RuntimeAddress(hex(end)),
                offset: FileOffset(hex(fields[2])),
                path: fields[5].into(),
                device: Some((hex(major) as u32, hex(minor) as u32)),
                inode: fields[4].parse().ok(),
                ..Mapping::default()
            })
        })
        .unwrap()
}

/// The binary was replaced while the process runs, as every deployment does: names come from the old one.
#[test]
fn live_process_whose_file_was_replaced() {
    let workshop = Workshop::new(&[("live.c", LIVE_C)]);
    workshop.cc(&["-g", "-O1", "-o", "live", "live.c"]);
    let mut child = Command::new(workshop.path("live")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = u64::from_str_radix(line.trim().trim_start_matches("0x"), 16).unwrap();
    let mapping = mapping_of(child.id(), address);
    let location = Location { mapping: Some(MappingId(0)), address: RuntimeAddress(address), ..Location::default() };
    let recorded = Profile { mappings: vec![mapping], locations: vec![location], ..Profile::default() };

    // The same code under another name, at the same path.
    std::fs::remove_file(workshop.path("live")).unwrap();
    std::fs::write(workshop.path("live.c"), LIVE_C.replace("inner", "other")).unwrap();
    workshop.cc(&["-g", "-O1", "-o", "live", "live.c"]);

    let mut offline = recorded.clone();
    let without_pid = symbolize(&mut offline, &SymbolizeOptions::default());
    let mut live = recorded;
    let options = SymbolizeOptions { pid: Some(child.id()), ..SymbolizeOptions::default() };
    let report = symbolize(&mut live, &options);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(name_of(&live, 0), ["inner"], "{report}");
    assert!(name_of(&offline, 0)[0].starts_with("live+0x"), "{without_pid}");
}
