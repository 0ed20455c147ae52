//! Folded stacks: one stack a line, root first, and its value.
//!
//! ```text
//! main;operator<< <int>(std::ostream&, int);f 7
//! ```
//!
//! Names may hold anything but `;` and a line feed; the value is what follows the last blank.

use super::Parsed;
use super::text::{Lines, excerpt, lossy};
use crate::error::DamageLog;
use crate::profile::{Line, ProfileBuilder, Sample, ValueType};
use crate::sampling::round;

const FORMAT: &str = "folded stacks";

/// The first lines look like stacks with values, and one of them has more than one frame.
#[must_use]
pub fn looks_like(bytes: &[u8]) -> bool {
    const SEEN: usize = 100;
    let lines = || Lines::new(bytes).map(|line| line.text).filter(|text| !is_remark(text)).take(SEEN);
    let (stacks, all) = (lines().filter_map(stack_line).count(), lines().count());
    let is_deep = lines().filter_map(stack_line).any(|(stack, _)| stack.contains(&b';'));
    all > 0 && is_deep && stacks * 10 >= all * 9
}

/// Read folded stacks. No lines at all are valid and mean that there is nothing.
#[must_use]
pub fn read(bytes: &[u8]) -> Parsed {
    let mut log = DamageLog::default();
    let mut builder = ProfileBuilder::new(vec![ValueType::new("samples", "count")]);
    for line in Lines::new(bytes).filter(|line| !is_remark(line.text)) {
        let Some((stack, value)) = stack_line(line.text) else {
            log.at_line(line.number, format!("not a stack with a value, left out: `{}`", excerpt(line.text)));
            continue;
        };
        if value == 0 {
            continue;
        }
        let mut locations = Vec::new();
        for frame in stack.split(|&b| b == b';').rev() {
            let name = lossy(frame);
            let function = builder.function(&name, &name, "", 0);
            locations.push(builder.location_of_lines(&[Line { function, line: 0, column: 0 }]));
        }
        builder.sample(Sample { locations, values: vec![value], ..Sample::default() });
    }
    let profile = builder.finish();
    let notes = match profile.samples.is_empty() && log.is_empty() {
        true => vec!["the file holds no stacks, or only stacks of value 0".to_owned()],
        false => Vec::new(),
    };
    Parsed { profile, format: FORMAT, damage: log.into_entries(), notes, ..Parsed::default() }
}

/// A blank line, or a remark as some tools put it first.
fn is_remark(text: &[u8]) -> bool {
    text.trim_ascii().is_empty() || text.starts_with(b"# ")
}

/// The stack and its value; some tools write fractions.
fn stack_line(text: &[u8]) -> Option<(&[u8], i64)> {
    let text = text.trim_ascii_end();
    let blank = memchr::memrchr2(b' ', b'\t', text)?;
    let (stack, value) = (text[..blank].trim_ascii_end(), &text[blank + 1..]);
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if stack.is_empty() || !digits.first()?.is_ascii_digit() || digits.iter().any(|b| !b"0123456789.".contains(b)) {
        return None;
    }
    let value = std::str::from_utf8(value).ok()?;
    let value = value.parse::<i64>().ok().or_else(|| value.parse::<f64>().ok().map(round))?;
    Some((stack, value))
}

#[cfg(test)]
mod tests {
    use super::{looks_like, read, stack_line};

    #[test]
    fn the_value_is_what_follows_the_last_blank() {
        for (line, expected) in [
            ("a;b 7", Some(("a;b", 7))),
            ("main;h 1 extra 4", Some(("main;h 1 extra", 4))),
            ("a -3", Some(("a", -3))),
            ("a 2.5", Some(("a", 3))),
            ("a", None),
            (" 7", None),
            ("a 0x7", None),
            ("a 1e5", None),
        ] {
            let read = stack_line(line.as_bytes());
            assert_eq!(read, expected.map(|(stack, value)| (stack.as_bytes(), value)), "{line}");
        }
    }

    #[test]
    fn prose_and_listings_are_not_stacks() {
        for text in ["404 page not found\n", "total 42\n", "Error; see page 7 of the manual\nand then 8\nok\n", ""] {
            assert!(!looks_like(text.as_bytes()), "{text}");
        }
        assert!(looks_like(b"# made by a tool\nmain;f 1\nmain 2\n"));
    }

    #[test]
    fn equal_frames_share_a_location() {
        let parsed = read(b"main;f 1\nmain;g;f 2\nx\n\nmain 0\n");
        assert_eq!(parsed.profile.locations.len(), 3);
        assert_eq!(parsed.profile.samples.len(), 2);
        assert_eq!(parsed.damage.len(), 1);
        assert_eq!(parsed.damage[0].line, Some(3));
    }
}
