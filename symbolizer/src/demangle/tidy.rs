//! What `cpp_demangle` prints otherwise than `c++filt` does, put right.
//!
//! ```text
//! llvm::AnalysisManager<llvm::Module, >         <llvm::Module>          an empty pack is nothing
//! rocksdb::autovector<int, (unsigned long)8>    <int, 8ul>              a literal has a suffix
//! f()::{lambda()#1}::operator() const           operator()              as members that are not local
//! ```
//!
//! Only what C++ could not mean otherwise is touched. Left as they are: `void(int)` for `void (int)`, `&f` for `&(f)`,
//! `std::ostream` for the template behind it, which mean the same.

/// Literals of these types have a suffix; of others, enumerations above all, a cast.
const SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(long)", "l"),
    ("(unsigned long)", "ul"),
    ("(long long)", "ll"),
    ("(unsigned long long)", "ull"),
];

/// The name as `c++filt` has it.
pub(super) fn tidy(mangled: &str, name: String) -> String {
    let mut name = name;
    if has_empty_part(&name) {
        name = without_empty_parts(&name);
    }
    if SUFFIXES.iter().any(|(cast, _)| name.contains(cast)) {
        name = with_suffixes(&name);
    }
    if mangled.starts_with("_ZZ")
        && let Some(plain) = name.strip_suffix(" const")
        && !is_conversion(plain)
    {
        name.truncate(plain.len());
    }
    name
}

fn has_empty_part(name: &str) -> bool {
    [", >", ", )", ", ,", "<, ", "(, "].iter().any(|trace| name.contains(trace))
}

/// Leave out the commas around packs without elements. What follows `operator` is its name.
fn without_empty_parts(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(", ") {
        out.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        let after_opening = (out.ends_with('<') && !ends_with_operator(&out)) || out.ends_with('(');
        let before_closing = rest.starts_with(['>', ')']) || rest.starts_with(", ");
        if ends_with_comma_operator(&out) || !(after_opening || before_closing) {
            out.push_str(", ");
        } else if rest.starts_with('>') && out.ends_with('>') {
            out.push(' ');
        }
    }
    out.push_str(rest);
    out
}

/// `operator<`, `operator<<`, `operator<=>` are no opening brackets.
fn ends_with_operator(text: &str) -> bool {
    text.trim_end_matches(['<', '=', '>']).ends_with("operator")
}

fn ends_with_comma_operator(text: &str) -> bool {
    text.ends_with("operator")
}

fn with_suffixes(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('(') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match literal(rest) {
            // Behind a name the brackets hold parameters.
            Some((digits, suffix, after)) if out.ends_with(['<', '(', ' ']) || out.is_empty() => {
                out.push_str(digits);
                out.push_str(suffix);
                rest = after;
            }
            _ => {
                out.push('(');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// `(unsigned int)8, …`: the digits, the suffix, what follows.
fn literal(text: &str) -> Option<(&str, &'static str, &str)> {
    let (cast, suffix) = SUFFIXES.into_iter().find(|(cast, _)| text.starts_with(cast))?;
    let number = &text[cast.len()..];
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let length = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = number.split_at(number.len() - unsigned.len() + length);
    let ends = after.is_empty() || after.starts_with(['>', ')', ',', ' ', ']']);
    (length > 0 && ends).then_some((digits, suffix, after))
}

/// `T::operator char`: what follows is the type, and `const` belongs to it.
fn is_conversion(name: &str) -> bool {
    name.rfind("operator ").is_some_and(|at| !name[at..].contains("::{"))
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[test]
    fn empty_packs_are_nothing() {
        for (printed, expected) in [
            ("A<M, >::f", "A<M>::f"),
            ("A<, >", "A<>"),
            ("A<, , >", "A<>"),
            ("A<, B>", "A<B>"),
            ("A<B, , C>", "A<B, C>"),
            ("A<B<C>, >", "A<B<C> >"),
            ("A<B<C, > >", "A<B<C> >"),
            ("f(int, )::g", "f(int)::g"),
            ("A<&operator<, int>", "A<&operator<, int>"),
            ("A<&operator<<, int>", "A<&operator<<, int>"),
            ("A<int, B>", "A<int, B>"),
            ("operator,", "operator,"),
            ("operator, <int>", "operator, <int>"),
        ] {
            assert_eq!(tidy("_ZN", printed.into()), expected, "{printed}");
        }
    }

    #[test]
    fn literals_have_a_suffix() {
        for (printed, expected) in [
            ("A<int, (unsigned int)8>", "A<int, 8u>"),
            ("A<(unsigned long)8, (long)-1, (long long)2>", "A<8ul, -1l, 2ll>"),
            ("A<(E)1, (unsigned char)7>", "A<(E)1, (unsigned char)7>"),
            ("f(unsigned int)", "f(unsigned int)"),
            ("f(unsigned int)::g(long)", "f(unsigned int)::g(long)"),
            ("f((unsigned int)8)", "f(8u)"),
            ("A<(long)x>", "A<(long)x>"),
        ] {
            assert_eq!(tidy("_ZN", printed.into()), expected, "{printed}");
        }
    }

    #[test]
    fn a_local_member_s_const_goes_as_that_of_others() {
        for (mangled, printed, expected) in [
            ("_ZZN", "f()::{lambda()#1}::operator() const", "f()::{lambda()#1}::operator()"),
            ("_ZZN", "f() const::A::g[abi:cxx11] const", "f() const::A::g[abi:cxx11]"),
            ("_ZZN", "f()::A::operator char const", "f()::A::operator char const"),
            ("_ZN", "A::operator char const", "A::operator char const"),
        ] {
            assert_eq!(tidy(mangled, printed.into()), expected, "{printed}");
        }
    }
}
