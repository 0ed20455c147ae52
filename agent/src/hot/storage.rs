//! The fixed storage that unwind rules are evaluated in.
//!
//! framehop's own policy without allocation has rows of 192 register rules, 6 KiB each, and copies one through the stack
//! whenever it reads an unwind table. The stack is the host's: threads of `PTHREAD_STACK_MIN` have 16 KiB, coroutines
//! often less. So the rows here are as long as real tables need: 17 registers on x86-64, 31 general and 8 saved vector
//! registers on aarch64. A longer row ends the walk with a reason.

use framehop::AllocationPolicy;
use gimli_of_framehop::{
    EvaluationStorage, Piece, Reader, ReaderOffset, Register, RegisterRule, UnwindContextStorage, UnwindTableRow, Value,
};

/// Register rules in a row.
const RULES: usize = if cfg!(target_arch = "x86_64") { 20 } else { 48 };
/// Rows: the initial one, the current one, and those that `DW_CFA_remember_state` keeps.
const ROWS: usize = 4;
/// Values on the stack of a DWARF expression; the longest in use, a PLT's, needs four.
const VALUES: usize = 16;

/// Allocates nothing while unwinding. See the module.
pub(super) struct FixedStorage;

impl<O: ReaderOffset> UnwindContextStorage<O> for FixedStorage {
    type Rules = [(Register, RegisterRule<O>); RULES];
    type Stack = [UnwindTableRow<O, Self>; ROWS];
}

impl<R: Reader> EvaluationStorage<R> for FixedStorage {
    type Stack = [Value; VALUES];
    type ExpressionStack = [(R, R); 4];
    type Result = [Piece<R>; 1];
}

impl AllocationPolicy for FixedStorage {
    type GimliUnwindContextStorage<R: ReaderOffset> = Self;
    type GimliEvaluationStorage<R: Reader> = Self;
}
