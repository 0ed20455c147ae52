//! Files that the user names, for dumps that know no build ids.

use crate::kit::{Workshop, name_of, profile_of};
use offheap_symbolizer::formats;
use offheap_symbolizer::modules::{Verdict, fixed_mappings};
use offheap_symbolizer::{SymbolizeOptions, symbolize};
use std::fs;

const MAIN_C: &str = r#"#include <stdlib.h>
__attribute__((noinline)) char *keep(size_t n) { char *p = malloc(n); p[0] = 1; return p; }
#ifdef PADDED
__attribute__((used)) static void padding(void) { __asm__(".fill 131072, 1, 0x90"); }
#endif
int main(int argc, char **argv) { return keep(argc)[0] + (argv != 0); }
"#;

/// Names of an address in `keep` of the program, and what was said of the files of one place.
fn ask(workshop: &Workshop, program: &str, options: &SymbolizeOptions) -> (Vec<String>, Vec<Verdict>) {
    let keep = workshop.functions(program)["keep"].0 + 4;
    let mut profile = profile_of(workshop, program, &[keep]);
    let report = symbolize(&mut profile, options);
    let looked_at = report.images[0].looked_at.iter();
    (name_of(&profile, 0), looked_at.map(|c| c.verdict.clone()).filter(|v| *v != Verdict::Missing).collect())
}

fn workshop() -> Workshop {
    let workshop = Workshop::new(&[("main.c", MAIN_C)]);
    fs::create_dir(workshop.path("sym")).unwrap();
    workshop.cc(&["-g", "-O1", "-DPADDED", "-o", "ledgerd", "main.c"]);
    workshop
}

/// Code of another size cannot be what was mapped, even where it is large enough.
#[test]
fn another_build_named_by_the_user_is_refused() {
    let workshop = workshop();
    workshop.cc(&["-g", "-O1", "-o", "smaller", "main.c"]);
    let with = |binary: &str| SymbolizeOptions { binary: Some(workshop.path(binary)), ..SymbolizeOptions::default() };
    assert_eq!(ask(&workshop, "ledgerd", &with("ledgerd")).0, ["keep"]);
    assert_eq!(ask(&workshop, "smaller", &with("smaller")).0, ["keep"]);
    let (names, verdicts) = ask(&workshop, "smaller", &with("ledgerd"));
    assert_eq!(
        (names[0].split_once('+').map(|(module, _)| module), &verdicts[..]),
        (Some("smaller"), &[Verdict::LayoutDiffers][..])
    );
    assert_eq!(ask(&workshop, "ledgerd", &with("smaller")).1, [Verdict::LayoutDiffers]);
}

#[test]
fn a_file_under_another_name_is_taken_when_it_is_the_only_one_that_fits() {
    let workshop = workshop();
    let with = |place: &str| SymbolizeOptions { symbols: vec![workshop.path(place)], ..SymbolizeOptions::default() };
    fs::copy(workshop.path("ledgerd"), workshop.path("sym/release-7")).unwrap();
    for place in ["sym", "sym/release-7"] {
        assert_eq!(ask(&workshop, "ledgerd", &with(place)).0, ["keep"], "{place}");
    }
    // A program of a page of code has the layout of many others.
    workshop.cc(&["-g", "-O1", "-o", "small", "main.c"]);
    fs::copy(workshop.path("small"), workshop.path("sym/small-7")).unwrap();
    fs::copy(workshop.path("small"), workshop.path("sym/unrelated")).unwrap();
    assert_eq!(ask(&workshop, "small", &with("sym/unrelated")).1, []);
    assert_eq!(ask(&workshop, "small", &with("sym")).0, ["keep"], "its name begins like the module's");

    fs::copy(workshop.path("ledgerd"), workshop.path("sym/release-8")).unwrap();
    let (names, verdicts) = ask(&workshop, "ledgerd", &with("sym"));
    assert!(names[0].starts_with("ledgerd+0x"), "{names:?}");
    assert_eq!(verdicts, [Verdict::Ambiguous, Verdict::Ambiguous]);
}

#[test]
fn programs_at_fixed_addresses_need_no_map_section() {
    let workshop = workshop();
    workshop.cc(&["-g", "-O1", "-no-pie", "-o", "fixed", "main.c"]);
    let keep = workshop.functions("fixed")["keep"].0;
    let mappings = fixed_mappings(&workshop.path("fixed")).expect("fixed addresses");
    assert!(mappings.iter().any(|m| m.start.0 <= keep && keep < m.end.0), "{mappings:?}");
    assert!(fixed_mappings(&workshop.path("ledgerd")).unwrap_err().contains("--maps"));
    assert!(fixed_mappings(&workshop.path("main.c")).unwrap_err().contains("not an ELF file"));
}

/// Prints a dump of itself with six stacks of one frame.
const DUMPS_C: &str = r#"#include <stdio.h>
#ifdef OTHER
#define SHIFT __asm__ volatile(".fill 7, 1, 0x90")
#else
#define SHIFT
#endif
__attribute__((noinline)) void site(void) {
    printf("@ %p\n  t*: 1: 524288 [0: 0]\n", __builtin_return_address(0));
    __asm__ volatile("");
}
int main(void) {
    printf("heap_v2/1\n  t*: 6: 3145728 [0: 0]\n");
    SHIFT; site(); SHIFT; site(); SHIFT; site(); SHIFT; site(); SHIFT; site(); SHIFT; site();
    printf("\nMAPPED_LIBRARIES:\n");
    fflush(stdout);
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int c; (c = getc(maps)) != EOF;) putchar(c);
    return 0;
}
"#;

/// Dumps know no build ids, another build may fill the same pages, and one that was copied over the old file has even its
/// inode. But where the recorded calls were it has other code.
#[test]
fn another_build_of_the_same_layout_is_known_by_its_calls() {
    let workshop = Workshop::new(&[("main.c", DUMPS_C)]);
    workshop.cc(&["-g", "-O1", "-o", "svc", "main.c"]);
    workshop.cc(&["-g", "-O1", "-DOTHER", "-o", "other", "main.c"]);
    fs::copy(workshop.path("svc"), workshop.path("kept")).unwrap();
    let dump = workshop.run(workshop.path("svc"), &[]);
    let ask = |options: &SymbolizeOptions| {
        let mut profile = formats::parse(dump.as_bytes()).unwrap().profile;
        let report = symbolize(&mut profile, options);
        let image = report.images.iter().find(|image| image.path.ends_with("/svc")).unwrap();
        (name_of(&profile, 0), image.looked_at[0].verdict.clone())
    };
    let with = |binary: &str| SymbolizeOptions { binary: Some(workshop.path(binary)), ..SymbolizeOptions::default() };
    let nothing = SymbolizeOptions::default();
    assert_eq!(ask(&nothing), (vec!["main".to_owned()], Verdict::Accepted));

    // `fs::copy` writes into the file that is there.
    fs::copy(workshop.path("other"), workshop.path("svc")).unwrap();
    for (label, options) in [("copied over", &nothing), ("named", &with("other"))] {
        let (names, verdict) = ask(options);
        assert!(matches!(verdict, Verdict::CallsDiffer { of: 6, .. }), "{label}: {verdict:?}");
        assert!(names[0].starts_with("svc+0x"), "{label}: {names:?}");
    }
    assert_eq!(ask(&with("kept")), (vec!["main".to_owned()], Verdict::Accepted));
}
