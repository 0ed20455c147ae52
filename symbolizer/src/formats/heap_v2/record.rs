//! The parts of a line: counts, thread lines, addresses.

use crate::address::RuntimeAddress;
use crate::formats::text::Cursor;

/// The numbers of one line, as printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) live_objects: i64,
    pub(crate) live_bytes: i64,
    pub(crate) allocated_objects: i64,
    pub(crate) allocated_bytes: i64,
}

impl Counts {
    fn is_negative(self) -> bool {
        [self.live_objects, self.live_bytes, self.allocated_objects, self.allocated_bytes].iter().any(|&n| n < 0)
    }

    /// How many live allocations were picked.
    pub(crate) fn picked(self) -> u64 {
        self.live_objects.unsigned_abs()
    }
}

/// Whom a line of counts speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// `t*`
    AllThreads,
    /// `t7`
    Thread(u64),
}

/// `  t7: 2: 8192 [0: 0] name with anything in it`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadLine<'a> {
    pub(crate) who: Who,
    pub(crate) counts: Counts,
    pub(crate) name: &'a [u8],
}

pub(crate) fn thread_line(text: &[u8]) -> Option<ThreadLine<'_>> {
    let mut cursor = Cursor(text);
    cursor.blanks();
    cursor.skip(b"t")?;
    let who = match cursor.skip(b"*") {
        Some(()) => Who::AllThreads,
        None => Who::Thread(cursor.decimal()?),
    };
    cursor.skip(b":")?;
    // jemalloc prints unsigned numbers.
    let counts = counts(&mut cursor).filter(|counts| !counts.is_negative())?;
    Some(ThreadLine { who, counts, name: cursor.0.trim_ascii() })
}

/// `3: 12288 [3: 12288]`, blanks as they like. Go prints negative ones at times.
pub(crate) fn counts(cursor: &mut Cursor<'_>) -> Option<Counts> {
    cursor.blanks();
    let live_objects = cursor.signed()?;
    cursor.skip(b":")?;
    cursor.blanks();
    let live_bytes = cursor.signed()?;
    cursor.blanks();
    cursor.skip(b"[")?;
    cursor.blanks();
    let allocated_objects = cursor.signed()?;
    cursor.skip(b":")?;
    cursor.blanks();
    let allocated_bytes = cursor.signed()?;
    cursor.blanks();
    cursor.skip(b"]")?;
    Some(Counts { live_objects, live_bytes, allocated_objects, allocated_bytes })
}

/// `0x7fa9c04a2630 0x7fa9c04a2d21 …` up to the end of the line. `None` when a word is no address.
pub(crate) fn addresses(mut cursor: Cursor<'_>, mut each: impl FnMut(RuntimeAddress)) -> Option<()> {
    loop {
        cursor.blanks();
        if cursor.0.is_empty() {
            return Some(());
        }
        cursor.skip(b"0x")?;
        each(RuntimeAddress(cursor.hex()?));
        if !matches!(cursor.0.first(), None | Some(b' ' | b'\t')) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Who, addresses, thread_line};
    use crate::formats::text::Cursor;

    #[test]
    fn thread_lines_are_read() {
        let line = thread_line(b"  t2: 2: 32 [5: 80] ro:low [0] @9").expect("a thread line");
        assert_eq!(line.who, Who::Thread(2));
        assert_eq!(line.counts, Counts { live_objects: 2, live_bytes: 32, allocated_objects: 5, allocated_bytes: 80 });
        assert_eq!(line.name, b"ro:low [0] @9");
        assert_eq!(thread_line(b"  t*: 0: 0 [0: 0]").expect("a thread line").who, Who::AllThreads);
    }

    #[test]
    fn cut_thread_lines_are_none() {
        let whole = b"  t7: 2: 8192 [0: 0]";
        for n in 0..whole.len() {
            assert_eq!(thread_line(&whole[..n]), None, "{n}");
        }
        assert_eq!(thread_line(b"  t7: -2: 8192 [0: 0]"), None);
        let huge = thread_line(b"  t7: 99999999999999999999: 8192 [0: 0]").expect("whole");
        assert_eq!(huge.counts.live_objects, i64::MAX);
    }

    #[test]
    fn addresses_are_words_of_hex() {
        let read = |text: &'static str| {
            let mut all = Vec::new();
            addresses(Cursor(text.as_bytes()), |a| all.push(a.0)).map(|()| all)
        };
        assert_eq!(read(""), Some(vec![]));
        assert_eq!(read(" 0x10 0xffffffffffffffff "), Some(vec![0x10, u64::MAX]));
        for wrong in ["10", "0x", "0x10,0x20", "0x1ffffffffffffffff", "0x10 x"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
