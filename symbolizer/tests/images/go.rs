//! Go images: whatever is stripped, Go code has the same names, lines and inlined calls.

use crate::kit::{Workshop, inside, names, places, source};
use offheap_symbolizer::frame::NameSource;
use std::path::{Path, PathBuf};

const MAIN_GO: &str = r#"package main

/*
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void *c_touch(size_t n) { void *p = malloc(n); memset(p, 1, n); return p; }
__attribute__((noinline)) static void *c_leak(size_t n) { char *p = c_touch(n); p[0] = 2; return p; }
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
)

type server struct{ n int }

func (s *server) leak() int { return s.inner(func(i int) int { C.c_leak(C.size_t(i)); return i }) }

//go:noinline
func (s *server) inner(f func(int) int) int { s.n++; return f(s.n) + add(s.n) }

func add(i int) int { return twice(i) + 1 }

func twice(i int) int { return i * len(os.Args) }

//go:noinline
func mapped[T any](in []T, f func(T) T) []T {
	out := make([]T, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

func main() {
	s := &server{}
	fmt.Println(s.leak(), mapped(os.Args, strings.ToUpper), mapped([]int{1}, add))
}
"#;

/// Every Go on this machine: the default one and Debian's versioned ones.
fn toolchains() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|dir| dir.join("go")).find(|go| go.is_file());
    let usual = PathBuf::from("/usr/local/go/bin/go");
    let mut found: Vec<_> = on_path.or(usual.is_file().then_some(usual)).into_iter().collect();
    let versioned = std::fs::read_dir("/usr/lib").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    found.extend(versioned.filter(|p| is_versioned(p)).map(|dir| dir.join("bin/go")).filter(|go| go.is_file()));
    assert!(!found.is_empty(), "no Go toolchain; scripts/setup installs one");
    found
}

fn is_versioned(dir: &Path) -> bool {
    dir.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("go-1."))
}

fn build(workshop: &Workshop, go: &Path, out: &str, args: &[&str], env: &[(&str, &str)]) {
    // A wrapper named by GOFLAGS or a newer toolchain in go.mod would build with another Go than the one meant.
    let env = [&[("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("GO111MODULE", "on")], env].concat();
    workshop.run_with(go, &[&["build", "-o", out], args, &["."]].concat(), &env);
}

fn workshop() -> Workshop {
    Workshop::new(&[("go.mod", "module svc\n\ngo 1.19\n"), ("main.go", MAIN_GO)])
}

/// A position-independent image without symbols of each toolchain.
pub(crate) fn stripped_images() -> Vec<(PathBuf, Vec<u8>)> {
    let image = |go: PathBuf| {
        let workshop = workshop();
        build(&workshop, &go, "svc", &["-buildmode=pie", "-ldflags", "-w -s"], &[]);
        let bytes = std::fs::read(workshop.path("svc")).unwrap();
        (go, bytes)
    };
    toolchains().into_iter().map(image).collect()
}

#[test]
fn stripped_and_position_independent_images_read_like_plain_ones() {
    for go in toolchains() {
        let workshop = workshop();
        let label = go.display();
        let builds: [(&str, &[&str]); 4] = [
            ("plain", &[]),
            ("stripped", &["-ldflags", "-w -s"]),
            ("pie", &["-buildmode=pie"]),
            ("pie-stripped", &["-buildmode=pie", "-ldflags", "-w -s"]),
        ];
        for (out, args) in builds {
            build(&workshop, &go, out, args, &[]);
        }
        for (plain, stripped) in [("plain", "stripped"), ("pie", "pie-stripped")] {
            // The linker lays the text of both out alike, so one has the other's symbols.
            let functions = workshop.functions(plain);
            let ours = functions.iter().filter(|(name, _)| name.starts_with("main.") || name.starts_with("strings."));
            let addresses = inside(ours.map(|(_, range)| range), 3);
            assert!(addresses.len() > 1000, "{label}: {} addresses", addresses.len());
            let (full, bare) = (workshop.ask(plain, &addresses), workshop.ask(stripped, &addresses));
            for ((address, full), bare) in addresses.iter().zip(&full).zip(&bare) {
                assert_eq!(full, bare, "{label} {plain} {address:#x}");
                assert_eq!(source(bare), Some(NameSource::Gopclntab), "{label} {stripped} {address:#x}");
            }
        }
    }
}

#[test]
fn inlined_calls() {
    for go in toolchains() {
        let workshop = workshop();
        build(&workshop, &go, "svc", &["-ldflags", "-w -s"], &[]);
        build(&workshop, &go, "with-symbols", &[], &[]);
        let inner = workshop.functions("with-symbols")["main.(*server).inner"];
        let found = workshop.ask("svc", &inside([&inner], 1));
        let deepest = found.iter().max_by_key(|found| names(found).len()).unwrap();
        let expected = [("main.twice", 26), ("main.add", 24), ("main.(*server).inner", 22)];
        let expected = expected.map(|(name, line)| (name.to_owned(), "main.go".to_owned(), line));
        assert_eq!(places(deepest), expected, "{}", go.display());
        let (_, frames) = deepest.as_ref().unwrap();
        assert_eq!(frames.iter().map(|f| f.inlined).collect::<Vec<_>>(), [true, true, false]);
    }
}

/// The oracle for a table without symbols is the same image with DWARF, read by another tool.
#[test]
fn agrees_with_llvm_symbolizer() {
    for go in toolchains() {
        let workshop = workshop();
        build(&workshop, &go, "svc", &["-ldflags", "-compressdwarf=false"], &[]);
        let functions = workshop.functions("svc");
        let ours = functions.iter().filter(|(name, _)| name.starts_with("main.(*server)") || *name == "main.add");
        let addresses = inside(ours.map(|(_, range)| range), 1);
        let (theirs, found) = (workshop.llvm_symbolizer("svc", &addresses), workshop.ask("svc", &addresses));
        let mut compared = 0;
        for ((address, theirs), found) in addresses.iter().zip(theirs).zip(&found) {
            // It leaves the line out where the line table has no row.
            if theirs.iter().all(|(_, _, line)| *line != 0) {
                compared += 1;
                let ours = places(found);
                assert_eq!(ours[0], theirs[0], "{} {address:#x}", go.display());
                // The DWARF of Go 1.19 has wrong lines of inlined calls, which `inlined_calls` has by their source.
                let functions = theirs.iter().map(|(function, ..)| function.as_str());
                assert!(functions.eq(names(found)), "{} {address:#x}: {ours:?} {theirs:?}", go.display());
            }
        }
        assert!(compared * 10 > addresses.len() * 9, "{compared} of {}", addresses.len());
    }
}

/// The C code of a cgo binary follows the Go text: the last Go function must not swallow it.
#[test]
fn c_code_of_a_stripped_image_has_no_go_name() {
    for go in toolchains() {
        let workshop = workshop();
        build(&workshop, &go, "plain", &[], &[]);
        build(&workshop, &go, "stripped", &["-ldflags", "-w -s"], &[]);
        let functions = workshop.functions("plain");
        for name in ["c_touch", "c_leak"] {
            let (start, size) = functions[name];
            for (image, expected) in [("plain", Some(name)), ("stripped", None)] {
                let found = workshop.ask(image, &[start, start + size - 1]);
                for found in found {
                    assert_eq!(names(&found).last().copied(), expected, "{} {image}", go.display());
                }
            }
        }
    }
}

#[test]
fn without_cgo_and_without_section_headers() {
    let pure = MAIN_GO.replace("C.c_leak(C.size_t(i)); ", "").replace("import \"C\"", "");
    for go in toolchains() {
        let workshop = Workshop::new(&[("go.mod", "module svc\n\ngo 1.19\n"), ("main.go", &pure)]);
        build(&workshop, &go, "svc", &[], &[("CGO_ENABLED", "0")]);
        let (start, _) = workshop.functions("svc")["main.main"];
        let mut bytes = std::fs::read(workshop.path("svc")).unwrap();
        // e_shoff, e_shnum and e_shstrndx of a 64-bit header.
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
        std::fs::write(workshop.path("headless"), &bytes).unwrap();
        for image in ["svc", "headless"] {
            let found = workshop.ask(image, &[start + 4]);
            assert_eq!(names(&found[0]), ["main.main"], "{} {image}", go.display());
            assert_eq!(source(&found[0]), Some(NameSource::Gopclntab));
        }
    }
}
