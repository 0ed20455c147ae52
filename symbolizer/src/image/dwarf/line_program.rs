//! Line programs: how a compiler writes down which line each address comes from (DWARF 5, section 6.2.5).
//!
//! gimli runs them too, and keeps all that a debugger wants to know of a row. Most of the rows that look-ups run through are
//! of code that the linker left out; this loop keeps what names a place and nothing else.

use super::sections::Reader;
use gimli::{LineProgramHeader, Reader as _};

/// Where an address comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) address: u64,
    /// Number in the file table of the unit.
    pub(super) file: u64,
    /// 0 for code that stands in no line.
    pub(super) line: u64,
    /// 0 for the start of the line.
    pub(super) column: u64,
    /// The address is the one after the last of the sequence.
    pub(super) ends: bool,
    /// The code of this sequence is not in the image: its address was left 0, is a tombstone, or goes back.
    pub(super) dead: bool,
}

impl State {
    const START: Self = Self { address: 0, file: 1, line: 1, column: 0, ends: false, dead: true };
}

/// A line program.
#[derive(Debug)]
pub(super) struct LineProgram<'s> {
    code: Reader<'s>,
    opcode_base: u8,
    /// Operands of the opcodes from 1 on.
    operands: &'s [u8],
    instruction_length: u64,
    /// Of each special opcode, from the first: how far it goes on in addresses, and in lines.
    special: Vec<(u64, i64)>,
    /// The first address that means "none".
    tombstones: u64,
}

/// The rows that a line program makes; its end, and damage, end them.
///
/// Dead rows are passed over, but for the last of a sequence. A file that is defined in the middle of the program (up to
/// DWARF 4; no compiler does it) gets no name.
pub(super) struct Rows<'p, 's> {
    program: &'p LineProgram<'s>,
    code: Reader<'s>,
    state: State,
}

impl<'s> LineProgram<'s> {
    /// `None` for machines whose instructions have parts of their own (VLIW), which no image here is for.
    pub(super) fn new(header: &LineProgramHeader<Reader<'s>>) -> Option<Self> {
        if header.maximum_operations_per_instruction() != 1 || header.line_range() == 0 {
            return None;
        }
        let instruction_length = u64::from(header.minimum_instruction_length());
        let (range, base) = (header.line_range(), i64::from(header.line_base()));
        let special = |step: u8| (u64::from(step / range) * instruction_length, base + i64::from(step % range));
        Some(Self {
            code: header.raw_program_buf(),
            opcode_base: header.opcode_base(),
            operands: header.standard_opcode_lengths().slice(),
            instruction_length,
            special: (0..=u8::MAX - header.opcode_base()).map(special).collect(),
            tombstones: if header.address_size() == 8 { u64::MAX - 1 } else { u64::from(u32::MAX) - 1 },
        })
    }

    /// The rows from a place in the program on, at which a sequence starts.
    pub(super) fn rows(&self, place: usize) -> Rows<'_, 's> {
        let mut code = self.code;
        if code.skip(place).is_err() {
            code.empty();
        }
        Rows { program: self, code, state: State::START }
    }
}

impl Rows<'_, '_> {
    /// Where in the program the next instruction stands.
    pub(super) fn place(&self) -> usize {
        self.program.code.len() - self.code.len()
    }

    /// Runs an extended opcode; whether it ends the sequence.
    fn extended(&mut self) -> Option<bool> {
        let length = self.code.read_uleb128().ok()?;
        let mut rest = self.code.split(length.try_into().ok()?).ok()?;
        match gimli::DwLne(rest.read_u8().ok()?) {
            gimli::DW_LNE_end_sequence => {
                self.state.ends = true;
                return Some(true);
            }
            gimli::DW_LNE_set_address => {
                let address = match rest.len() {
                    8 => rest.read_u64().ok()?,
                    4 => rest.read_u32().ok()?.into(),
                    _ => return None,
                };
                self.state.dead = address == 0 || address < self.state.address || address >= self.program.tombstones;
                if !self.state.dead {
                    self.state.address = address;
                }
            }
            _ => {}
        }
        Some(false)
    }

    fn advance(&mut self, addresses: u64) {
        if !self.state.dead {
            self.state.address = self.state.address.wrapping_add(addresses);
        }
    }
}

impl Iterator for Rows<'_, '_> {
    type Item = State;

    fn next(&mut self) -> Option<State> {
        if self.state.ends {
            self.state = State::START;
        }
        loop {
            let opcode = self.code.read_u8().ok()?;
            if opcode >= self.program.opcode_base {
                let (addresses, lines) = self.program.special[usize::from(opcode - self.program.opcode_base)];
                self.advance(addresses);
                self.state.line = self.state.line.saturating_add_signed(lines);
                if !self.state.dead {
                    return Some(self.state);
                }
                continue;
            }
            match gimli::DwLns(opcode) {
                gimli::DwLns(0) => {
                    if self.extended()? {
                        return Some(self.state);
                    }
                }
                gimli::DW_LNS_copy if self.state.dead => {}
                gimli::DW_LNS_copy => return Some(self.state),
                gimli::DW_LNS_advance_pc => {
                    let instructions = self.code.read_uleb128().ok()?;
                    self.advance(instructions.wrapping_mul(self.program.instruction_length));
                }
                gimli::DW_LNS_advance_line => {
                    let lines = self.code.read_sleb128().ok()?;
                    self.state.line = self.state.line.saturating_add_signed(lines);
                }
                gimli::DW_LNS_set_file => self.state.file = self.code.read_uleb128().ok()?,
                gimli::DW_LNS_set_column => self.state.column = self.code.read_uleb128().ok()?,
                // As far on as the last special opcode goes.
                gimli::DW_LNS_const_add_pc => self.advance(self.program.special.last()?.0),
                gimli::DW_LNS_fixed_advance_pc => {
                    let addresses = self.code.read_u16().ok()?;
                    self.advance(addresses.into());
                }
                // What a debugger wants to know, and opcodes to come.
                _ => {
                    for _ in 0..*self.program.operands.get(usize::from(opcode) - 1)? {
                        self.code.read_uleb128().ok()?;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{ColumnType, DebugLine, DebugLineOffset, LittleEndian};

    /// `.debug_line` of version 4: no directories, no files, and these instructions.
    fn section(code: &[u8]) -> Vec<u8> {
        // Minimum instruction length, operations, default is_stmt, line base, line range, opcode base, operands, two empty
        // lists.
        let header = [1, 1, 1, -5_i8 as u8, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0];
        let mut rest = vec![4, 0];
        rest.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
        rest.extend(header);
        rest.extend(code);
        [&u32::try_from(rest.len()).unwrap().to_le_bytes()[..], &rest].concat()
    }

    fn set_address(address: u64) -> Vec<u8> {
        [&[0, 9, 2][..], &address.to_le_bytes()].concat()
    }

    const END: [u8; 3] = [0, 1, 1];

    type Place = (u64, u64, u64, u64, bool);

    fn ours(code: &[u8]) -> Vec<Place> {
        let section = section(code);
        let program = DebugLine::new(&section, LittleEndian).program(DebugLineOffset(0), 8, None, None).unwrap();
        let program = LineProgram::new(program.header()).unwrap();
        program.rows(0).map(|s| (s.address, s.file, s.line, s.column, s.ends)).collect()
    }

    fn of_gimli(code: &[u8]) -> Vec<Place> {
        let section = section(code);
        let program = DebugLine::new(&section, LittleEndian).program(DebugLineOffset(0), 8, None, None).unwrap();
        let (mut rows, mut found) = (program.rows(), Vec::new());
        while let Ok(Some((_, row))) = rows.next_row() {
            let column = match row.column() {
                ColumnType::LeftEdge => 0,
                ColumnType::Column(column) => column.get(),
            };
            let line = row.line().map_or(0, std::num::NonZero::get);
            found.push((row.address(), row.file_index(), line, column, row.end_sequence()));
        }
        found
    }

    #[test]
    fn rows_are_those_of_gimli() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let (mut code, mut address) = (set_address(0x1000), 0x1000);
        for _ in 0..20_000 {
            let operand = next(0x4000);
            let leb = [operand as u8 | 0x80, (operand >> 7) as u8];
            match next(16) {
                opcode @ (2..=5 | 12) => code.extend([opcode as u8, leb[0], leb[1] & 0x7f]),
                9 => code.extend([9, operand as u8, 0]),
                opcode @ (1 | 6..=8 | 10 | 11) => code.push(opcode as u8),
                // A discriminator, and what nobody knows.
                0 => code.extend([0, 3, 4 + (operand & 1) as u8 * 0x40, leb[0], leb[1] & 0x7f]),
                15 if operand < 0x800 => {
                    address += 1 << 32;
                    code.extend(END.into_iter().chain(set_address(address)));
                }
                _ => code.push(13 + (operand % 243) as u8),
            }
        }
        code.extend(END);
        let ours = ours(&code);
        assert!(ours.len() > 2_000 && ours.iter().filter(|row| row.4).count() > 100, "{} rows", ours.len());
        assert_eq!(ours, of_gimli(&code));
    }

    #[test]
    fn code_that_is_not_in_the_image_makes_no_rows() {
        for dead in [vec![], set_address(0), set_address(u64::MAX), set_address(u64::MAX - 1)] {
            let code = [&dead[..], &[1, 2, 4, 1], &END, &set_address(0x1000), &[1, 2, 4], &END].concat();
            let live: Vec<_> = ours(&code).into_iter().filter(|row| row.0 != 0).collect();
            assert_eq!(live, [(0x1000, 1, 1, 0, false), (0x1004, 1, 1, 0, true)], "{dead:?}");
        }
        // Back to a lower address: nothing after it counts.
        let code = [&set_address(0x1000)[..], &[1], &set_address(0x800), &[1, 1], &END].concat();
        assert_eq!(ours(&code), [(0x1000, 1, 1, 0, false), (0x1000, 1, 1, 0, true)]);
    }

    #[test]
    fn damage_ends_the_rows() {
        let whole = [&set_address(0x1000)[..], &[1, 3, 0x7f, 1, 2, 4], &END].concat();
        assert_eq!(ours(&whole), [(0x1000, 1, 1, 0, false), (0x1000, 1, 0, 0, false), (0x1004, 1, 0, 0, true)]);
        for length in 0..whole.len() {
            assert!(ours(&whole[..length]).len() < 3);
        }
        let endless = [&set_address(0x1000)[..], &[4], &[0xff; 20]].concat();
        assert_eq!(ours(&endless), []);
    }
}
