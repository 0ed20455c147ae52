use super::header::{Header, Layout};
use super::inline_tree::InlinedCall;
use super::module_data::ModuleData;
use super::pc_value::value_at;
use crate::address::ImageAddress;
use crate::frame::Frame;
use crate::image::bytes::{c_str_at, i32_at, tail_at, u8_at, u32_at};
use crate::image::elf::Elf;
use std::sync::Arc;

/// The parts of the table, ready for look-ups.
///
/// The functions start with an index that ends in one entry more, the end of the last function:
///
/// ```text
/// (entry u32, function u32) × number of functions · end u32
/// ```
///
/// `entry` counts from the start of the text, `function` from the start of the index.
#[derive(Debug)]
pub(super) struct Table<'a> {
    header: Header,
    text: ImageAddress,
    names: &'a [u8],
    units: &'a [u8],
    files: &'a [u8],
    pc_values: &'a [u8],
    functions: &'a [u8],
    /// Where funcdata offsets count from.
    funcdata: Option<&'a [u8]>,
}

/// A function (`runtime._func`):
///
/// ```text
/// 0 entry u32 · 4 name i32 · 8 args i32 · 12 deferreturn u32 · 16 pcsp u32 · 20 pcfile u32 · 24 pcln u32
/// 28 npcdata u32 · 32 unit u32
/// Go 1.18:                      36 function id u8 · 37 flags u8 · 39 nfuncdata u8
/// Go 1.20:  36 start line i32 · 40 function id u8 · 41 flags u8 · 43 nfuncdata u8
/// then pcdata u32 × npcdata, funcdata u32 × nfuncdata
/// ```
#[derive(Clone, Copy, Debug)]
struct Function<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

/// Index among a function's pcdata of the table that says which inlined call an instruction belongs to.
const PCDATA_INLINE_INDEX: u32 = 2;
/// Index among a function's funcdata of the inline tree.
const FUNCDATA_INLINE_TREE: u32 = 3;
/// Deeper chains of inlined calls than this are damage. (Go's own inliner stops far below.)
const INLINE_DEPTH_MAX: usize = 256;
/// How many inlined calls must decode before a base of funcdata is believed.
const WITNESSES: usize = 16;

impl<'a> Table<'a> {
    pub(super) fn new(bytes: &'a [u8], header: Header, text: ImageAddress) -> Option<Self> {
        Some(Self {
            text,
            names: tail_at(bytes, header.names)?,
            units: tail_at(bytes, header.units)?,
            files: tail_at(bytes, header.files)?,
            pc_values: tail_at(bytes, header.pc_values)?,
            functions: tail_at(bytes, header.functions)?,
            funcdata: None,
            header,
        })
    }

    /// Find where funcdata is: under the base for which the inline trees of the first functions that have one decode,
    /// every entry to the start of a name and an instruction of its function.
    pub(super) fn with_inline_trees(mut self, elf: &Elf<'a>, module: &ModuleData) -> Self {
        let witnesses: Vec<_> = self.inlined_witnesses().take(WITNESSES).collect();
        if witnesses.is_empty() {
            return self;
        }
        self.funcdata = module.gofunc_candidates.iter().filter_map(|base| elf.tail_at(*base)).find(|base| {
            witnesses.iter().all(|(offset, size)| {
                tail_at(base, u64::from(*offset))
                    .and_then(|tree| InlinedCall::parse(tree, 0, self.header.layout))
                    .is_some_and(|call| u64::from(call.parent_pc) < *size && self.is_start_of_name(call.name))
            })
        });
        self
    }

    /// Offset of the inline tree and size, of each function that has a tree.
    fn inlined_witnesses(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0..self.header.function_count).filter_map(|index| {
            let size = self.entry(index + 1)?.checked_sub(self.entry(index)?)?;
            Some((self.function(index)?.funcdata(FUNCDATA_INLINE_TREE)?, u64::from(size)))
        })
    }

    fn is_start_of_name(&self, at: u32) -> bool {
        u8_at(self.names, u64::from(at)).is_some_and(|byte| byte != 0)
            && at.checked_sub(1).is_none_or(|before| u8_at(self.names, u64::from(before)) == Some(0))
    }

    /// Start of function `index`, or the end of the last one, from the start of the text.
    fn entry(&self, index: u64) -> Option<u32> {
        u32_at(self.functions, index.checked_mul(8)?)
    }

    fn function(&self, index: u64) -> Option<Function<'a>> {
        let offset = u32_at(self.functions, index.checked_mul(8)?.checked_add(4)?)?;
        Some(Function { bytes: tail_at(self.functions, u64::from(offset))?, layout: self.header.layout })
    }

    /// Index of the function that holds the address. Nothing beyond the end of the last one is Go code: in binaries
    /// linked by a C linker the C code follows there.
    fn find(&self, pc: u32) -> Option<u64> {
        let (mut low, mut high) = (0, self.header.function_count);
        if pc < self.entry(0)? || pc >= self.entry(high)? {
            return None;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.entry(middle)? <= pc { low = middle } else { high = middle }
        }
        Some(low)
    }

    pub(super) fn covers(&self, address: ImageAddress) -> bool {
        self.offset(address).and_then(|offset| self.find(offset)).is_some()
    }

    fn offset(&self, address: ImageAddress) -> Option<u32> {
        u32::try_from(address.0.checked_sub(self.text.0)?).ok()
    }

    /// Append the frames at `address`, innermost first; on `None` `frames` may hold some.
    pub(super) fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Option<()> {
        let offset = self.offset(address)?;
        let function = self.function(self.find(offset)?)?;
        let mut pc = offset.checked_sub(function.entry()?)?;
        for _ in 0..INLINE_DEPTH_MAX {
            let Some(call) = self.inlined_call(function, pc) else { break };
            let Some(name) = self.name(call.name) else { break };
            frames.push(self.frame(function, name, pc, call.start_line, true));
            pc = call.parent_pc;
        }
        let name = self.name(function.name()?)?;
        frames.push(self.frame(function, name, pc, function.start_line(), false));
        Some(())
    }

    /// The inlined call that the instruction at `pc` belongs to; `None` in the function's own code.
    fn inlined_call(&self, function: Function<'a>, pc: u32) -> Option<InlinedCall> {
        let tree = tail_at(self.funcdata?, u64::from(function.funcdata(FUNCDATA_INLINE_TREE)?))?;
        let index = self.value(function.pcdata(PCDATA_INLINE_INDEX)?, pc)?;
        InlinedCall::parse(tree, u32::try_from(index).ok()?, self.header.layout)
    }

    fn frame(&self, function: Function<'a>, name: &[u8], pc: u32, start_line: u32, inlined: bool) -> Frame {
        Frame {
            function: Arc::from(String::from_utf8_lossy(name)),
            file: self.file(function, pc).map(|file| Arc::from(String::from_utf8_lossy(file))),
            line: function.lines().and_then(|lines| self.value(lines, pc)).and_then(|line| u32::try_from(line).ok()),
            column: None,
            start_line: (start_line != 0).then_some(start_line),
            inlined,
        }
    }

    /// The file at `pc`: an index among the unit's files, which are offsets among the file names.
    fn file(&self, function: Function<'a>, pc: u32) -> Option<&'a [u8]> {
        let index = u32::try_from(self.value(function.files()?, pc)?).ok()?;
        let unit = function.unit()?.checked_add(index)?;
        let offset = u32_at(self.units, u64::from(unit) * 4).filter(|offset| *offset != u32::MAX)?;
        c_str_at(self.files, u64::from(offset))
    }

    fn name(&self, at: u32) -> Option<&'a [u8]> {
        c_str_at(self.names, u64::from(at)).filter(|name| !name.is_empty())
    }

    /// Value of a pc-value table; an offset of 0 means that there is none.
    fn value(&self, table: u32, pc: u32) -> Option<i32> {
        if table == 0 {
            return None;
        }
        value_at(tail_at(self.pc_values, u64::from(table))?, u64::from(pc), self.header.instruction_size)
    }
}

impl Function<'_> {
    fn entry(self) -> Option<u32> {
        u32_at(self.bytes, 0)
    }

    fn name(self) -> Option<u32> {
        u32::try_from(i32_at(self.bytes, 4)?).ok()
    }

    fn files(self) -> Option<u32> {
        u32_at(self.bytes, 20)
    }

    fn lines(self) -> Option<u32> {
        u32_at(self.bytes, 24)
    }

    fn pcdata_count(self) -> Option<u32> {
        u32_at(self.bytes, 28)
    }

    fn unit(self) -> Option<u32> {
        u32_at(self.bytes, 32)
    }

    fn start_line(self) -> u32 {
        match self.layout {
            Layout::Go118 => 0,
            Layout::Go120 => i32_at(self.bytes, 36).and_then(|line| u32::try_from(line).ok()).unwrap_or(0),
        }
    }

    /// Size of the fixed part, whose last byte counts the funcdata.
    fn fixed_size(self) -> u64 {
        match self.layout {
            Layout::Go118 => 40,
            Layout::Go120 => 44,
        }
    }

    fn pcdata(self, index: u32) -> Option<u32> {
        if index >= self.pcdata_count()? {
            return None;
        }
        u32_at(self.bytes, self.fixed_size() + u64::from(index) * 4)
    }

    fn funcdata(self, index: u32) -> Option<u32> {
        if index >= u32::from(u8_at(self.bytes, self.fixed_size() - 1)?) {
            return None;
        }
        let slot = u64::from(self.pcdata_count()?) + u64::from(index);
        u32_at(self.bytes, self.fixed_size() + slot * 4).filter(|offset| *offset != u32::MAX)
    }
}
