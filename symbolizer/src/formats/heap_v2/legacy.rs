//! The older form, a line a stack, shared with gperftools and Go.
//!
//! ```text
//! heap profile:      5:    20480 [     9:    36864] @ heap_v2/524288
//!      3:    12288 [     3:    12288] @ 0x7f10c0020111 0x7f10c0021222 0x55d0a0030333
//! ```

use super::blocks::Ending;
use super::record::{Counts, addresses, counts};
use super::sink::HeapSink;
use crate::error::DamageLog;
use crate::formats::text::{Cursor, Lines, SECOND_PROFILE, TextLine, begins_profile, excerpt};
use crate::sampling::SamplingPeriod;

/// The first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LegacyHeader {
    pub(crate) period: SamplingPeriod,
    /// The rest is Go's text form: `heap/N` with N twice the period.
    pub(crate) is_go: bool,
    pub(crate) totals: Counts,
}

/// Read the first line.
pub(crate) fn header(text: &[u8]) -> Option<LegacyHeader> {
    let mut cursor = Cursor(text);
    cursor.skip(b"heap profile:")?;
    let totals = counts(&mut cursor)?;
    cursor.blanks();
    cursor.skip(b"@")?;
    cursor.blanks();
    let (kind, rate) = match cursor.0.iter().position(|&b| b == b'/') {
        Some(n) => (&cursor.0[..n], Cursor(&cursor.0[n + 1..]).rate()?),
        // gperftools without sampling.
        None => (cursor.0.trim_ascii(), 1),
    };
    let (is_go, rate) = match kind {
        b"heap_v2" | b"heapz_v2" | b"heapprofile" => (false, rate),
        b"heap" => (true, rate / 2),
        _ => return None,
    };
    Some(LegacyHeader { period: SamplingPeriod(rate), is_go, totals })
}

/// One line: the counts, and the addresses still to be read.
pub(crate) fn stack_line(text: &[u8]) -> Option<(Counts, Cursor<'_>)> {
    let mut cursor = Cursor(text);
    let counts = counts(&mut cursor)?;
    cursor.blanks();
    cursor.skip(b"@")?;
    Some((counts, cursor))
}

/// Read the lines after the header up to the map section. `first_line` is the number of the header line.
pub(crate) fn read(
    text: &[u8],
    first_line: u64,
    header: LegacyHeader,
    sink: &mut HeapSink,
    damage: &mut DamageLog,
) -> Ending {
    let mut sum = 0_i128;
    for line in Lines::new(text) {
        let number = first_line + line.number;
        if line.text.trim_ascii_start().starts_with(b"MAPPED_LIBRARIES:") {
            let end = line.text.as_ptr() as usize - text.as_ptr() as usize + line.text.len();
            let after = text[end..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| end + n + 1);
            return Ending { maps: Some((after, number)) };
        }
        if begins_profile(line.text) {
            damage.at_line(number, SECOND_PROFILE);
            break;
        }
        if !line.text.trim_ascii().is_empty() {
            match stack(TextLine { number, ..line }, header.period, sink) {
                Some(counts) => sum += i128::from(counts.live_bytes),
                None => damage.at_line(number, format!("not a whole stack, left out: `{}`", excerpt(line.text))),
            }
        }
    }
    if sum < i128::from(header.totals.live_bytes) {
        damage.whole(format!(
            "the stacks hold {sum} of the {} bytes that the header states: the dump is cut",
            header.totals.live_bytes
        ));
    }
    Ending::default()
}

fn stack(line: TextLine<'_>, period: SamplingPeriod, sink: &mut HeapSink) -> Option<Counts> {
    let (counts, cursor) = stack_line(line.text)?;
    if !line.ended {
        return None;
    }
    let mut locations = Vec::new();
    addresses(cursor, |address| locations.push(sink.builder.location_at(address.of_call())))?;
    sink.check(line.number, counts);
    sink.sample(locations, counts.correct(period), Some(counts.picked()), None);
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn headers_of_three_families_are_told_apart() {
        for (text, period, is_go) in [
            ("heap profile:      5:    20480 [     9:    36864] @ heap_v2/524288", 524_288, false),
            ("heap profile: 26: 173154384 [39: 191045712] @ heap/1048576", 524_288, true),
            ("heap profile: 26: 173154384 [39: 191045712] @ heapprofile", 1, false),
        ] {
            let header = header(text.as_bytes()).expect(text);
            assert_eq!((header.period.0, header.is_go), (period, is_go), "{text}");
        }
        for wrong in ["heap profile: 5", "heap profile: 1: 2 [3: 4] @ growthz/1", "goroutine profile: total 7"] {
            assert_eq!(header(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
