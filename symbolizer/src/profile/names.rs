//! What a location is called when it is shown.

use super::{Location, Profile};
use std::borrow::Cow;

/// Name of an empty stack.
pub const NO_STACK: &str = "[no stack]";
/// Name of a frame that lies in no mapping.
pub const UNKNOWN: &str = "[unknown]";

impl Profile {
    /// The name for a location that has no lines: `library+0x1234` (offset in the file), `[unknown]` outside every
    /// mapping, or the bare address when nothing is known about the process.
    #[must_use]
    pub fn fallback_name(&self, location: &Location) -> Cow<'static, str> {
        match location.mapping.map(|id| self.mapping(id)) {
            Some(mapping) => {
                let offset = location.address.0.wrapping_sub(mapping.start.0).wrapping_add(mapping.offset.0);
                Cow::Owned(format!("{}+{offset:#x}", mapping.base_name()))
            }
            None if self.mappings.is_empty() && location.address.0 != 0 => Cow::Owned(location.address.to_string()),
            None => Cow::Borrowed(UNKNOWN),
        }
    }

    /// The location has no name of its own: no lines, or only one of the form `library+0x1234`.
    #[must_use]
    pub fn is_unnamed(&self, location: &Location) -> bool {
        let [line] = &location.lines[..] else { return location.lines.is_empty() };
        let function = self.function(line.function);
        function.file.is_empty() && line.line == 0 && is_fallback(&function.name)
    }
}

/// `library+0x1234`, `[unknown]`, a bare address, or nothing.
fn is_fallback(name: &str) -> bool {
    let is_hex = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match name.rsplit_once("+0x") {
        Some((library, offset)) => !library.is_empty() && !library.contains('(') && is_hex(offset),
        None => name.is_empty() || name == UNKNOWN || name.strip_prefix("0x").is_some_and(is_hex),
    }
}

#[cfg(test)]
mod tests {
    use super::is_fallback;

    #[test]
    fn fallbacks_are_told_from_names() {
        for name in ["librocksdb.so.7.8+0x1f20", "[vdso]+0x500", "[unknown]", "0x7f10c0020111", ""] {
            assert!(is_fallback(name), "{name}");
        }
        for name in ["main.handler", "operator+", "f(int)+0x10", "a+0xyz", "0xcafebabe::f"] {
            assert!(!is_fallback(name), "{name}");
        }
    }
}
