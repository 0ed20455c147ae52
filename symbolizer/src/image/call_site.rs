//! Whether machine code has a call that returns to a given place.
//!
//! ```text
//! x86      e8 rel32                        call  target
//!          ff /2, 2 to 7 bytes             call *register or *memory
//! aarch64  100101 imm26                    bl    target
//!          1101011z00111111 … rn …         blr   register, and its authenticated forms
//! ```

use goblin::elf::header::{EM_386, EM_AARCH64, EM_X86_64};

/// Whether the instruction that ends at `end` of this code is a call; `None` for machines whose calls are not known here,
/// and outside of the code.
pub(crate) fn ends_with_call(machine: u16, code: &[u8], end: usize) -> Option<bool> {
    let before = code.get(..end)?;
    match machine {
        EM_X86_64 | EM_386 => Some(x86(before)),
        EM_AARCH64 => Some(aarch64(before)),
        _ => None,
    }
}

fn x86(before: &[u8]) -> bool {
    let back = |length: usize| before.len().checked_sub(length).map(|at| &before[at..]);
    let is_direct = back(5).is_some_and(|bytes| bytes[0] == 0xe8);
    is_direct
        || (2..=7).any(|length| back(length).is_some_and(|b| b[0] == 0xff && indirect_length(b[1]) == Some(length)))
}

/// Length of `ff` with this ModRM byte, when that is a near call.
fn indirect_length(modrm: u8) -> Option<usize> {
    let (mode, operation, register) = (modrm >> 6, (modrm >> 3) & 7, modrm & 7);
    let has_sib = usize::from(mode != 3 && register == 4);
    let displacement = match (mode, register) {
        (0, 5) | (2, _) => 4,
        (1, _) => 1,
        _ => 0,
    };
    (operation == 2).then_some(2 + has_sib + displacement)
}

fn aarch64(before: &[u8]) -> bool {
    let Some(word) = before.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)) else { return false };
    let is_direct = word >> 26 == 0b10_0101;
    let is_indirect = word & 0xfeff_f000 == 0xd63f_0000;
    before.len().is_multiple_of(4) && (is_direct || is_indirect)
}

#[cfg(test)]
mod tests {
    use super::ends_with_call;
    use goblin::elf::header::{EM_AARCH64, EM_ARM, EM_X86_64};

    #[test]
    fn calls_of_each_form() {
        for (text, code, expected) in [
            ("call rel32", &[0x90, 0xe8, 1, 2, 3, 4][..], true),
            ("call *%rax", &[0xff, 0xd0], true),
            ("call *%r12", &[0x41, 0xff, 0xd4], true),
            ("call *(%rax)", &[0xff, 0x10], true),
            ("call *(%rsp)", &[0xff, 0x14, 0x24], true),
            ("call *8(%rax)", &[0xff, 0x50, 8], true),
            ("call *8(%rax,%rbx)", &[0xff, 0x54, 0x18, 8], true),
            ("call *1(%rip)", &[0xff, 0x15, 1, 0, 0, 0], true),
            ("call *256(%rax)", &[0xff, 0x90, 0, 1, 0, 0], true),
            ("call *256(%rsp)", &[0xff, 0x94, 0x24, 0, 1, 0, 0], true),
            ("jmp *%rax", &[0xff, 0xe0], false),
            ("jmp rel32", &[0xe9, 1, 2, 3, 4], false),
            ("push, nop", &[0x55, 0x90], false),
            ("nothing", &[], false),
        ] {
            assert_eq!(ends_with_call(EM_X86_64, code, code.len()), Some(expected), "{text}");
        }
        for (text, word, expected) in [
            ("bl", 0x9400_0010_u32, true),
            ("bl backwards", 0x97ff_ffff, true),
            ("blr x8", 0xd63f_0100, true),
            ("blraa x8, x9", 0xd73f_0909, true),
            ("b", 0x1400_0010, false),
            ("br x8", 0xd61f_0100, false),
            ("ret", 0xd65f_03c0, false),
        ] {
            assert_eq!(ends_with_call(EM_AARCH64, &word.to_le_bytes(), 4), Some(expected), "{text}");
        }
        assert_eq!(ends_with_call(EM_ARM, &[0; 4], 4), None);
        assert_eq!(ends_with_call(EM_X86_64, &[0; 4], 5), None);
    }
}
