//! Line programs: how a compiler writes down which line each address comes from (DWARF 5, section 6.2.5).
//!
//! gimli runs them too, and keeps all that a debugger wants to know of a row. A look-up wants the rows of one sequence out of
//! thousands in a large unit, so the others are passed over without making their rows.

use super::sections::Reader;
use gimli::{LineProgramHeader, Reader as _};
use memchr::memmem;
use std::cmp::Reverse;

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
}

/// A line program.
#[derive(Debug)]
pub(super) struct LineProgram<'s> {
    code: Reader<'s>,
    opcode_base: u8,
    instruction_length: u64,
    /// Of each special opcode, from the first: how far it goes on in addresses, and in lines.
    special: Vec<(u64, i64)>,
    /// What stands behind each opcode.
    behind: [Behind; 256],
    /// Whether addresses have 8 bytes, else 4.
    is_64: bool,
}

/// What stands behind an opcode.
#[derive(Debug, Clone, Copy)]
enum Behind {
    /// So many numbers.
    Numbers(u8),
    TwoBytes,
    /// The length of an extended instruction, and that.
    Extended,
}

/// Where in a line program a sequence starts, and at which address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) address: u64,
    place: usize,
}

/// The rows of one sequence, the last of which ends it; damage ends them before.
///
/// A file that is defined in the middle of the program (up to DWARF 4; no compiler does it) gets no name.
#[derive(Debug)]
pub(super) struct Rows<'s> {
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
            instruction_length,
            special: (0..=u8::MAX - header.opcode_base()).map(special).collect(),
            behind: std::array::from_fn(|opcode| Behind::of(opcode as u8, header)),
            is_64: header.address_size() == 8,
        })
    }

    /// The sequences whose code is in the image, by address, as far as the program is not damaged. Of several that start at one
    /// address the longest: functions without code have sequences of no length, which start where the next one does.
    pub(super) fn sequences(&self) -> Vec<Sequence> {
        let mut found = Vec::new();
        let mut rest = self.code;
        let (mut place, mut address) = (0, None);
        while let Some(mut instruction) = self.next_extended(&mut rest) {
            match instruction.read_u8().map(gimli::DwLne) {
                Ok(gimli::DW_LNE_set_address) if address.is_none() => address = address_of(instruction),
                Ok(gimli::DW_LNE_end_sequence) => {
                    let address = address.take().filter(|address| self.is_in_image(*address));
                    let next = self.code.len() - rest.len();
                    found.extend(address.map(|address| (Sequence { address, place }, next - place)));
                    place = next;
                }
                _ => {}
            }
        }
        found.sort_unstable_by_key(|(sequence, length)| (sequence.address, Reverse(*length)));
        found.dedup_by_key(|(sequence, _)| sequence.address);
        found.into_iter().map(|(sequence, _)| sequence).collect()
    }

    /// Passes over instructions up to the next extended one.
    fn next_extended(&self, rest: &mut Reader<'s>) -> Option<Reader<'s>> {
        let mut code = rest.slice().iter();
        loop {
            match self.behind[usize::from(*code.next()?)] {
                Behind::Numbers(count) => {
                    for _ in 0..count {
                        while *code.next()? >= 0x80 {}
                    }
                }
                Behind::TwoBytes => _ = code.nth(1)?,
                Behind::Extended => break,
            }
        }
        *rest = Reader::new(code.as_slice(), rest.endian());
        split_extended(rest)
    }

    /// Code that the linker left out has the address 0, or one of the last two.
    fn is_in_image(&self, address: u64) -> bool {
        let last = if self.is_64 { u64::MAX } else { u32::MAX.into() };
        address != 0 && address < last - 1
    }

    /// The sequence that starts at the address, without reading those before it: the instruction that sets this address is
    /// searched for as bytes. `None` when it is not found like that; [`Self::sequences`] may find it.
    pub(super) fn sequence_at(&self, address: u64) -> Option<Sequence> {
        let code = self.code.slice();
        let size = if self.is_64 { 8 } else { 4 };
        let instruction =
            [&[0, size as u8 + 1, gimli::DW_LNE_set_address.0][..], &address.to_le_bytes()[..size]].concat();
        let at = memmem::find(code, &instruction).filter(|_| self.is_in_image(address))?;
        // Between the end of the sequence before and this instruction stand a few without rows.
        let before = &code[at.saturating_sub(BEFORE_ADDRESS)..at];
        let place = match memmem::rfind(before, &END_SEQUENCE) {
            Some(end) => at - before.len() + end + END_SEQUENCE.len(),
            None if before.len() == at => 0,
            None => return None,
        };
        // The bytes can stand in other instructions; those from the place on must lead to this one.
        let mut rest = self.code_from(place);
        let found = self.next_extended(&mut rest)?;
        let is_it = found.len() == 1 + size && code.len() - rest.len() == at + instruction.len();
        is_it.then_some(Sequence { address, place })
    }

    pub(super) fn rows(&self, sequence: Sequence) -> Rows<'s> {
        let state = State { address: 0, file: 1, line: 1, column: 0, ends: false };
        Rows { code: self.code_from(sequence.place), state }
    }

    fn code_from(&self, place: usize) -> Reader<'s> {
        let mut code = self.code;
        if code.skip(place).is_err() {
            code.empty();
        }
        code
    }
}

/// Instruction that ends a sequence.
const END_SEQUENCE: [u8; 3] = [0, 1, gimli::DW_LNE_end_sequence.0];
/// Bytes of instructions between the start of a sequence and the one that sets its address. GNU as sets the column and the
/// file there.
const BEFORE_ADDRESS: usize = 32;

/// Most numbers are of one byte.
fn unsigned(code: &mut Reader<'_>) -> Option<u64> {
    match code.slice() {
        [byte @ ..0x80, rest @ ..] => {
            *code = Reader::new(rest, code.endian());
            Some(u64::from(*byte))
        }
        _ => code.read_uleb128().ok(),
    }
}

fn signed(code: &mut Reader<'_>) -> Option<i64> {
    match code.slice() {
        [byte @ ..0x80, rest @ ..] => {
            *code = Reader::new(rest, code.endian());
            // Bit 6 is the sign.
            Some(i64::from((byte << 1) as i8 >> 1))
        }
        _ => code.read_sleb128().ok(),
    }
}

fn split_extended<'s>(code: &mut Reader<'s>) -> Option<Reader<'s>> {
    let length = code.read_uleb128().ok()?;
    code.split(length.try_into().ok()?).ok()
}

/// The operand of an instruction that sets the address.
fn address_of(mut operand: Reader<'_>) -> Option<u64> {
    match operand.len() {
        8 => operand.read_u64().ok(),
        4 => operand.read_u32().ok().map(u64::from),
        _ => None,
    }
}

impl Behind {
    fn of(opcode: u8, header: &LineProgramHeader<Reader<'_>>) -> Self {
        if opcode >= header.opcode_base() {
            return Self::Numbers(0);
        }
        match gimli::DwLns(opcode) {
            gimli::DwLns(0) => Self::Extended,
            gimli::DW_LNS_copy | gimli::DW_LNS_const_add_pc => Self::Numbers(0),
            gimli::DW_LNS_fixed_advance_pc => Self::TwoBytes,
            gimli::DW_LNS_advance_pc
            | gimli::DW_LNS_advance_line
            | gimli::DW_LNS_set_file
            | gimli::DW_LNS_set_column => Self::Numbers(1),
            // What a debugger wants to know, and opcodes to come.
            _ => Self::Numbers(*header.standard_opcode_lengths().slice().get(usize::from(opcode) - 1).unwrap_or(&0)),
        }
    }
}

impl<'s> Rows<'s> {
    /// Runs the program up to the next row.
    pub(super) fn next(&mut self, program: &LineProgram<'s>) -> Option<State> {
        if self.state.ends {
            return None;
        }
        loop {
            let opcode = self.code.read_u8().ok()?;
            if opcode >= program.opcode_base {
                let (addresses, lines) = program.special[usize::from(opcode - program.opcode_base)];
                self.advance(addresses);
                self.state.line = self.state.line.saturating_add_signed(lines);
                return Some(self.state);
            }
            match gimli::DwLns(opcode) {
                gimli::DwLns(0) => {
                    if self.extended(program)? {
                        return Some(self.state);
                    }
                }
                gimli::DW_LNS_copy => return Some(self.state),
                gimli::DW_LNS_advance_pc => {
                    let instructions = unsigned(&mut self.code)?;
                    self.advance(instructions.wrapping_mul(program.instruction_length));
                }
                gimli::DW_LNS_advance_line => {
                    let lines = signed(&mut self.code)?;
                    self.state.line = self.state.line.saturating_add_signed(lines);
                }
                gimli::DW_LNS_set_file => self.state.file = unsigned(&mut self.code)?,
                gimli::DW_LNS_set_column => self.state.column = unsigned(&mut self.code)?,
                // As far on as the last special opcode goes.
                gimli::DW_LNS_const_add_pc => self.advance(program.special.last()?.0),
                gimli::DW_LNS_fixed_advance_pc => {
                    let addresses = self.code.read_u16().ok()?;
                    self.advance(addresses.into());
                }
                _ => {
                    let Behind::Numbers(count) = program.behind[usize::from(opcode)] else { return None };
                    for _ in 0..count {
                        self.code.skip_leb128().ok()?;
                    }
                }
            }
        }
    }

    /// Runs an extended instruction; whether it ends the sequence.
    fn extended(&mut self, program: &LineProgram<'s>) -> Option<bool> {
        let mut instruction = split_extended(&mut self.code)?;
        match gimli::DwLne(instruction.read_u8().ok()?) {
            gimli::DW_LNE_end_sequence => {
                self.state.ends = true;
                return Some(true);
            }
            gimli::DW_LNE_set_address => {
                let address = address_of(instruction)?;
                // Within a sequence addresses do not go back.
                if address < self.state.address || !program.is_in_image(address) {
                    return None;
                }
                self.state.address = address;
            }
            _ => {}
        }
        Some(false)
    }

    fn advance(&mut self, addresses: u64) {
        self.state.address = self.state.address.wrapping_add(addresses);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use gimli::{ColumnType, DebugLine, DebugLineOffset, LittleEndian};

    /// `.debug_line` of version 4: no directories, no files, and these instructions.
    pub(in crate::image::dwarf) fn section(code: &[u8]) -> Vec<u8> {
        // Minimum instruction length, operations, default is_stmt, line base, line range, opcode base, operands, two empty
        // lists.
        let header = [1, 1, 1, -5_i8 as u8, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0];
        let mut rest = vec![4, 0];
        rest.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
        rest.extend(header);
        rest.extend(code);
        [&u32::try_from(rest.len()).unwrap().to_le_bytes()[..], &rest].concat()
    }

    pub(in crate::image::dwarf) fn set_address(address: u64) -> Vec<u8> {
        [&[0, 9, 2][..], &address.to_le_bytes()].concat()
    }

    pub(in crate::image::dwarf) const END: [u8; 3] = END_SEQUENCE;

    type Place = (u64, u64, u64, u64, bool);

    /// The program in such a section.
    pub(in crate::image::dwarf) fn program(section: &[u8]) -> LineProgram<'_> {
        let program = DebugLine::new(section, LittleEndian).program(DebugLineOffset(0), 8, None, None).unwrap();
        LineProgram::new(program.header()).unwrap()
    }

    fn ours(code: &[u8]) -> Vec<Place> {
        let section = section(code);
        let program = program(&section);
        let rows = |sequence| {
            let mut rows = program.rows(sequence);
            std::iter::from_fn(|| rows.next(&program)).collect::<Vec<_>>()
        };
        program.sequences().into_iter().flat_map(rows).map(|s| (s.address, s.file, s.line, s.column, s.ends)).collect()
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
            assert_eq!(ours(&code), [(0x1000, 1, 1, 0, false), (0x1004, 1, 1, 0, true)], "{dead:?}");
        }
    }

    #[test]
    fn an_address_that_goes_back_ends_the_rows() {
        for back in [0x800, 0, u64::MAX] {
            let code = [&set_address(0x1000)[..], &[1], &set_address(back), &[1, 1], &END].concat();
            assert_eq!(ours(&code), [(0x1000, 1, 1, 0, false)]);
        }
    }

    #[test]
    fn a_sequence_is_found_by_its_address() {
        // The second sets the column first, as GNU as does; the third has the second's bytes in an instruction that nobody
        // knows, and only then its own address.
        let hidden = [&[0, 12, 0x80][..], &set_address(0x2000)].concat();
        let code = [
            &set_address(0x1000)[..],
            &[1, 2, 4],
            &END,
            &[5, 7],
            &set_address(0x2000),
            &[1, 2, 4],
            &END,
            &hidden,
            &set_address(0x3000),
            &[1, 2, 4],
            &END,
            &set_address(0),
            &[1, 2, 4],
            &END,
            &set_address(0x4000),
            &[1],
            &[1; 2 * BEFORE_ADDRESS],
            &set_address(0x5000),
            &[1, 2, 4],
            &END,
        ]
        .concat();
        let first = section(&code);
        let second = section(&[&hidden[..], &code].concat());
        let in_second = program(&second);
        let program = program(&first);
        let all = program.sequences();
        assert_eq!(all.iter().map(|it| it.address).collect::<Vec<_>>(), [0x1000, 0x2000, 0x3000, 0x4000]);
        assert_eq!(program.sequence_at(0x1000), Some(all[0]));
        assert_eq!(program.sequence_at(0x2000), Some(all[1]));
        assert_eq!(program.sequence_at(0x4000), Some(all[3]));
        // Behind an instruction of another kind, inside of a sequence, left out, nowhere.
        for address in [0x3000, 0x5000, 0, 0x1800] {
            assert_eq!(program.sequence_at(address), None, "{address:#x}");
        }
        assert_eq!(in_second.sequence_at(0x2000), None, "the bytes stand in another instruction first");
    }

    #[test]
    fn damage_ends_the_rows() {
        let whole = [&set_address(0x1000)[..], &[1, 3, 0x7f, 1, 2, 4], &END].concat();
        assert_eq!(ours(&whole), [(0x1000, 1, 1, 0, false), (0x1000, 1, 0, 0, false), (0x1004, 1, 0, 0, true)]);
        let good = [&whole[..], &whole].concat();
        for length in whole.len()..good.len() {
            assert_eq!(ours(&good[..length]).len(), 3, "cut at {length}");
        }
        // A number too large for 64 bits.
        let endless = [&set_address(0x1000)[..], &[1, 4], &[0xff; 20], &[0], &END].concat();
        assert_eq!(ours(&endless), [(0x1000, 1, 1, 0, false)]);
    }
}
