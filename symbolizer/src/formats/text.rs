//! What the text formats share: lines and numbers, on bytes and without allocation.

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextLine<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Without its line end, LF or CRLF.
    pub(crate) text: &'a [u8],
    /// It had a line end; the last line of a cut file has none.
    pub(crate) ended: bool,
}

/// The lines of a text.
#[derive(Clone, Debug)]
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { rest: text, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = TextLine<'a>;

    fn next(&mut self) -> Option<TextLine<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest);
        let (line, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.get(1..).unwrap_or_default();
        self.number += 1;
        Some(TextLine { number: self.number, text: line.strip_suffix(b"\r").unwrap_or(line), ended: end.is_some() })
    }
}

/// Reads a line from left to right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    /// Skip blanks; how many there were.
    pub(crate) fn blanks(&mut self) -> usize {
        let n = self.0.iter().take_while(|&&b| b == b' ' || b == b'\t').count();
        self.0 = &self.0[n..];
        n
    }

    /// Skip this text if it comes next.
    pub(crate) fn skip(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// An unsigned decimal number that fits 64 bits.
    pub(crate) fn decimal(&mut self) -> Option<u64> {
        let n = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(n);
        if digits.is_empty() {
            return None;
        }
        let value = digits.iter().try_fold(0_u64, |v, b| v.checked_mul(10)?.checked_add(u64::from(b - b'0')))?;
        self.0 = rest;
        Some(value)
    }

    /// A decimal number that may be negative. One that does not fit ends at the limit, which no true count reaches.
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let negative = self.skip(b"-").is_some();
        let n = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if n == 0 {
            return None;
        }
        let (digits, rest) = self.0.split_at(n);
        self.0 = rest;
        let digit = |b: &u8| i64::from(b - b'0');
        let value = digits.iter().fold(0_i64, |v, b| v.saturating_mul(10).saturating_add(digit(b)));
        Some(if negative { -value } else { value })
    }

    /// A rate in bytes, to the end of the line: `524288`, or `512k` as people write it.
    pub(crate) fn rate(&mut self) -> Option<u64> {
        self.blanks();
        let value = self.decimal()?;
        let shift = match self.0.first() {
            Some(b'k' | b'K') => 10,
            Some(b'm' | b'M') => 20,
            Some(b'g' | b'G') => 30,
            _ => 0,
        };
        self.0 = &self.0[usize::from(shift > 0)..];
        self.blanks();
        if self.0.is_empty() { value.checked_mul(1 << shift) } else { None }
    }

    /// An unsigned hexadecimal number that fits 64 bits, without prefix.
    pub(crate) fn hex(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        let mut n = 0;
        for &b in self.0 {
            let Some(digit) = hex_digit(b) else { break };
            if value >> 60 != 0 {
                return None;
            }
            value = value << 4 | u64::from(digit);
            n += 1;
        }
        self.0 = &self.0[n..];
        (n > 0).then_some(value)
    }

    /// Everything up to the next blank or the end.
    pub(crate) fn word(&mut self) -> &'a [u8] {
        let n = self.0.iter().take_while(|&&b| b != b' ' && b != b'\t').count();
        let (word, rest) = self.0.split_at(n);
        self.0 = rest;
        word
    }
}

fn hex_digit(b: u8) -> Option<u8> {
    match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        b'A'..=b'F' => Some(b - b'A' + 10),
        _ => None,
    }
}

/// The line is the first one of a heap profile. Where one was begun, a second one stands in the same file.
pub(crate) fn begins_profile(line: &[u8]) -> bool {
    line.starts_with(b"heap_v2/") || line.starts_with(b"heap profile:")
}

/// What is said of a second profile in one file.
pub(crate) const SECOND_PROFILE: &str =
    "a second profile begins here and is left out with what follows; give each a file of its own";

/// Text for people: invalid UTF-8 replaced.
pub(crate) fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The start of a line for a message: bounded, on one line, without control characters.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let mut shown: String = text.chars().map(|c| if c.is_control() { '.' } else { c }).collect();
    if bytes.len() > SHOWN {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Lines, excerpt};

    #[test]
    fn lines_know_their_number_and_whether_they_ended() {
        let lines: Vec<_> = Lines::new(b"a\r\n\nb").map(|l| (l.number, l.text, l.ended)).collect();
        assert_eq!(lines, [(1, &b"a"[..], true), (2, b"", true), (3, b"b", false)]);
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(Cursor(b"18446744073709551615").decimal(), Some(u64::MAX));
        assert_eq!(Cursor(b"18446744073709551616").decimal(), None);
        assert_eq!(Cursor(b"-1").decimal(), None);
        assert_eq!(Cursor(b"ffffffffff600000-").hex(), Some(0xffff_ffff_ff60_0000));
        assert_eq!(Cursor(b"1ffffffffff600000").hex(), None);
        assert_eq!(Cursor(b"x").hex(), None);
    }

    #[test]
    fn counts_may_be_negative_and_rates_have_units() {
        for (text, expected) in
            [("-17:", Some(-17)), ("9223372036854775808", Some(i64::MAX)), ("-", None), ("", None), ("0", Some(0))]
        {
            assert_eq!(Cursor(text.as_bytes()).signed(), expected, "{text}");
        }
        for (text, expected) in [
            ("524288", Some(524_288)),
            (" 512k ", Some(524_288)),
            ("2M", Some(2 << 20)),
            ("1G", Some(1 << 30)),
            ("", None),
            ("-1", None),
            ("524288 bytes", None),
            ("0x80000", None),
            ("1e6", None),
            ("18446744073709551615k", None),
        ] {
            assert_eq!(Cursor(text.as_bytes()).rate(), expected, "{text}");
        }
    }

    #[test]
    fn excerpts_are_bounded_and_printable() {
        assert_eq!(excerpt(b"\x1b[2Jboo\n"), ".[2Jboo.");
        assert!(excerpt(&[b'a'; 1000]).len() < 100);
    }
}
