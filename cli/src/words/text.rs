//! Names from foreign processes, made fit to be printed.

use std::borrow::Cow;

/// A name without anything that a terminal would obey: symbol names, thread names and paths come from files that
/// somebody else wrote, and an escape sequence in one must not reach the terminal.
pub(crate) fn printable(name: &str) -> Cow<'_, str> {
    if !name.chars().any(is_hostile) {
        return Cow::Borrowed(name);
    }
    let mut clean = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if is_hostile(c) {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

/// Control characters, and the invisible ones that reorder what stands around them.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// `1 stack`, `2 stacks`, `2 processes`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = match (count, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Shorten to `width` characters by taking out the middle, since the package at the front and the method at the end
/// both tell functions apart.
pub(crate) fn shorten_middle(name: &str, width: usize) -> Cow<'_, str> {
    let length = name.chars().count();
    if length <= width {
        return Cow::Borrowed(name);
    }
    let kept = width.saturating_sub(1);
    let front = kept / 2;
    let back = kept - front;
    let head: String = name.chars().take(front).collect();
    let tail: String = name.chars().skip(length - back).collect();
    Cow::Owned(format!("{head}…{tail}"))
}

#[cfg(test)]
mod tests {
    use super::{counted, printable, shorten_middle};

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(printable("rocksdb::Arena::Allocate(unsigned long)"), "rocksdb::Arena::Allocate(unsigned long)");
        assert_eq!(printable("a\x1b[31mb\0\u{202e}c"), "a\\u{1b}[31mb\\u{0}\\u{202e}c");
        assert_eq!(printable("größe"), "größe");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(counted(1, "process"), "1 process");
        assert_eq!(counted(0, "process"), "0 processes");
        assert_eq!(counted(2, "stack"), "2 stacks");
    }

    #[test]
    fn the_middle_goes_first() {
        for (name, width, expected) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "ab…efg"),
            ("größenänderung", 7, "grö…ung"),
            ("abc", 1, "…"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(shorten_middle(name, width), expected, "{name} in {width}");
        }
    }
}
