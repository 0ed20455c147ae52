//! Profiles that were copied out of a mail, a chat or a ticket, where every line has something in front.
//!
//! ```text
//!     heap_v2/524288                          indented, as code blocks are
//! > heap_v2/524288                            quoted, once or several times
//! 2026-01-02T03:04:05Z heap_v2/524288         of a log: another text before each line, and refused
//! ```

use super::text::{Lines, TextLine, begins_profile, excerpt};

/// As far as a header is searched for.
const SEARCHED: usize = 1 << 20;

/// The text without what stands before each of its lines, and what stood there, for a remark; the number of lines stays
/// the same. `None` when nothing does.
pub(super) fn unquote(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let prefix = prefix_of_header(bytes)?;
    let is_quoted = prefix.iter().any(|byte| !byte.is_ascii_whitespace());
    let mut plain = Vec::with_capacity(bytes.len());
    let mut in_profile = false;
    for line in Lines::new(bytes) {
        // The blank at the end of an empty line is easily lost.
        let text = match line.text.strip_prefix(prefix) {
            Some(rest) => rest,
            None if line.text == prefix.trim_ascii_end() => b"",
            // The answer below what was quoted.
            None if in_profile && is_quoted && line.ended => break,
            None => line.text,
        };
        in_profile |= begins_profile(text);
        plain.extend_from_slice(text);
        if line.ended {
            plain.push(b'\n');
        }
    }
    Some((plain, prefix))
}

/// The blanks and marks of quotation before the first header line; `None` when that has nothing before it.
fn prefix_of_header(bytes: &[u8]) -> Option<&[u8]> {
    for TextLine { text, .. } in searched(bytes) {
        let end = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'>' | b'|')).count();
        if begins_profile(&text[end..]) {
            return Some(&text[..end]).filter(|prefix| !prefix.is_empty());
        }
    }
    None
}

/// Words for a profile behind something that differs from line to line, or that cannot be told from its own text.
pub(super) fn behind_other_text(bytes: &[u8]) -> Option<String> {
    for TextLine { number, text, .. } in searched(bytes) {
        for header in [&b"heap profile:"[..], b"heap_v2/"] {
            if let Some(at) = memchr::memmem::find(text, header)
                && text[at + header.len()..].trim_ascii_start().first().is_some_and(u8::is_ascii_digit)
            {
                return Some(format!(
                    "a heap dump, but its first line (line {number}) begins with `{}`; cut off what stands before each \
                     line, a time stamp of a log for example",
                    excerpt(&text[..at])
                ));
            }
        }
    }
    None
}

fn searched(bytes: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    let start = bytes.as_ptr() as usize;
    Lines::new(bytes).take_while(move |line| {
        line.text.as_ptr() as usize - start <= SEARCHED && memchr::memchr(0, line.text).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::{behind_other_text, unquote};

    #[test]
    fn what_stands_before_every_line_goes() {
        for (pasted, plain, prefix) in [
            ("  heap_v2/1\n    t*: 1: 2 [0: 0]\n", "heap_v2/1\n  t*: 1: 2 [0: 0]\n", "  "),
            ("\theap_v2/1\n\n\t@ 0x1", "heap_v2/1\n\n@ 0x1", "\t"),
            ("Hello\n> heap_v2/1\n>   t*: 1\n>\n> @ 0x1\n\nbye\n", "Hello\nheap_v2/1\n  t*: 1\n\n@ 0x1\n", "> "),
            (">> heap profile: 1: 2\r\n>> @\r\n", "heap profile: 1: 2\n@\n", ">> "),
        ] {
            let (text, before) = unquote(pasted.as_bytes()).unwrap();
            assert_eq!((std::str::from_utf8(&text).unwrap(), before), (plain, prefix.as_bytes()), "{pasted}");
        }
        for other in ["heap_v2/1\n  t*: 1\n", "log: heap_v2/1\n", "", "> text"] {
            assert_eq!(unquote(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_log_s_time_stamps_are_named() {
        let why = behind_other_text(b"x\n2026-01-02T03:04:05Z heap_v2/524288\n").unwrap();
        assert!(why.contains("(line 2) begins with `2026-01-02T03:04:05Z `"), "{why}");
        assert_eq!(behind_other_text(b"the heap_v2/ format\n"), None);
    }
}
