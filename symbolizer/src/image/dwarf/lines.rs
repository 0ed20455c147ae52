use super::ranges::RangeMap;
use super::sections::Reader;
use gimli::{ColumnType, UnitRef};
use std::num::NonZeroU32;
use std::ops::Range;

/// The line table of one unit.
#[derive(Debug)]
pub(super) struct Lines {
    /// The rows of all sequences, each sequence by address.
    rows: Vec<Row>,
    /// Where the rows of a sequence are: the number of the first and of the one after the last.
    sequences: RangeMap<(usize, usize)>,
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

impl Lines {
    /// Runs the line program of the unit; what stands before damage counts. Units that say nothing about lines have no rows.
    pub(super) fn read(unit: UnitRef<'_, Reader<'_>>) -> Self {
        let (mut rows, mut sequences) = (Vec::<Row>::new(), Vec::new());
        if let Some(program) = unit.line_program.clone() {
            let mut first = 0;
            let mut states = program.rows();
            while let Ok(Some((_, state))) = states.next_row() {
                let address = state.address();
                if state.end_sequence() {
                    match rows.get(first).map(|row| row.address) {
                        // The linker left the code of this sequence out, and so wrote no address.
                        Some(0) | None => rows.truncate(first),
                        Some(start) => sequences.push((start..address, (first, rows.len()))),
                    }
                    first = rows.len();
                    continue;
                }
                // Of several rows at one address the last counts.
                if rows.len() > first {
                    rows.pop_if(|last| last.address == address);
                }
                let file = u32::try_from(state.file_index()).unwrap_or(u32::MAX);
                let line = state.line().and_then(|line| line.try_into().ok());
                let column = match state.column() {
                    ColumnType::Column(column) => column.try_into().ok().filter(|_| line.is_some()),
                    ColumnType::LeftEdge => None,
                };
                rows.push(Row { address, file, line, column });
            }
            rows.truncate(first);
        }
        Self { rows, sequences: sequences.into_iter().collect() }
    }

    /// Addresses of the sequences.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.sequences.ranges()
    }

    /// The row for the address.
    pub(super) fn at(&self, address: u64) -> Option<Row> {
        let (first, end) = self.sequences.covering(address).next()?;
        let rows = &self.rows[first..end];
        rows[..rows.partition_point(|row| row.address <= address)].last().copied()
    }
}
