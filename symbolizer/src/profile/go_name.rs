//! What the name of a function says when Go and C stand in one stack.
//!
//! ```text
//! main.handler                          Go
//! github.com/acme/store.(*DB).Put       Go
//! main._Cfunc_store_put                 Go: the stub through which Go calls C
//! _cgoexp_4f5a_goCallback               Go: the stub through which C calls Go
//! runtime.cgocall, runtime/cgo.x        Go: the runtime
//! _cgo_4f5a_Cfunc_store_put             C, made by cgo
//! rocksdb::DB::Put(…), store_put.cold   C++ and C
//! ```

use super::Function;
use std::borrow::Cow;

/// The function is written in Go (or in Go's assembler).
///
/// Its name has a package: a dot after the last slash, where C has none but for suffixes of the compiler (`.cold`,
/// `.part.0`), and C++ and Rust have `::` or parentheses before it. And its file, where it is known, is Go's. The file
/// alone does not tell: C written above `import "C"` has the line information of that `.go` file.
#[must_use]
pub fn is_go(function: &Function) -> bool {
    let of_go = |file: &str| file.is_empty() || file.ends_with(".go") || file.ends_with(".s");
    of_go(&function.file) && has_package(&function.name)
}

fn has_package(name: &str) -> bool {
    const COMPILER_SUFFIXES: [&str; 9] =
        ["cold", "part", "isra", "constprop", "llvm", "lto_priv", "localalias", "clone", "so"];
    let type_arguments = name.find('[').unwrap_or(name.len());
    let base = name[..type_arguments].rfind('/').map_or(name, |n| &name[n + 1..]);
    let Some((package, symbol)) = base.split_once('.') else { return name.starts_with("_cgoexp_") };
    let first = symbol.split(['.', '+']).next().unwrap_or_default();
    !package.is_empty()
        && !symbol.is_empty()
        && !package.contains([':', '(', '<', ' ', '+', '['])
        && !name.contains("::")
        && !COMPILER_SUFFIXES.contains(&first)
}

/// The function belongs to Go's runtime.
#[must_use]
pub fn is_runtime(name: &str) -> bool {
    ["runtime.", "runtime/", "internal/runtime/"].iter().any(|prefix| name.starts_with(prefix))
}

/// The function is a stub that cgo made for a call from Go to C or from C to Go.
#[must_use]
pub fn is_cgo_stub(name: &str) -> bool {
    let base = name.rfind('/').map_or(name, |n| &name[n + 1..]);
    let symbol = base.split_once('.').map_or(base, |(_, symbol)| symbol);
    ["_Cfunc_", "_C2func_", "_Cmacro_", "_cgoexp_", "_cgo_"].iter().any(|prefix| symbol.starts_with(prefix))
}

/// The name as Go's own profiles show it: type arguments as `[...]`, no ABI suffix.
///
/// ```text
/// main.(*Cache[go.shape.int]).Add  ->  main.(*Cache[...]).Add        runtime.asmcgocall.abi0  ->  runtime.asmcgocall
/// ```
#[must_use]
pub fn shown(name: &str) -> Cow<'_, str> {
    let name = name.strip_suffix(".abi0").or_else(|| name.strip_suffix(".abiinternal")).unwrap_or(name);
    let (Some(open), Some(close)) = (name.find('['), name.rfind(']')) else { return Cow::Borrowed(name) };
    if close < open || &name[open..=close] == "[...]" {
        return Cow::Borrowed(name);
    }
    let mut shown = String::with_capacity(name.len());
    let mut depth = 0_usize;
    for c in name.chars() {
        match c {
            '[' => {
                if depth == 0 {
                    shown.push_str("[...");
                }
                depth += 1;
            }
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The function that `name` is a closure of: `main.handler` for `main.handler.func1`.
#[must_use]
pub fn enclosing(name: &str) -> Option<&str> {
    let (outer, closure) = name.rsplit_once('.')?;
    let number = closure.strip_prefix("func")?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(outer)
}

/// `closure` was written in `outer`. When the compiler inlines `outer` elsewhere, it names the closure after both:
/// `main.handler.(*batch).put.func1` is the closure in `main.(*batch).put` where that stands inlined in `main.handler`.
fn is_closure_of(closure: &str, outer: &str) -> bool {
    let Some(enclosing) = enclosing(closure) else { return false };
    let base = outer.rfind('/').map_or(outer, |n| &outer[n + 1..]);
    enclosing == outer
        || base
            .split_once('.')
            .and_then(|(_, symbol)| enclosing.strip_suffix(symbol))
            .is_some_and(|inlined_into| inlined_into.ends_with('.'))
}

/// Of the functions of a stack, leaf first, the one that a Go programmer would call the allocating one: the innermost
/// Go function that is neither the runtime nor a stub.
///
/// cgo wraps a call whose pointer arguments it checks in a closure of its own (`handler.func1` between `handler` and
/// `_Cfunc_put`). Where the enclosing function is the closure's caller, that is the answer.
pub fn innermost<'a>(functions: impl Iterator<Item = &'a Function>) -> Option<&'a Function> {
    let mut after_stub = false;
    let mut closure = None::<&Function>;
    for function in functions.filter(|f| is_go(f)) {
        let name = &*function.name;
        if let Some(wrapper) = closure {
            return Some(if is_closure_of(&wrapper.name, name) { function } else { wrapper });
        }
        if is_cgo_stub(name) {
            after_stub = name.contains("func_");
        } else if !is_runtime(name) {
            if !after_stub || enclosing(name).is_none() {
                return Some(function);
            }
            closure = Some(function);
        }
    }
    closure
}

#[cfg(test)]
mod tests {
    use super::{Function, enclosing, innermost, is_cgo_stub, is_go, shown};

    fn function(name: &str, file: &str) -> Function {
        Function { name: name.into(), file: file.into(), ..Function::default() }
    }

    #[test]
    fn languages_are_told_apart() {
        for (name, file, go) in [
            ("main.handler", "/src/main.go", true),
            ("filled", "/src/native.go", false),
            ("filled.cold", "/src/native.go", false),
            ("main._Cfunc_store_put", "_cgo_gotypes.go", true),
            ("runtime.asmcgocall.abi0", "/usr/local/go/src/runtime/asm_amd64.s", true),
            ("memcpy", "../sysdeps/x86_64/multiarch/memmove.s", false),
            ("rocksdb::DB::Put", "db/db_impl.cc", false),
            ("main.handler", "", true),
            ("github.com/acme/store.(*DB).Put", "", true),
            ("example.test/ingest.(*Batch[...]).Add", "", true),
            ("slices.SortFunc[go.shape.[]*a/b.T,go.shape.*uint8]", "", true),
            ("gopkg.in/yaml%2ev2.Unmarshal", "", true),
            ("_cgoexp_4f5a_goCallback", "", true),
            ("_cgo_4f5a_Cfunc_store_put", "", false),
            ("store_put.cold", "", false),
            ("store_put.part.0", "", false),
            ("f.constprop.2", "", false),
            ("operator new(unsigned long)", "", false),
            ("std::vector<a.b>::push_back(int&&)", "", false),
            ("librocksdb.so.7.8+0x1f20", "", false),
            ("libc.so.6+0x10", "", false),
            ("[unknown]", "", false),
            ("", "", false),
        ] {
            assert_eq!(is_go(&function(name, file)), go, "{name} {file}");
        }
    }

    #[test]
    fn stubs_and_closures_are_recognised() {
        for (name, stub) in [
            ("main._Cfunc_CString", true),
            ("github.com/acme/store._C2func_open", true),
            ("_cgoexp_4f5a_goCallback", true),
            ("main.Cfunc", false),
        ] {
            assert_eq!(is_cgo_stub(name), stub, "{name}");
        }
        assert_eq!(enclosing("main.handler.func1"), Some("main.handler"));
        assert_eq!(enclosing("main.handler.func"), None);
        assert_eq!(enclosing("main.function1"), None);
    }

    #[test]
    fn names_are_shown_as_go_shows_them() {
        for (name, expected) in [
            ("main.handler", "main.handler"),
            ("runtime.asmcgocall.abi0", "runtime.asmcgocall"),
            ("main.(*Cache[go.shape.int]).Add", "main.(*Cache[...]).Add"),
            ("main.(*Cache[...]).Add", "main.(*Cache[...]).Add"),
            ("a.Map[go.shape.[]b.T,go.shape.string].func1", "a.Map[...].func1"),
            ("a.F[x].g[y]", "a.F[...].g[...]"),
            ("a]b[c", "a]b[c"),
        ] {
            assert_eq!(shown(name), expected, "{name}");
        }
    }

    #[test]
    fn the_innermost_function_is_the_programmers() {
        for (stack, expected) in [
            (
                &["malloc", "runtime.asmcgocall", "runtime.cgocall", "main._Cfunc_put", "main.put", "main.main"][..],
                "main.put",
            ),
            (&["malloc", "main._Cfunc_put", "main.put.func1", "main.put", "main.main"], "main.put"),
            (&["malloc", "main._Cfunc_put", "main.put.func1", "runtime.goexit"], "main.put.func1"),
            (
                &["malloc", "main._Cfunc_put", "main.handler.(*batch).put.func1", "main.(*batch).put", "main.handler"],
                "main.(*batch).put",
            ),
            (&["malloc", "main._Cfunc_put", "main.handler.output.func1", "main.put"], "main.handler.output.func1"),
            (&["malloc", "main._Cfunc_put", "main.worker.func2", "main.pool"], "main.worker.func2"),
            (&["malloc", "_cgoexp_1_cb", "main.cb.func1", "main.cb"], "main.cb.func1"),
            (&["malloc", "start_thread"], ""),
        ] {
            let functions: Vec<Function> = stack.iter().map(|name| function(name, "")).collect();
            let found = innermost(functions.iter()).map_or("", |f| &*f.name);
            assert_eq!(found, expected, "{stack:?}");
        }
    }
}
