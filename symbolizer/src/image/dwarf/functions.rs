//! Functions of one unit, and the calls inlined into them.
//!
//! Most of a unit describes types. GCC writes into an entry with children where the next one beside it starts
//! (`DW_AT_sibling`), so types, namespaces and the insides of functions are stepped over, and a look-up in a unit of 16 MB reads a
//! small part of it. What is missed by that, functions inside of what was stepped over, is found by a second reading that
//! steps over nothing. Nothing here recurses, however deep entries are nested.

use super::sections::Reader;
use super::walk::Walk;
use crate::image::ranges::RangeMap;
use gimli::{
    Abbreviation, Attribute, AttributeSpecification, AttributeValue, DwTag, EntriesRaw, RangeListsOffset, UnitOffset,
    UnitRef,
};
use std::ops::Range;

/// Where the functions of a unit are.
#[derive(Debug)]
pub(super) struct Functions {
    /// Functions do not overlap, but for those that the linker folded into one.
    by_address: RangeMap<UnitOffset<usize>>,
    are_all: bool,
}

/// What was inlined into one function.
#[derive(Debug)]
pub(super) struct InlinedCalls {
    /// In the order of the entries: outer before inner.
    calls: Vec<InlinedCall>,
}

/// A call that was inlined.
#[derive(Debug)]
pub(super) struct InlinedCall {
    /// Entry of the call; its origin is the function that was called.
    pub(super) entry: UnitOffset<usize>,
    /// Place of the call, in the file table of the unit.
    pub(super) file: Option<u64>,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
    /// The call that this one is inlined into, by its number.
    parent: Option<usize>,
    ranges: Vec<Range<u64>>,
}

impl Functions {
    /// Those on the levels where compilers put them.
    pub(super) fn read(unit: UnitRef<'_, Reader<'_>>) -> gimli::Result<Self> {
        Self::read_levels(unit, |abbreviation| !holds_functions(abbreviation.tag()))
    }

    /// Those inside of types and of other functions as well.
    pub(super) fn read_all(unit: UnitRef<'_, Reader<'_>>) -> gimli::Result<Self> {
        Self::read_levels(unit, |_| false)
    }

    fn read_levels(unit: UnitRef<'_, Reader<'_>>, may_step_over: fn(&Abbreviation) -> bool) -> gimli::Result<Self> {
        let mut by_address = Vec::new();
        let mut walk = Walk::new(unit, is_function_with_code, may_step_over)?;
        while let Some(entry) = walk.next()? {
            let mut entries = unit.entries_raw(Some(entry))?;
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            let (mut extent, mut sibling) = (Extent::default(), None);
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                match attribute.value() {
                    AttributeValue::UnitRef(next) if spec.name() == gimli::DW_AT_sibling => sibling = Some(next),
                    _ => extent.take(unit, &attribute)?,
                }
            }
            extent.each(unit, |range| by_address.push((range, entry)))?;
            if let Some(sibling) = sibling.filter(|_| may_step_over(abbreviation)) {
                walk.step_to(sibling)?;
            }
        }
        Ok(Self { by_address: by_address.into_iter().collect(), are_all: !walk.has_stepped_over() })
    }

    /// Whether nothing was stepped over.
    pub(super) fn are_all(&self) -> bool {
        self.are_all
    }

    /// Entry of the function at the address.
    pub(super) fn at(&self, address: u64) -> Option<UnitOffset<usize>> {
        self.by_address.covering(address).next().map(|(_, entry)| entry)
    }
}

/// A declaration, or a function that only exists inlined, says nothing about addresses.
fn is_function_with_code(abbreviation: &Abbreviation) -> bool {
    abbreviation.tag() == gimli::DW_TAG_subprogram && abbreviation.attributes().iter().any(Extent::is_part)
}

/// GCC writes functions with code on the level of the unit, also those of namespaces and most of those of types; those of
/// Fortran's modules stay there. Compilers that write them where they are declared (LLVM) write no sibling, so that nothing
/// of theirs is stepped over.
fn holds_functions(tag: DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_compile_unit | gimli::DW_TAG_partial_unit | gimli::DW_TAG_module)
}

impl InlinedCalls {
    /// Reads the entries inside of a function's.
    pub(super) fn read(unit: UnitRef<'_, Reader<'_>>, function: UnitOffset<usize>) -> gimli::Result<Self> {
        let mut calls = Vec::new();
        let mut entries = unit.entries_raw(Some(function))?;
        if let Some(abbreviation) = entries.read_abbreviation()? {
            entries.skip_attributes(abbreviation.attributes())?;
        }
        // The calls that the walk is inside of, with the depth of their entries.
        let mut inside: Vec<(isize, usize)> = Vec::new();
        while entries.next_depth() > 0 {
            let (entry, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while inside.pop_if(|(outer, _)| *outer >= depth).is_some() {}
            match abbreviation.tag() {
                gimli::DW_TAG_inlined_subroutine => {
                    let parent = inside.last().map(|(_, call)| *call);
                    let mut extent = Extent::default();
                    let mut call =
                        InlinedCall { entry, file: None, line: None, column: None, parent, ranges: Vec::new() };
                    for spec in abbreviation.attributes() {
                        let attribute = entries.read_attribute(*spec)?;
                        extent.take(unit, &attribute)?;
                        call.take(unit, &attribute);
                    }
                    extent.each(unit, |range| call.ranges.push(range))?;
                    inside.push((depth, calls.len()));
                    calls.push(call);
                }
                gimli::DW_TAG_subprogram => {
                    entries.skip_attributes(abbreviation.attributes())?;
                    leave(&mut entries, depth)?;
                }
                _ => entries.skip_attributes(abbreviation.attributes())?,
            }
        }
        Ok(Self { calls })
    }

    /// The calls at the address, outermost first. Where two beside each other claim it, the later entry counts, as it does
    /// for LLVM.
    pub(super) fn at(&self, address: u64) -> Vec<&InlinedCall> {
        let mut chain: Vec<usize> = Vec::new();
        for (number, call) in self.calls.iter().enumerate() {
            let above = match call.parent {
                None => Some(0),
                Some(parent) => chain.iter().position(|outer| *outer == parent).map(|at| at + 1),
            };
            if let Some(above) = above.filter(|_| call.ranges.iter().any(|range| range.contains(&address))) {
                chain.truncate(above);
                chain.push(number);
            }
        }
        chain.into_iter().map(|number| &self.calls[number]).collect()
    }
}

/// Steps over what is left of an entry whose attributes have been read.
fn leave(entries: &mut EntriesRaw<'_, Reader<'_>>, depth: isize) -> gimli::Result<()> {
    while entries.next_depth() > depth {
        if let Some(abbreviation) = entries.read_abbreviation()? {
            entries.skip_attributes(abbreviation.attributes())?;
        }
    }
    Ok(())
}

impl InlinedCall {
    fn take(&mut self, unit: UnitRef<'_, Reader<'_>>, attribute: &Attribute<Reader<'_>>) {
        let number = || attribute.udata_value().and_then(|value| u32::try_from(value).ok()).filter(|value| *value != 0);
        match attribute.name() {
            gimli::DW_AT_call_line => self.line = number(),
            gimli::DW_AT_call_column => self.column = number(),
            // The first file is number 1 up to DWARF 4, and number 0 from DWARF 5 on.
            gimli::DW_AT_call_file => match attribute.value() {
                AttributeValue::FileIndex(file) if file > 0 || unit.header.version() >= 5 => self.file = Some(file),
                _ => {}
            },
            _ => {}
        }
    }
}

/// Addresses of an entry.
#[derive(Debug, Default)]
struct Extent {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    ranges: Option<RangeListsOffset<usize>>,
}

impl Extent {
    /// Whether such an attribute says where code is.
    fn is_part(spec: &AttributeSpecification) -> bool {
        matches!(spec.name(), gimli::DW_AT_low_pc | gimli::DW_AT_high_pc | gimli::DW_AT_ranges)
    }

    fn take<'s>(&mut self, unit: UnitRef<'_, Reader<'s>>, attribute: &Attribute<Reader<'s>>) -> gimli::Result<()> {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = unit.attr_address(attribute.value())?,
            gimli::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.high = unit.attr_address(value)?,
            },
            gimli::DW_AT_ranges => self.ranges = unit.attr_ranges_offset(attribute.value())?,
            _ => {}
        }
        Ok(())
    }

    fn each(&self, unit: UnitRef<'_, Reader<'_>>, mut f: impl FnMut(Range<u64>)) -> gimli::Result<()> {
        if let Some(offset) = self.ranges {
            let mut ranges = unit.ranges(offset)?;
            while let Some(range) = ranges.next()? {
                if range.begin < range.end {
                    f(range.begin..range.end);
                }
            }
            return Ok(());
        }
        let Some(low) = self.low else { return Ok(()) };
        let high = self.high.or_else(|| low.checked_add(self.size?));
        if let Some(high) = high.filter(|high| low < *high) {
            f(low..high);
        }
        Ok(())
    }
}
