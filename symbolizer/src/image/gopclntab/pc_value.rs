//! The pc-value encoding: what a number is over the instructions of a function.

/// The value at `pc`, counted from the start of the function, in the table that starts `table`.
///
/// A table is a run of pairs, each a value delta (zig-zag varint) and the length of code that has the new value (varint,
/// in units of the minimal instruction size). The value starts at −1; a value delta of zero, unless it is the first,
/// ends the table.
///
/// ```text
/// 02 04  06 02  00      instruction size 1: 0 over [0, 4), 3 over [4, 6)
/// ```
pub(super) fn value_at(mut table: &[u8], pc: u64, instruction_size: u64) -> Option<i32> {
    let mut value = -1i32;
    let mut end = 0u64;
    let mut first = true;
    loop {
        let delta = varint(&mut table)?;
        if delta == 0 && !first {
            return None;
        }
        first = false;
        value = value.wrapping_add((delta >> 1) as i32 ^ -((delta & 1) as i32));
        end = end.checked_add(u64::from(varint(&mut table)?) * instruction_size)?;
        if pc < end {
            return Some(value);
        }
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs() {
        // −1 + 1 = 0 over [0, 4); 0 + 3 = 3 over [4, 6); 3 − 2 = 1 over [6, 306).
        let table = [0x02, 0x04, 0x06, 0x02, 0x03, 0xac, 0x02, 0x00, 0xff];
        for (pc, expected) in
            [(0, Some(0)), (3, Some(0)), (4, Some(3)), (5, Some(3)), (6, Some(1)), (305, Some(1)), (306, None)]
        {
            assert_eq!(value_at(&table, pc, 1), expected, "{pc}");
        }
        assert_eq!(value_at(&table, 15, 4), Some(0), "four bytes an instruction");
    }

    #[test]
    fn first_delta_may_be_zero() {
        assert_eq!(value_at(&[0x00, 0x10, 0x00], 3, 1), Some(-1));
    }

    #[test]
    fn damaged() {
        assert_eq!(value_at(&[], 0, 1), None);
        assert_eq!(value_at(&[0x02], 0, 1), None);
        assert_eq!(value_at(&[0x80; 16], 0, 1), None, "endless varint");
        assert_eq!(value_at(&[0x02, 0x00].repeat(1000), 0, 1), None, "no progress ends with the bytes");
    }
}
