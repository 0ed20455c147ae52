//! Folded stacks: one stack a line, root first, and its value.
//!
//! ```text
//! main;operator<< <int>(std::ostream&, int);f 7
//! ```
//!
//! Names may hold anything but `;` and a line feed; the value is what follows the last blank.

use super::Parsed;
use super::text::{Lines, excerpt, lossy};
use crate::error::{DamageLog, ReadError};
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

/// What a file that is called so may hold: stacks of any depth, or nothing, as collapsers write when there was nothing.
#[must_use]
pub fn may_be(bytes: &[u8]) -> bool {
    let mut lines = Lines::new(bytes).map(|line| line.text).filter(|text| !is_remark(text)).peekable();
    lines.peek().is_none() || lines.any(|text| stack_line(text).is_some())
}

/// Read folded stacks. No lines at all are valid and mean that there is nothing.
///
/// # Errors
/// When every line has two values, as differences of folded stacks do: which is meant cannot be told.
pub fn read(bytes: &[u8]) -> Result<Parsed, ReadError> {
    if is_difference(bytes) {
        let what = "every line ends in two numbers, as the difference of two files does; give the two files themselves to \
                    `offheap diff`, or to `offheap flame` with --base";
        return Err(ReadError::Damaged { format: FORMAT, what: what.into() });
    }
    let mut rounded = Rounded::default();
    let mut log = DamageLog::default();
    let mut builder = ProfileBuilder::new(vec![ValueType::new("samples", "count")]);
    for line in Lines::new(bytes).filter(|line| !is_remark(line.text)) {
        let Some((stack, value)) = stack_line(line.text) else {
            log.at_line(line.number, format!("not a stack with a value, left out: `{}`", excerpt(line.text)));
            continue;
        };
        if value.abs() >= TOO_LARGE {
            log.at_line(line.number, format!("a value that does not fit, left out: `{}`", excerpt(line.text)));
            continue;
        }
        rounded.see(value);
        let value = round(value);
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
    let mut notes = rounded.note();
    if profile.samples.is_empty() && log.is_empty() {
        notes.push("the file holds no stacks, or only stacks of value 0".to_owned());
    }
    Ok(Parsed { profile, format: FORMAT, damage: log.into_entries(), notes, ..Parsed::default() })
}

/// Values from here on do not fit into a profile.
const TOO_LARGE: f64 = 9.2e18;

/// Fractions among the values: a profile holds whole numbers.
#[derive(Default)]
struct Rounded {
    fractions: u64,
    to_nothing: u64,
}

impl Rounded {
    fn see(&mut self, value: f64) {
        self.fractions += u64::from(value.fract() != 0.0);
        self.to_nothing += u64::from(value != 0.0 && round(value) == 0);
    }

    fn note(&self) -> Vec<String> {
        let Self { fractions, to_nothing } = self;
        let lost = match to_nothing {
            0 => String::new(),
            n => format!(", {n} of them to 0; multiply them if they matter"),
        };
        let note = || format!("{fractions} values are fractions and are rounded to whole numbers{lost}");
        (*fractions > 0).then(note).into_iter().collect()
    }
}

/// Every line, of two at least, ends in two values: `a;b 5 7`.
fn is_difference(bytes: &[u8]) -> bool {
    let lines = || Lines::new(bytes).map(|line| line.text).filter(|text| !is_remark(text));
    let has_two = |text: &[u8]| stack_line(text).is_some_and(|(stack, _)| stack_line(stack).is_some());
    lines().nth(1).is_some() && lines().all(has_two)
}

/// A blank line, or a remark as some tools put it first.
fn is_remark(text: &[u8]) -> bool {
    text.trim_ascii().is_empty() || text.starts_with(b"# ")
}

/// The stack and its value; some tools write fractions, or `1e+06`.
fn stack_line(text: &[u8]) -> Option<(&[u8], f64)> {
    let text = text.trim_ascii_end();
    let blank = memchr::memrchr2(b' ', b'\t', text)?;
    let (stack, value) = (text[..blank].trim_ascii_end(), &text[blank + 1..]);
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if stack.is_empty() || !digits.first()?.is_ascii_digit() || digits.iter().any(|b| !b"0123456789.e+-".contains(b)) {
        return None;
    }
    let value = std::str::from_utf8(value).ok()?.parse::<f64>().ok()?;
    Some((stack, value))
}

#[cfg(test)]
mod tests {
    use super::{looks_like, may_be, read, stack_line};

    #[test]
    fn the_value_is_what_follows_the_last_blank() {
        for (line, expected) in [
            ("a;b 7", Some(("a;b", 7.0))),
            ("main;h 1 extra 4", Some(("main;h 1 extra", 4.0))),
            ("a -3", Some(("a", -3.0))),
            ("a 2.5", Some(("a", 2.5))),
            ("a 1e+06", Some(("a", 1e6))),
            ("a", None),
            (" 7", None),
            ("a 0x7", None),
            ("a 1e", None),
            ("a 1-2", None),
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
        let parsed = read(b"main;f 1\nmain;g;f 2\nx\n\nmain 0\n").expect("valid");
        assert_eq!(parsed.profile.locations.len(), 3);
        assert_eq!(parsed.profile.samples.len(), 2);
        assert_eq!(parsed.damage.len(), 1);
        assert_eq!(parsed.damage[0].line, Some(3));
    }

    #[test]
    fn values_that_are_not_whole_or_do_not_fit_are_told() {
        let parsed = read(b"a;b 0.25\na;c 2.5\na;d 99999999999999999999\n").expect("valid");
        assert_eq!(parsed.profile.samples.len(), 1);
        assert_eq!(parsed.profile.samples[0].values, [3]);
        assert_eq!(parsed.notes.len(), 1);
        assert!(parsed.notes[0].starts_with("2 values are fractions") && parsed.notes[0].contains("1 of them to 0"));
        assert_eq!(parsed.damage.len(), 1);
    }

    #[test]
    fn differences_are_refused() {
        assert!(read(b"a;b 5 7\na;c 6 6\n").is_err());
        assert!(read(b"a;b 5 7\na;c 6\n").is_ok());
    }

    #[test]
    fn a_name_allows_shallow_stacks() {
        for text in ["main 7\n", "", "\n\n", "# nothing\n", "a 1\nrubbish\n"] {
            assert!(may_be(text.as_bytes()) && !looks_like(text.as_bytes()), "{text}");
        }
        assert!(!may_be(b"404 page not found\n"));
    }
}
