//! Makes the cdylib export jemalloc's own symbols.
//!
//! rustc gives a cdylib a version script that hides everything but its own `#[no_mangle]` items, and so would hide
//! `malloc`. lld accepts a second script and merges both. `-u` pulls the members out of the static archive even though
//! nothing in Rust refers to them. `-Bsymbolic-functions` keeps the agent's own calls inside the agent when the host
//! executable brings an allocator of its own, which the dynamic linker would otherwise prefer.

use std::{env, fs, path::PathBuf};

const EXPORTS: &[&str] = &[
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "free_sized",
    "free_aligned_sized",
    "mallctl",
    "mallctlnametomib",
    "mallctlbymib",
    "malloc_stats_print",
    "mallocx",
    "rallocx",
    "xallocx",
    "sallocx",
    "dallocx",
    "sdallocx",
    "nallocx",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return; // src/lib.rs refuses the target with a message
    }
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let script = out_dir.join("exports.map");
    let mut text = String::from("{\n  global:\n");
    for symbol in EXPORTS {
        text.push_str(&format!("    {symbol};\n"));
        println!("cargo:rustc-cdylib-link-arg=-Wl,-u,{symbol}");
    }
    text.push_str("};\n");
    fs::write(&script, text).expect("OUT_DIR is writable");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,now");
    // The agent cannot be unloaded: jemalloc, the hooks and the agent thread live in it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
