//! Debug information that is not in the image: separate, supplementary, split, compressed, or of another build.

use crate::kit::{Workshop, name_of, profile_of};
use offheap_symbolizer::frame::{NameSource, NoName};
use offheap_symbolizer::profile::Profile;
use offheap_symbolizer::{Report, SymbolizeOptions, symbolize};
use std::fs;

const SITE_C: &str = r#"#include <stdlib.h>
volatile int step;
static inline __attribute__((always_inline)) void *inlined(size_t n) { step = 2; void *p = malloc(n + 1); step = 3; return p; }
__attribute__((noinline)) static void *hidden(size_t n) { step = 1; char *p = inlined(n); step = 4; if (p) p[0] = 1; return p; }
void *site(size_t n) { char *p = hidden(n); if (p) p[0] = 2; return p; }
"#;

/// `libsite.so` with its debug information in `libsite.so.debug`, and an address inside the inlined call.
struct Split {
    workshop: Workshop,
    address: u64,
}

fn split(cc: &[&str], link: bool) -> Split {
    let workshop = Workshop::new(&[("site.c", SITE_C)]);
    fs::create_dir(workshop.path("bin")).unwrap();
    fs::create_dir(workshop.path("sym")).unwrap();
    workshop.cc(&[&["-g", "-O2", "-shared", "-fPIC", "-o", "full.so", "site.c"], cc].concat());
    let (hidden, size) = workshop.functions("full.so")["hidden"];
    let places = workshop.addr2line("full.so", &(hidden..hidden + size).collect::<Vec<_>>());
    let address = hidden + places.iter().position(|frames| frames.len() == 2).expect("an inlined call") as u64;
    workshop.run("objcopy", &["--only-keep-debug", "full.so", "libsite.so.debug"]);
    workshop.run("objcopy", &["--strip-all", "full.so", "bin/libsite.so"]);
    if link {
        workshop.run("objcopy", &["--add-gnu-debuglink=libsite.so.debug", "bin/libsite.so"]);
    }
    Split { workshop, address }
}

impl Split {
    fn profile(&self) -> Profile {
        profile_of(&self.workshop, "bin/libsite.so", &[self.address])
    }

    /// Name the address with the image in `bin` and whatever is in `sym`.
    fn symbolize(&self) -> (Vec<String>, Report) {
        self.symbolize_with(&["bin", "sym"])
    }

    fn symbolize_with(&self, symbols: &[&str]) -> (Vec<String>, Report) {
        let mut profile = self.profile();
        let symbols = symbols.iter().map(|dir| self.workshop.path(dir)).collect();
        let report = symbolize(&mut profile, &SymbolizeOptions { symbols, ..SymbolizeOptions::default() });
        (name_of(&profile, 0), report)
    }

    fn build_id(&self) -> String {
        let notes = self.workshop.run("readelf", &["-n", "full.so"]);
        notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap().to_owned()
    }

    fn give(&self, place: &str) {
        let to = self.workshop.path(place);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(self.workshop.path("libsite.so.debug"), to).unwrap();
    }
}

const NAMED: [&str; 2] = ["inlined", "hidden"];

#[test]
fn separate_debug_file_by_build_id_or_name() {
    let split = split(&["-Wl,--build-id=sha1"], false);
    let (names, report) = split.symbolize();
    assert!(names[0].starts_with("libsite.so+0x"), "{names:?}");
    assert!(!report.images[0].sources.contains(&NameSource::Dwarf));

    let id = split.build_id();
    let tree = format!("sym/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    for place in [&tree, "sym/libsite.so.debug", "sym/srv/lib/libsite.so.debug", "sym/old/whatever-its-name"] {
        split.give(place);
        let (names, report) = split.symbolize();
        assert_eq!(names, NAMED, "{place}\n{report}");
        assert_eq!(report.images[0].debug_file.as_deref(), Some(&*split.workshop.path(place)), "{place}");
        fs::remove_file(split.workshop.path(place)).unwrap();
    }
}

#[test]
fn debug_link_beside_the_image() {
    for build_id in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
        let split = split(&[build_id], true);
        for place in ["bin/libsite.so.debug", "bin/.debug/libsite.so.debug"] {
            split.give(place);
            let (names, report) = split.symbolize_with(&["bin"]);
            assert_eq!(names, NAMED, "{build_id} {place}\n{report}");
            fs::remove_file(split.workshop.path(place)).unwrap();
        }
    }
}

#[test]
fn debug_file_of_another_build_is_refused_and_said() {
    let split = split(&["-Wl,--build-id=sha1"], true);
    let other = split_of_another_build(&["-Wl,--build-id=sha1"]);
    fs::copy(other.workshop.path("libsite.so.debug"), split.workshop.path("sym/libsite.so.debug")).unwrap();
    let (names, report) = split.symbolize();
    assert!(names[0].starts_with("libsite.so+0x"), "{names:?}");
    assert_eq!(report.images[0].debug_file, None);
    assert!(report.to_string().contains(&format!("refused: its build id is {}", other.build_id())), "{report}");
}

#[test]
fn without_build_ids_crc_and_layout_decide() {
    let split = split(&["-Wl,--build-id=none"], true);
    let other = split_of_another_build(&["-Wl,--build-id=none"]);
    fs::copy(other.workshop.path("libsite.so.debug"), split.workshop.path("bin/.debug-file")).unwrap();
    fs::create_dir(split.workshop.path("bin/.debug")).unwrap();
    fs::rename(split.workshop.path("bin/.debug-file"), split.workshop.path("bin/.debug/libsite.so.debug")).unwrap();
    let (names, report) = split.symbolize_with(&["bin"]);
    assert!(names[0].starts_with("libsite.so+0x"), "{names:?}");
    assert!(report.to_string().contains("refused: its CRC"), "{report}");

    // Named by the user and without a link: the right one fits, the other does not.
    let unlinked = self::split(&["-Wl,--build-id=none"], false);
    fs::copy(other.workshop.path("libsite.so.debug"), unlinked.workshop.path("sym/libsite.so.debug")).unwrap();
    assert!(unlinked.symbolize().0[0].starts_with("libsite.so+0x"));
    unlinked.give("sym/libsite.so.debug");
    assert_eq!(unlinked.symbolize().0, NAMED);
}

fn split_of_another_build(cc: &[&str]) -> Split {
    split(&[cc, &["-O1", "-fno-omit-frame-pointer", "-DOTHER", "-falign-functions=64"]].concat(), false)
}

/// Only the debug file was kept: its headers still tell where the text was.
#[test]
fn debug_file_in_place_of_the_image() {
    for linker in ["-fuse-ld=bfd", "-fuse-ld=lld"] {
        for maker in ["objcopy", "eu-strip"] {
            let split = split(&["-Wl,--build-id=sha1", linker], false);
            if maker == "eu-strip" {
                split.workshop.run("eu-strip", &["-o", "x", "-f", "libsite.so.debug", "full.so"]);
            }
            split.give("sym/libsite.so.debug");
            let (names, report) = split.symbolize_with(&["sym"]);
            assert_eq!(names, NAMED, "{linker} {maker}\n{report}");
        }
    }
}

/// Distributions keep what several debug files share in a third file.
#[test]
fn dwz_supplementary_file() {
    let split = split(&["-Wl,--build-id=sha1", "-gdwarf-4"], false);
    let w = &split.workshop;
    // dwz moves what at least two files have.
    fs::copy(w.path("site.c"), w.path("site2.c")).unwrap();
    w.cc(&["-g", "-gdwarf-4", "-O2", "-shared", "-fPIC", "-o", "second.so", "site2.c"]);
    w.run("objcopy", &["--only-keep-debug", "second.so", "second.debug"]);
    fs::copy(w.path("libsite.so.debug"), w.path("sym/libsite.so.debug")).unwrap();
    fs::copy(w.path("second.debug"), w.path("sym/second.debug")).unwrap();
    w.run("dwz", &["-m", "sym/common.dwz", "-M", "common.dwz", "sym/libsite.so.debug", "sym/second.debug"]);
    let (names, report) = split.symbolize();
    assert_eq!(names, NAMED, "{report}");
    assert!(report.to_string().contains("common.dwz (supplementary debug file): accepted"), "{report}");

    fs::remove_file(w.path("sym/common.dwz")).unwrap();
    let (_, report) = split.symbolize();
    assert!(report.to_string().contains("common.dwz (supplementary debug file): no such file"), "{report}");
}

#[test]
fn split_units_loose_and_packed() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let workshop = Workshop::new(&[("site.c", SITE_C)]);
        for dir in ["build", "bin", "sym"] {
            fs::create_dir(workshop.path(dir)).unwrap();
        }
        // The unit names build/site.dwo from the directory of the compiler.
        workshop.cc(&["-g", "-gsplit-dwarf", version, "-O2", "-fPIC", "-c", "-o", "build/site.o", "site.c"]);
        workshop.cc(&["-shared", "-Wl,--build-id=sha1", "-o", "bin/libsite.so", "build/site.o"]);
        let (hidden, size) = workshop.functions("bin/libsite.so")["hidden"];
        let addresses: Vec<_> = (hidden..hidden + size).collect();
        let ask = |symbols: &[&str]| {
            let mut profile = profile_of(&workshop, "bin/libsite.so", &addresses);
            let symbols = symbols.iter().map(|dir| workshop.path(dir)).collect();
            let report = symbolize(&mut profile, &SymbolizeOptions { symbols, ..SymbolizeOptions::default() });
            let deepest = (0..addresses.len()).map(|l| name_of(&profile, l)).max_by_key(Vec::len).unwrap();
            (deepest, report)
        };
        assert_eq!(ask(&["bin"]).0, NAMED, "{version}: where the unit says");

        fs::rename(workshop.path("build/site.dwo"), workshop.path("sym/site.dwo")).unwrap();
        assert_eq!(ask(&["bin", "sym"]).0, NAMED, "{version}: beside the debug files");

        let (names, report) = ask(&["bin"]);
        assert_eq!(names, ["hidden"], "{version}: the symbol table is what is left");
        assert!(report.to_string().contains("site.dwo (split debug information): no such file"), "{report}");

        workshop.run("llvm-dwp", &["sym/site.dwo", "-o", "bin/libsite.so.dwp"]);
        fs::remove_file(workshop.path("sym/site.dwo")).unwrap();
        let (names, report) = ask(&["bin"]);
        assert_eq!(names, NAMED, "{version}: packed\n{report}");

        // A unit of another build has another id.
        fs::remove_file(workshop.path("bin/libsite.so.dwp")).unwrap();
        let other = ["-g", "-gsplit-dwarf", version, "-O1", "-fPIC", "-c", "-o", "build/site.o", "site.c"];
        workshop.cc(&other);
        assert_eq!(ask(&["bin"]).0, ["hidden"], "{version}: another build");
    }
}

#[test]
fn compressed_debug_files() {
    let split = split(&["-Wl,--build-id=sha1"], false);
    for kind in ["zlib", "zlib-gnu", "zstd"] {
        let flag = format!("--compress-debug-sections={kind}");
        split.workshop.run("objcopy", &[&flag, "libsite.so.debug", "sym/libsite.so.debug"]);
        let (names, report) = split.symbolize();
        assert_eq!(names, NAMED, "{kind}\n{report}");
    }
}

#[test]
fn sysroot_holds_images_and_debug_files() {
    let split = split(&["-Wl,--build-id=sha1"], true);
    let id = split.build_id();
    split.give(&format!("root/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    fs::create_dir_all(split.workshop.path("root/srv/lib")).unwrap();
    fs::copy(split.workshop.path("bin/libsite.so"), split.workshop.path("root/srv/lib/libsite.so")).unwrap();
    let mut profile = split.profile();
    profile.mappings[0].path = "/srv/lib/libsite.so".into();
    let options = SymbolizeOptions { sysroot: Some(split.workshop.path("root")), ..SymbolizeOptions::default() };
    let report = symbolize(&mut profile, &options);
    assert_eq!(name_of(&profile, 0), NAMED, "{report}");

    let mut profile = split.profile();
    let report = symbolize(&mut profile, &SymbolizeOptions::default());
    assert_eq!(report.images[0].unresolved.get(&NoName::NoImage), Some(&1));
}
