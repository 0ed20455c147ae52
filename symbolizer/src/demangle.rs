//! Names for people.

mod tidy;

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Longer linkage names stay as they are. (The longest in a RocksDB build with debug info has 3 KiB.)
const MANGLED_MAX: usize = 16 << 10;
/// A name that grows past this stays mangled: substitutions make exponential growth possible.
const DEMANGLED_MAX: usize = 16 << 10;
/// Nesting depth. Template-heavy C++ reaches some dozens.
const DEPTH_MAX: u32 = 96;

/// Demangle Rust (v0 and legacy) and Itanium C++ names; every other name, Go's above all, stays as it is.
///
/// C++ names come without parameters and return types, as `go tool pprof` and `jeprof` show them.
#[must_use]
pub fn demangle(name: &str) -> Cow<'_, str> {
    let demangled = if name.len() > MANGLED_MAX || !name.is_ascii() {
        None
    } else if name.starts_with("_R") || is_legacy_rust(name) {
        rust(name)
    } else if name.starts_with("_Z") || name.starts_with("___Z") {
        cpp(name)
    } else {
        None
    };
    demangled.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Legacy Rust names are C++ names whose last component is a hash, `17h` and 16 hex digits; compilers may append
/// `.llvm.123` and the like.
fn is_legacy_rust(name: &str) -> bool {
    name.starts_with("_ZN")
        && name.rfind("17h").is_some_and(|at| {
            let hash = name.as_bytes().get(at + 3..at + 19);
            hash.is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit))
                && name.as_bytes().get(at + 19) == Some(&b'E')
        })
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded(String::new());
    // The alternate form leaves the hash out.
    write!(out, "{demangled:#}").ok()?;
    Some(out.0)
}

fn cpp(name: &str) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(DEPTH_MAX);
    let print = DemangleOptions::new().no_params().no_return_type().recursion_limit(DEPTH_MAX);
    let symbol = Symbol::new_with_options(name, &parse).ok()?;
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &print).ok()?;
    Some(tidy::tidy(name, out.0))
}

/// A string that refuses to outgrow [`DEMANGLED_MAX`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.0.len() + piece.len() > DEMANGLED_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names() {
        for (mangled, expected) in [
            ("malloc", "malloc"),
            ("main.(*Server).leak", "main.(*Server).leak"),
            ("main.Map[go.shape.int].func1", "main.Map[go.shape.int].func1"),
            ("_cgo_0123456789ab_Cfunc_leak", "_cgo_0123456789ab_Cfunc_leak"),
            ("_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar"),
            ("_RNvMs_NtCs1234_5alloc3vecINtB4_3VechE4push", "<alloc::vec::Vec<u8>>::push"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.42", "core::fmt::Formatter::pad"),
            ("_ZN7rocksdb6DBImpl5WriteERKNS_12WriteOptionsEPNS_10WriteBatchE", "rocksdb::DBImpl::Write"),
            ("_Znwm", "operator new"),
            ("_ZdlPv", "operator delete"),
            ("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back"),
            ("_ZN4llvm15AnalysisManagerINS_6ModuleEJEEC1Ev", "llvm::AnalysisManager<llvm::Module>::AnalysisManager"),
            ("_ZN4llvm11SmallVectorIcLj16EED2Ev", "llvm::SmallVector<char, 16u>::~SmallVector"),
            (
                "_ZZN4llvm10AsmPrinter16emitFunctionBodyEvENK3$_0clEj",
                "llvm::AsmPrinter::emitFunctionBody()::$_0::operator()",
            ),
            ("_Zzzz", "_Zzzz"),
            ("_R", "_R"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn hostile_names_stay_mangled() {
        // Each S_ doubles what came before.
        let doubling = format!("_Z1fI{}E", "1AIS_S_S_S_S_S_".repeat(200));
        let deep = format!("_Z1fI{}iE", "P".repeat(10_000));
        let long = format!("_ZN{}3fooE", "1a".repeat(20_000));
        for name in [doubling, deep, long] {
            let out = demangle(&name);
            assert!(out.len() <= DEMANGLED_MAX || out == name);
        }
    }

    proptest! {
        #[test]
        fn any_name_is_bounded(tail in "[A-Za-z0-9_$.]{0,200}", head in "_Z|_ZN|_R|_RNv|_ZNSt") {
            let name = format!("{head}{tail}");
            let out = demangle(&name);
            prop_assert!(out.len() <= DEMANGLED_MAX);
        }
    }
}
