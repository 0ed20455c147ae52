use super::line_program::{LineProgram, Rows, Sequence, State};
use super::sections::Reader;
use gimli::UnitRef;
use std::cell::{Cell, OnceCell, RefCell};
use std::num::NonZeroU32;
use std::ops::Range;

/// The line table of one unit. Kept of it is where its sequences start, and how far the one was read that was asked last:
/// addresses come in order, so that the rows before are not missed.
#[derive(Debug)]
pub(super) struct Lines<'s> {
    program: Option<LineProgram<'s>>,
    /// By address.
    sequences: OnceCell<Vec<Sequence>>,
    /// How often a sequence was searched for while they were not known.
    searches: Cell<u32>,
    last: RefCell<Option<Reading<'s>>>,
}

/// Searching for one sequence takes a small part of the time that it takes to find all.
const SEARCHES_MAX: u32 = 8;

/// A sequence, read up to the row that was asked last.
#[derive(Debug)]
struct Reading<'s> {
    sequence: Sequence,
    rest: Rows<'s>,
    row: Option<State>,
    /// The row behind it, or the end of the sequence.
    next: Option<State>,
}

/// Where code comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Number in the file table of the unit.
    pub(super) file: u32,
    pub(super) line: Option<NonZeroU32>,
    pub(super) column: Option<NonZeroU32>,
}

impl<'s> Lines<'s> {
    /// Units that say nothing about lines have no rows.
    pub(super) fn new(unit: UnitRef<'_, Reader<'s>>) -> Self {
        let program = unit.line_program.as_ref().and_then(|program| LineProgram::new(program.header()));
        Self { program, sequences: OnceCell::new(), searches: Cell::new(0), last: RefCell::default() }
    }

    /// Addresses of the sequences.
    pub(super) fn ranges(&self) -> Vec<Range<u64>> {
        let Some(program) = &self.program else { return Vec::new() };
        let end = |sequence| Reading::new(program, sequence).end(program);
        self.sequences(program).iter().filter_map(|it| Some(it.address..end(*it)?)).collect()
    }

    /// The row for an address in a range of the unit's that starts at `start`.
    pub(super) fn at(&self, address: u64, start: u64) -> Option<Row> {
        let program = self.program.as_ref()?;
        let mut last = self.last.borrow_mut();
        let in_last = last.as_mut().and_then(|last| last.at(program, address));
        in_last.or_else(|| self.search(program, address, start, &mut last)).or_else(|| {
            let sequences = self.sequences(program);
            let nearest = *sequences[..sequences.partition_point(|it| it.address <= address)].last()?;
            if last.as_ref().is_some_and(|last| last.sequence == nearest) {
                return None;
            }
            last.insert(Reading::new(program, nearest)).at(program, address)
        })
    }

    /// Where each function has a section of its own, ranges of the unit are sequences.
    fn search(
        &self,
        program: &LineProgram<'s>,
        address: u64,
        start: u64,
        last: &mut Option<Reading<'s>>,
    ) -> Option<Row> {
        if self.sequences.get().is_some() || self.searches.get() == SEARCHES_MAX {
            return None;
        }
        self.searches.set(self.searches.get() + 1);
        last.insert(Reading::new(program, program.sequence_at(start)?)).at(program, address)
    }

    fn sequences(&self, program: &LineProgram<'s>) -> &[Sequence] {
        self.sequences.get_or_init(|| program.sequences())
    }
}

impl<'s> Reading<'s> {
    fn new(program: &LineProgram<'s>, sequence: Sequence) -> Self {
        let mut rest = program.rows(sequence);
        let next = rest.next(program);
        Self { sequence, rest, row: None, next }
    }

    /// The row for the address.
    fn at(&mut self, program: &LineProgram<'s>, address: u64) -> Option<Row> {
        if self.row.is_some_and(|row| address < row.address) {
            *self = Self::new(program, self.sequence);
        }
        // Of several rows at one address the last counts.
        while let Some(next) = self.next.filter(|next| next.address <= address) {
            if next.ends {
                return None;
            }
            self.row = Some(next);
            self.next = self.rest.next(program);
        }
        self.row.filter(|_| self.next.is_some()).as_ref().map(Row::of)
    }

    /// The address after the last row.
    fn end(mut self, program: &LineProgram<'s>) -> Option<u64> {
        while let Some(next) = self.next {
            if next.ends {
                return Some(next.address);
            }
            self.next = self.rest.next(program);
        }
        None
    }
}

impl Row {
    fn of(state: &State) -> Self {
        let number = |number: u64| NonZeroU32::new(number.try_into().unwrap_or(0));
        let line = number(state.line);
        Self {
            file: state.file.try_into().unwrap_or(u32::MAX),
            line,
            // A column of no line says nothing.
            column: line.and_then(|_| number(state.column)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line_program::tests::{END, program, section, set_address};
    use super::*;

    /// A row of line 2 and one, 4 bytes on, of line 1; 8 bytes in all.
    const ROWS: [u8; 9] = [3, 1, 1, 2, 4, 3, 0x7f, 1, 2];

    fn lines(section: &[u8]) -> Lines<'_> {
        let program = Some(program(section));
        Lines { program, sequences: OnceCell::new(), searches: Cell::new(0), last: RefCell::default() }
    }

    /// Line at the address, in a range of the unit's that starts at `start`.
    fn line(lines: &Lines<'_>, address: u64, start: u64) -> Option<u32> {
        lines.at(address, start).and_then(|row| row.line).map(NonZeroU32::get)
    }

    #[test]
    fn in_whatever_order_and_however_often() {
        let sequence = |address| [&set_address(address)[..], &ROWS, &[4], &END].concat();
        // Not in the order of addresses; the first has no code.
        let starts = [0x3000, 0x1000, 0x2000];
        let code: Vec<u8> = starts.into_iter().flat_map(sequence).collect();
        let section = section(&[&set_address(0x1000)[..], &END, &code].concat());
        let of_range = |start: u64| start & !0xfff;
        // Ranges of functions, and one range for all: then the search finds nothing.
        for range in [of_range, |_| 0x800] {
            let lines = lines(&section);
            for address in (0..4).flat_map(|_| [0x2007, 0x1000, 0x1003, 0x1004, 0x1000, 0x3007, 0x1008, 0x0fff, 0x4000])
            {
                let expected = match address & 0xfff {
                    0..4 if address < 0x4000 => Some(2),
                    4..8 => Some(1),
                    _ => None,
                };
                assert_eq!(line(&lines, address, range(address)), expected, "{address:#x}");
            }
            assert_eq!(lines.ranges(), [0x1000..0x1008, 0x2000..0x2008, 0x3000..0x3008]);
        }
    }

    #[test]
    fn what_stands_before_damage_counts() {
        // The second row's address goes back.
        let damaged = [&set_address(0x1000)[..], &ROWS[..5], &set_address(0x10), &ROWS[5..], &[4], &END].concat();
        let whole = [&set_address(0x2000)[..], &ROWS, &[4], &END].concat();
        let section = section(&[damaged, whole].concat());
        let lines = lines(&section);
        assert_eq!(line(&lines, 0x1002, 0x1000), None, "where the row ends is not known");
        assert_eq!(line(&lines, 0x2002, 0x2000), Some(2));
        assert_eq!(lines.ranges(), vec![0x2000..0x2008]);
    }
}
