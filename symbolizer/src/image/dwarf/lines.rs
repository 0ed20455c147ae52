use super::line_program::{LineProgram, State};
use super::sections::Reader;
use gimli::UnitRef;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

/// The line table of one unit. Kept of it is where its sequences are, as far as it was read, and the rows of the one that
/// was asked last: addresses come in order, so that those of the others are not missed.
#[derive(Debug)]
pub(super) struct Lines<'s> {
    program: Option<LineProgram<'s>>,
    sequences: RefCell<Sequences>,
    last: RefCell<(usize, Vec<Row>)>,
}

/// The sequences of a line program up to a place in it.
#[derive(Debug, Default)]
struct Sequences {
    /// By start: the end, and the place where it starts in the program.
    by_start: BTreeMap<u64, (u64, usize)>,
    read: usize,
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
        Self { program, sequences: RefCell::default(), last: RefCell::new((usize::MAX, Vec::new())) }
    }

    /// Addresses of the sequences.
    pub(super) fn ranges(&self) -> Vec<Range<u64>> {
        let mut sequences = self.sequences.borrow_mut();
        if let Some(program) = &self.program {
            sequences.read_on(program, |_| false);
        }
        sequences.by_start.iter().map(|(start, (end, _))| *start..*end).collect()
    }

    /// The row for the address.
    pub(super) fn at(&self, address: u64) -> Option<Row> {
        let program = self.program.as_ref()?;
        let place = self.sequences.borrow_mut().at(program, address)?;
        let mut last = self.last.borrow_mut();
        if last.0 != place {
            last.0 = place;
            read_rows(program, place, &mut last.1);
        }
        let rows = &last.1;
        rows[..rows.partition_point(|row| row.address <= address)].last().copied()
    }
}

impl Sequences {
    /// Where the sequence starts that the address is in.
    fn at(&mut self, program: &LineProgram<'_>, address: u64) -> Option<usize> {
        let known = self.by_start.range(..=address).next_back().filter(|(_, (end, _))| *end > address);
        match known {
            Some((_, (_, place))) => Some(*place),
            None => self.read_on(program, |range| range.contains(&address)),
        }
    }

    /// Reads up to a sequence that is the wanted one, or up to the end; what stands before damage counts.
    fn read_on(&mut self, program: &LineProgram<'_>, is_wanted: impl Fn(&Range<u64>) -> bool) -> Option<usize> {
        let mut rows = program.rows(self.read);
        let mut start = None;
        while let Some(state) = rows.next() {
            if !state.ends {
                start = start.or(Some(state.address));
                continue;
            }
            let place = std::mem::replace(&mut self.read, rows.place());
            if let Some(start) = start.take().filter(|start| !state.dead && *start < state.address) {
                self.by_start.insert(start, (state.address, place));
                if is_wanted(&(start..state.address)) {
                    return Some(place);
                }
            }
        }
        self.read = usize::MAX;
        None
    }
}

/// The rows of one sequence.
fn read_rows(program: &LineProgram<'_>, place: usize, rows: &mut Vec<Row>) {
    rows.clear();
    for row in program.rows(place).take_while(|state| !state.ends).map(|state| Row::of(&state)) {
        match rows.last_mut() {
            // Of several rows at one address the last counts.
            Some(last) if last.address == row.address => *last = row,
            _ => rows.push(row),
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
