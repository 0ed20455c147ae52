use super::line_program::{self as program, LineProgram, Sequence, State};
use super::sections::Reader;
use gimli::UnitRef;
use std::cell::{Cell, OnceCell, RefCell};
use std::num::NonZeroU32;
use std::ops::Range;

/// The line table of one unit. Kept of it is where its sequences start, and the rows of the one that was asked last:
/// addresses come in order, so that those of the others are not missed.
#[derive(Debug)]
pub(super) struct Lines<'s> {
    program: Option<LineProgram<'s>>,
    /// By address.
    sequences: OnceCell<Vec<Sequence>>,
    /// How often a sequence was searched for while they were not known.
    searches: Cell<u32>,
    last: RefCell<Option<SequenceRows<'s>>>,
}

/// Searching for one sequence takes a small part of the time that it takes to find all.
const SEARCHES_MAX: u32 = 8;

/// The rows of one sequence, read as far as they were asked for.
#[derive(Debug)]
struct SequenceRows<'s> {
    sequence: Sequence,
    rest: program::Rows<'s>,
    rows: Vec<Row>,
    /// The address after the last row, once it is reached.
    end: Option<u64>,
}

/// Code from this address up to that of the next row of its sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    address: u64,
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
        let end = |sequence| {
            let mut rows = SequenceRows::new(program, sequence);
            rows.read_past(program, u64::MAX);
            rows.end
        };
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
            last.insert(SequenceRows::new(program, nearest)).at(program, address)
        })
    }

    /// Where each function has a section of its own, ranges of the unit are sequences.
    fn search(
        &self,
        program: &LineProgram<'s>,
        address: u64,
        start: u64,
        last: &mut Option<SequenceRows<'s>>,
    ) -> Option<Row> {
        if self.sequences.get().is_some() || self.searches.get() == SEARCHES_MAX {
            return None;
        }
        self.searches.set(self.searches.get() + 1);
        last.insert(SequenceRows::new(program, program.sequence_at(start)?)).at(program, address)
    }

    fn sequences(&self, program: &LineProgram<'s>) -> &[Sequence] {
        self.sequences.get_or_init(|| program.sequences())
    }
}

impl<'s> SequenceRows<'s> {
    fn new(program: &LineProgram<'s>, sequence: Sequence) -> Self {
        Self { sequence, rest: program.rows(sequence), rows: Vec::new(), end: None }
    }

    /// The row for the address.
    fn at(&mut self, program: &LineProgram<'s>, address: u64) -> Option<Row> {
        if address < self.sequence.address || self.end.is_some_and(|end| end <= address) {
            return None;
        }
        self.read_past(program, address);
        let before = self.rows.partition_point(|row| row.address <= address);
        let is_inside = before < self.rows.len() || self.end.is_some_and(|end| address < end);
        self.rows[..before].last().filter(|_| is_inside).copied()
    }

    /// Reads up to the first row behind the address.
    fn read_past(&mut self, program: &LineProgram<'s>, address: u64) {
        while self.rows.last().is_none_or(|row| row.address <= address) {
            let Some(state) = self.rest.next(program) else { return };
            if state.ends {
                self.end = Some(state.address);
                return;
            }
            let row = Row::of(&state);
            match self.rows.last_mut() {
                // Of several rows at one address the last counts.
                Some(last) if last.address == row.address => *last = row,
                _ => self.rows.push(row),
            }
        }
    }
}

impl Row {
    fn of(state: &State) -> Self {
        let number = |number: u64| NonZeroU32::new(number.try_into().unwrap_or(0));
        let line = number(state.line);
        Self {
            address: state.address,
            file: state.file.try_into().unwrap_or(u32::MAX),
            line,
            // A column of no line says nothing.
            column: line.and_then(|_| number(state.column)),
        }
    }
}
