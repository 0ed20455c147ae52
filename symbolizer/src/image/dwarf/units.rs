use super::functions::Functions;
use super::nesting;
use super::sections::Reader;
use gimli::{DebugInfoOffset, UnitOffset, UnitRef};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

/// A unit, with what has been read of it so far.
#[derive(Debug)]
pub(super) struct Unit<'s> {
    unit: gimli::Unit<Reader<'s>>,
    functions: OnceCell<Option<Functions>>,
    is_shallow: OnceCell<bool>,
}

impl<'s> Unit<'s> {
    pub(super) fn with<'u>(&'u self, dwarf: &'u gimli::Dwarf<Reader<'s>>) -> UnitRef<'u, Reader<'s>> {
        UnitRef::new(dwarf, &self.unit)
    }

    /// Its place in `.debug_info`.
    pub(super) fn place(&self) -> Option<DebugInfoOffset<usize>> {
        self.unit.header.debug_info_offset()
    }

    /// Its functions by address; `None` for one that is damaged or has them in another file (split DWARF).
    pub(super) fn functions(&self, dwarf: &gimli::Dwarf<Reader<'s>>) -> Option<&Functions> {
        let read = || match self.unit.dwo_id {
            Some(_) => None,
            None => Functions::read(self.with(dwarf)).ok(),
        };
        self.functions.get_or_init(read).as_ref()
    }

    fn is_shallow(&self, dwarf: &gimli::Dwarf<Reader<'s>>) -> bool {
        *self.is_shallow.get_or_init(|| nesting::is_shallow(self.with(dwarf)))
    }
}

/// The units of an image, by address and by place.
#[derive(Debug)]
pub(super) struct Units<'s> {
    /// In order of their places in `.debug_info`.
    units: Vec<Unit<'s>>,
    /// By start, with how far back a covering range can stand (the largest end up to here).
    ranges: Vec<(Range<u64>, u64, usize)>,
    /// Units that say nothing about their addresses; addr2line finds them by their line tables.
    rangeless: Vec<usize>,
}

impl<'s> Units<'s> {
    pub(super) fn read(dwarf: &gimli::Dwarf<Reader<'s>>) -> Self {
        let (mut units, mut found, mut rangeless) = (Vec::new(), Vec::new(), Vec::new());
        let mut in_aranges = aranges(dwarf);
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let mut ranges =
                header.debug_info_offset().and_then(|offset| in_aranges.remove(&offset)).unwrap_or_default();
            // addr2line passes over a unit that cannot be read as well.
            let Ok(unit) = dwarf.unit(header) else { continue };
            let mut own = dwarf.unit_ranges(&unit);
            while let Ok(Some(range)) = own.as_mut().map_or(Ok(None), |own| own.next()) {
                ranges.push(range.begin..range.end);
            }
            ranges.retain(|range| range.start < range.end);
            let index = units.len();
            if ranges.is_empty() {
                rangeless.push(index);
            }
            found.extend(ranges.into_iter().map(|range| (range, index)));
            units.push(Unit { unit, functions: OnceCell::new(), is_shallow: OnceCell::new() });
        }
        found.sort_unstable_by_key(|(range, index)| (range.start, *index));
        let mut reach = 0;
        let with_reach = |(range, index): (Range<u64>, usize)| {
            reach = range.end.max(reach);
            (range, reach, index)
        };
        let ranges = found.into_iter().map(with_reach).collect();
        Self { units, ranges, rangeless }
    }

    /// Units that say that the address is theirs.
    pub(super) fn covering(&self, address: u64) -> impl Iterator<Item = &Unit<'s>> {
        let before = self.ranges.partition_point(|(range, ..)| range.start <= address);
        let near = self.ranges[..before].iter().rev().take_while(move |(_, reach, _)| *reach > address);
        near.filter(move |(range, ..)| range.contains(&address)).map(|(.., index)| &self.units[*index])
    }

    /// The unit that an offset in `.debug_info` falls into, and the offset in it.
    pub(super) fn at(&self, offset: DebugInfoOffset<usize>) -> Option<(&Unit<'s>, UnitOffset<usize>)> {
        let after = self.units.partition_point(|unit| unit.place().is_some_and(|start| start <= offset));
        let unit = self.units[..after].last()?;
        Some((unit, offset.to_unit_offset(&unit.unit.header)?))
    }

    /// Whether addr2line may be asked about the address.
    pub(super) fn are_shallow_at(&self, dwarf: &gimli::Dwarf<Reader<'s>>, address: u64) -> bool {
        let mut covering = self.covering(address).peekable();
        if covering.peek().is_some() {
            covering.all(|unit| unit.is_shallow(dwarf))
        } else {
            self.rangeless.iter().all(|index| self.units[*index].is_shallow(dwarf))
        }
    }
}

fn aranges(dwarf: &gimli::Dwarf<Reader<'_>>) -> HashMap<DebugInfoOffset<usize>, Vec<Range<u64>>> {
    let mut by_offset: HashMap<_, Vec<_>> = HashMap::new();
    let mut sets = dwarf.debug_aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let ranges = by_offset.entry(set.debug_info_offset()).or_default();
        let mut entries = set.entries();
        while let Ok(Some(entry)) = entries.next() {
            ranges.push(entry.range().begin..entry.range().end);
        }
    }
    by_offset
}
