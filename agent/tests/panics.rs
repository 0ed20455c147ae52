//! No panic leaves the agent: looked up in the library as it was built.
//!
//! A function that C can call must not unwind. Where something in it may, the compiler puts a call of
//! `panic_cannot_unwind`, which ends the process. That the catching itself works is tested beside the code.

mod kit;

use kit::{agent, is_installed, skip};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn output(program: &str, arguments: &[&str], library: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(library).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Functions with a call of this one, directly or through its slot in the global offset table.
fn callers(library: &Path, callee: &str) -> BTreeSet<String> {
    let symbols = output("nm", &[], library);
    let address = symbols.lines().find(|line| line.contains(callee)).and_then(|line| hex(line.split(' ').next()?));
    let address = address.unwrap_or_else(|| panic!("the library has no {callee}: what ends a process now?"));
    // 0000000000208628  0000000000000008 R_X86_64_RELATIVE                         1f1963
    let relocations = output("readelf", &["-rW"], library);
    let slots = relocations.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let slot = hex(fields.next()?)?;
        (hex(fields.next_back()?)? == address).then_some(slot)
    });
    // "   b48d0:  call   *0x15a3f2(%rip)        # 208628 <…>", or "call   1f1963 <…>"
    let wanted: BTreeSet<u64> = slots.chain([address]).collect();
    let mut found = BTreeSet::new();
    let mut function = "";
    let code = output("objdump", &["-dC", "--no-show-raw-insn"], library);
    for line in code.lines() {
        // "00000000000b48d0 <offheap_agent::hot::samples::sample>:"
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            function = name.1;
            continue;
        }
        let target = line.split_once("# ").or_else(|| line.split_once("call   ")).map(|(_, target)| target);
        let target = target.and_then(|target| hex(target.split(' ').next()?));
        if target.is_some_and(|target| wanted.contains(&target)) {
            found.insert(function.to_owned());
        }
    }
    found
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "reads instructions of x86-64")]
fn no_function_that_c_calls_ends_the_host_by_a_panic() {
    if !["nm", "readelf", "objdump"].into_iter().all(is_installed) {
        skip("needs binutils");
        return;
    }
    let callers = callers(&agent(), "panic_cannot_unwind");
    assert!(callers.iter().any(|name| name.contains("boundary::contain")), "the search finds nothing: {callers:?}");
    // Rust's own library: the start of a thread, whose body the agent contains, the unwinder, and the printing of a
    // backtrace, which the agent has none of.
    let rusts = ["std::", "<std::", "core::", "<core::", "__rustc::", "panic_unwind::", "rust_eh_personality"];
    let ours: Vec<_> = callers
        .iter()
        .filter(|name| !rusts.iter().any(|part| name.starts_with(part)) && !name.contains("boundary::contain"))
        .collect();
    assert!(ours.is_empty(), "these would end the host if something in them panicked: {ours:#?}");
}
