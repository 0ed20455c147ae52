//! Damaged images: no panic, no hang, no memory out of proportion. `examples/fuzz_image.rs` does the same for hours.

use crate::go;
use crate::kit::{Workshop, names, source};
use crate::mutate::{Dice, Seed, exercise};
use offheap_symbolizer::frame::NameSource;

const SITE_CC: &str = r#"#include <vector>
namespace n { template <typename T> struct S { std::vector<T> v; void add(T t) { v.push_back(t); } }; }
int fill(int n) { n::S<int> s; for (int i = 0; i < n; i++) s.add(i); return s.v.size(); }
"#;

#[test]
fn damaged_images_are_read_to_some_end() {
    let workshop = Workshop::new(&[("site.cc", SITE_CC)]);
    for (out, args) in [
        ("dwarf5.so", &["-gdwarf-5"][..]),
        ("dwarf4.so", &["-gdwarf-4"]),
        ("zlib.so", &["-gz=zlib"]),
        ("lld.so", &["-fuse-ld=lld", "-gdwarf-5"]),
    ] {
        workshop.cxx(&[&["-g", "-O1", "-shared", "-fPIC", "-o", out, "site.cc"], args].concat());
        let seed = Seed::new(std::fs::read(workshop.path(out)).unwrap());
        let mut dice = Dice::new(1);
        let named: usize = (0..300).map(|_| exercise(&seed.mutated(&mut dice), &mut dice)).sum();
        assert!(named > 0, "{out}: faults must not be so many that nothing is ever reached");
    }
}

#[test]
fn damaged_go_tables_are_read_to_some_end() {
    for (toolchain, bytes) in go::stripped_images() {
        let seed = Seed::new(bytes);
        let mut dice = Dice::new(2);
        let named: usize = (0..100).map(|_| exercise(&seed.mutated(&mut dice), &mut dice)).sum();
        assert!(named > 0, "{}", toolchain.display());
    }
}

#[test]
fn the_last_address_of_all() {
    let workshop = Workshop::new(&[("site.cc", SITE_CC)]);
    workshop.cxx(&["-g", "-shared", "-fPIC", "-o", "site.so", "site.cc"]);
    let found = workshop.ask("site.so", &[u64::MAX, 0]);
    assert!(found.iter().all(Result::is_err), "{found:?}");
}

/// 400,000 inlined calls inside each other, one byte each: following them by recursion would take the whole stack.
const NESTED_S: &str = r#"
    .text
    .globl f
    .type f, @function
f:  .fill 16, 1, 0x90
    .size f, 16
    .section .debug_abbrev
    .uleb128 1, 0x11
    .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 2, 0x2e
    .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 3, 0x1d
    .byte 1
    .uleb128 0, 0
    .byte 0
    .section .debug_info
    .long 2f - 1f
1:  .short 4
    .long 0
    .byte 8
    .uleb128 1
    .quad f, 16
    .uleb128 2
    .quad f, 16
    .fill 400000, 1, 3
2:
"#;

#[test]
fn bottomless_inlining_is_left_to_the_symbol_table() {
    let workshop = Workshop::new(&[("nested.s", NESTED_S)]);
    workshop.cc(&["-shared", "-nostdlib", "-o", "nested.so", "nested.s"]);
    let (start, _) = workshop.functions("nested.so")["f"];
    let found = workshop.ask("nested.so", &[start + 4]);
    assert_eq!((names(&found[0]), source(&found[0])), (vec!["f"], Some(NameSource::Symtab)));
}
