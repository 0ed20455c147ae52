//! C, C++ and Rust images against binutils.

use crate::kit::{Workshop, inside, names, places, source};
use offheap_symbolizer::frame::NameSource;
use offheap_symbolizer::image::{Elf, UnwindTable};

const LEAK_C: &str = r#"#include <stdlib.h>
#include <string.h>
static inline __attribute__((always_inline)) void *innermost(size_t n) {
  void *p = malloc(n);
  if (p) memset(p, 1, n);
  return p;
}
static inline __attribute__((always_inline)) void *middle(size_t n) {
  return innermost(n + 1);
}
__attribute__((noinline)) static void *hidden(size_t n) {
  void *p = malloc(n * 2);
  if (p) memset(p, 3, n);
  return p;
}
void *leak(size_t n) {
  if (n > 100) return hidden(n);
  return middle(n);
}
"#;

const LEAK_CC: &str = r#"#include <map>
#include <string>
#include <vector>
namespace store {
template <typename T> class Table {
 public:
  void put(const std::string &key, T value) { rows_[key].push_back(value); }
  size_t size() const { return rows_.size(); }
 private:
  std::map<std::string, std::vector<T>> rows_;
};
Table<int> table;
int fill(int n) {
  for (int i = 0; i < n; i++) table.put(std::to_string(i), i);
  return table.size();
}
}
int main(int argc, char **) { return store::fill(argc) == 0; }
"#;

const LEAK_RS: &str = r#"
use std::collections::BTreeMap;
#[derive(Default)]
struct Table<T> { rows: BTreeMap<String, Vec<T>> }
impl<T> Table<T> {
    fn put(&mut self, key: String, value: T) { self.rows.entry(key).or_default().push(value); }
}
#[inline(never)]
fn fill(n: usize) -> usize {
    let mut table = Table::default();
    for i in 0..n { table.put(i.to_string(), i); }
    table.rows.len()
}
fn main() { std::process::exit(fill(std::env::args().count()) as i32) }
"#;

/// Compare with addr2line all over the functions: at least `share` of the addresses must agree in every frame, and all
/// in the function that is not inlined.
fn assert_agreement(workshop: &Workshop, image: &str, wanted: impl Fn(&str) -> bool, share: f64) {
    let functions = workshop.functions(image);
    let addresses = inside(functions.iter().filter(|(name, _)| wanted(name)).map(|(_, range)| range), 2);
    assert!(addresses.len() > 20, "{image}: {} addresses", addresses.len());
    let (theirs, found) = (workshop.addr2line(image, &addresses), workshop.ask(image, &addresses));
    let mut differences = Vec::new();
    for ((address, theirs), found) in addresses.iter().zip(&theirs).zip(&found) {
        let ours = places(found);
        assert_eq!(ours.last().map(|f| &f.0), theirs.last().map(|f| &f.0), "{image} {address:#x}");
        assert_eq!(source(found), Some(NameSource::Dwarf));
        if ours != *theirs {
            differences.push(format!("{address:#x}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    let agreed = 1.0 - differences.len() as f64 / addresses.len() as f64;
    assert!(agreed >= share, "{image}: {agreed} agree\n{}", differences.join("\n"));
}

#[test]
fn c_agrees_with_addr2line() {
    let workshop = Workshop::new(&[("leak.c", LEAK_C)]);
    for (label, args) in [
        ("dwarf5.so", &["-gdwarf-5"][..]),
        ("dwarf4.so", &["-gdwarf-4"]),
        ("zlib.so", &["-gz=zlib"]),
        ("zlib-gnu.so", &["-gz=zlib-gnu"]),
        ("lld.so", &["-fuse-ld=lld"]),
    ] {
        workshop.cc(&[&["-g", "-O2", "-shared", "-fPIC", "-o", label, "leak.c"], args].concat());
        assert_agreement(&workshop, label, |name| name == "leak" || name == "hidden", 1.0);
    }
}

/// Compilers may leave the table out, and then units say themselves where their code is.
#[test]
fn without_aranges_all_is_found_as_well() {
    let workshop = Workshop::new(&[("leak.c", LEAK_C)]);
    workshop.cc(&["-g", "-O2", "-shared", "-fPIC", "-o", "with.so", "leak.c"]);
    workshop.run("objcopy", &["--remove-section=.debug_aranges", "with.so", "without.so"]);
    assert_agreement(&workshop, "without.so", |name| name == "leak" || name == "hidden", 1.0);
}

/// What the table says of one unit is taken whole or not at all.
#[test]
fn a_range_that_cannot_be_hides_nothing() {
    let workshop = Workshop::new(&[("leak.c", LEAK_C)]);
    workshop.cc(&["-g", "-O2", "-ffunction-sections", "-shared", "-fPIC", "-o", "leak.so", "leak.c"]);
    let sections = workshop.run("readelf", &["-SW", "leak.so"]);
    // Name, type, address, offset.
    let offset = sections.split(".debug_aranges").nth(1).unwrap().split_whitespace().nth(2).unwrap();
    let table = usize::from_str_radix(offset, 16).unwrap();
    let mut bytes = std::fs::read(workshop.path("leak.so")).unwrap();
    // Behind a header of 16 bytes, entries of an address and a length. The second one's length reaches beyond all memory.
    assert!(bytes[table + 32..table + 48].iter().any(|byte| *byte != 0), "two functions are two entries");
    bytes[table + 40..table + 48].fill(0xff);
    std::fs::write(workshop.path("damaged.so"), bytes).unwrap();
    assert_agreement(&workshop, "damaged.so", |name| name == "leak" || name == "hidden", 1.0);
}

/// The inside of a function is stepped over at first; a function can stand there (GNU C, Ada, Fortran).
#[test]
fn functions_inside_of_functions_are_found() {
    let nested = "void call(void (*f)(void)) { f(); }\n\
        int outer(int n) {\n\
        \u{20} volatile int sum = n;\n\
        \u{20} void inner(void) {\n\
        \u{20}   sum += n;\n\
        \u{20} }\n\
        \u{20} call(inner);\n\
        \u{20} return sum;\n\
        }\n";
    let workshop = Workshop::new(&[("nested.c", nested)]);
    workshop.cc(&["-g", "-O1", "-fno-inline", "-shared", "-fPIC", "-o", "nested.so", "nested.c"]);
    let functions = workshop.functions("nested.so");
    let (_, inner) = functions.iter().find(|(name, _)| name.starts_with("inner")).unwrap();
    let found = workshop.ask("nested.so", &inside([inner], 1));
    assert!(!found.is_empty());
    for found in &found {
        assert_eq!((source(found), names(found)), (Some(NameSource::Dwarf), vec!["inner"]));
        let line = found.as_ref().unwrap().1[0].line;
        assert!(line.is_some_and(|line| (4..=6).contains(&line)), "{line:?}");
    }
}

#[test]
fn cpp_agrees_with_addr2line() {
    let workshop = Workshop::new(&[("leak.cc", LEAK_CC)]);
    workshop.cxx(&["-g", "-O2", "-o", "leak", "leak.cc"]);
    assert_agreement(&workshop, "leak", |name| name.starts_with("_ZN5store") || name == "main", 0.97);
}

#[test]
fn rust_agrees_with_addr2line() {
    let workshop = Workshop::new(&[("leak.rs", LEAK_RS)]);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    workshop.run(rustc, &["-g", "-O", "-o", "leak", "leak.rs"]);
    assert_agreement(&workshop, "leak", |name| name.contains("4leak"), 0.97);
}

/// Dumps come from other machines than the analyst's. Without a C library for them: code that needs none.
#[test]
fn images_of_other_machines() {
    const BARE_C: &str = "static inline __attribute__((always_inline)) int inner(int x) {\n\
        \u{20} volatile int y = x;\n\
        \u{20} return y * 3;\n\
        }\n\
        __attribute__((noinline)) int outer(int n) {\n\
        \u{20} int sum = 0;\n\
        \u{20} for (int i = 0; i < n; i++) sum += inner(i);\n\
        \u{20} return sum;\n\
        }\n";
    let workshop = Workshop::new(&[("bare.c", BARE_C)]);
    for target in ["i386-linux-gnu", "armv7-linux-gnueabihf", "aarch64-linux-gnu", "riscv64-linux-gnu"] {
        let (object, image) = (format!("{target}.o"), format!("{target}.so"));
        let machine = format!("--target={target}");
        workshop.run("clang", &[&machine, "-g", "-O1", "-fPIC", "-c", "-o", &object, "bare.c"]);
        workshop.run("ld.lld", &["-shared", "-o", &image, &object]);
        let bytes = std::fs::read(workshop.path(&image)).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        let text = elf.segments().iter().find(|segment| segment.executable).unwrap();
        let addresses: Vec<u64> = (text.address.0..text.address.0 + text.file_size).step_by(4).collect();
        let (theirs, found) = (workshop.llvm_symbolizer(&image, &addresses), workshop.ask(&image, &addresses));
        let named: Vec<_> = addresses.iter().zip(&theirs).zip(&found).filter(|(_, found)| found.is_ok()).collect();
        assert!(named.iter().any(|(_, found)| names(found) == ["inner", "outer"]), "{target}: {found:?}");
        for ((address, theirs), found) in named {
            assert_eq!(places(found), *theirs, "{target} {address:#x}");
        }
    }
}

/// lld packs segments: p_offset of the text is not its p_vaddr.
#[test]
fn lld_layout_differs_and_inlined_calls_are_found() {
    let workshop = Workshop::new(&[("leak.c", LEAK_C)]);
    workshop.cc(&["-g", "-O2", "-shared", "-fPIC", "-fuse-ld=lld", "-o", "lld.so", "leak.c"]);
    let bytes = std::fs::read(workshop.path("lld.so")).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    let text = elf.segments().iter().find(|s| s.executable).unwrap().clone();
    assert_ne!(text.offset.0, text.address.0, "lld lays them out apart");

    let found = workshop.ask("lld.so", &inside([&workshop.functions("lld.so")["leak"]], 1));
    let deepest = found.iter().max_by_key(|found| names(found).len()).unwrap();
    assert_eq!(names(deepest), ["innermost", "middle", "leak"]);
}

#[test]
fn stripped_library_names_only_what_it_exports() {
    let workshop = Workshop::new(&[("leak.c", LEAK_C)]);
    workshop.cc(&["-g", "-O2", "-shared", "-fPIC", "-o", "full.so", "leak.c"]);
    workshop.run("strip", &["-o", "stripped.so", "full.so"]);
    let functions = workshop.functions("full.so");
    let (leak, hidden) = (functions["leak"], functions["hidden"]);
    let addresses = [leak.0, leak.0 + leak.1 - 1, hidden.0, hidden.0 + hidden.1 - 1];
    let found = workshop.ask("stripped.so", &addresses);
    assert_eq!(found.iter().map(names).collect::<Vec<_>>(), [vec!["leak"], vec!["leak"], vec![], vec![]]);
    assert_eq!(source(&found[0]), Some(NameSource::Dynsym));

    // The unwind table still knows where the nameless function starts.
    let bytes = std::fs::read(workshop.path("stripped.so")).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    let bounds =
        UnwindTable::load(&elf).unwrap().function(offheap_symbolizer::address::ImageAddress(hidden.0 + 4)).unwrap();
    assert_eq!((bounds.start.0, bounds.end.0), (hidden.0, hidden.0 + hidden.1));
}

#[test]
fn symtab_without_debug_info() {
    let workshop = Workshop::new(&[("leak.c", LEAK_C)]);
    workshop.cc(&["-O2", "-shared", "-fPIC", "-o", "nodebug.so", "leak.c"]);
    let hidden = workshop.functions("nodebug.so")["hidden"];
    let found = workshop.ask("nodebug.so", &[hidden.0 + 4]);
    assert_eq!((names(&found[0]), source(&found[0])), (vec!["hidden"], Some(NameSource::Symtab)));
}

/// What Fedora leaves in stripped libraries.
#[test]
fn gnu_debugdata() {
    let workshop = Workshop::new(&[("leak.c", LEAK_C)]);
    workshop.cc(&["-O2", "-shared", "-fPIC", "-o", "full.so", "leak.c"]);
    let hidden = workshop.functions("full.so")["hidden"];
    workshop.run("objcopy", &["--only-keep-debug", "full.so", "mini"]);
    workshop.run("xz", &["mini"]);
    workshop.run("strip", &["-o", "stripped.so", "full.so"]);
    workshop.run("objcopy", &["--add-section", ".gnu_debugdata=mini.xz", "stripped.so"]);
    let found = workshop.ask("stripped.so", &[hidden.0 + 4]);
    assert_eq!((names(&found[0]), source(&found[0])), (vec!["hidden"], Some(NameSource::GnuDebugdata)));
}

#[test]
fn many_addresses_in_any_order_are_named_as_each_by_itself() {
    const UNITS: usize = 12;
    let name = |unit: usize| format!("unit{unit}.c");
    let function = |unit: usize, it: usize| {
        format!(
            "__attribute__((section(\".text.u{unit}_{it}\"))) int f{unit}_{it}(int n) {{\n  n += {it};\n  return n * {unit};\n}}\n"
        )
    };
    let text = |unit: usize| (0..30).map(|it| function(unit, it)).collect::<String>();
    let sources: Vec<_> = (0..UNITS).map(|unit| (name(unit), text(unit))).collect();
    let sources: Vec<_> = sources.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let workshop = Workshop::new(&sources);
    let files: Vec<_> = sources.iter().map(|(name, _)| *name).collect();
    workshop.cc(&[&["-g", "-O1", "-shared", "-fPIC", "-o", "units.so"], &files[..]].concat());

    // Every byte of the functions, far from the order of addresses; 7,919 is a prime.
    let functions = workshop.functions("units.so");
    let inside: Vec<u64> = functions.values().flat_map(|(start, size)| *start..start + size).collect();
    let addresses: Vec<u64> = (0..inside.len()).map(|at| inside[at * 7919 % inside.len()]).collect();
    let found = workshop.ask("units.so", &addresses);
    assert_eq!(found.len(), addresses.len());
    for ((address, found), expected) in
        addresses.iter().zip(&found).zip(workshop.addr2line("units.so", &addresses)).filter(|(_, it)| it[0].2 > 0)
    {
        assert_eq!(places(found), expected, "{address:#x}");
    }
    let named = found.iter().filter(|found| names(found)[0].starts_with('f')).count();
    assert!(named > UNITS * 30 * 4, "{named} of {}", addresses.len());
}
