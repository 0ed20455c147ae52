use super::sections::Reader;
use gimli::{DebugInfoOffset, UnitHeader, UnitRef};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// Entries nested deeper than this are damage or malice: namespaces, functions, blocks and inlined calls of real programs
/// reach some dozens of levels.
const DEPTH_MAX: isize = 1000;

/// Guards a recursion in addr2line, which follows nested inlined calls by calling itself: an entry can be a single byte,
/// so a unit of some hundred kilobytes could take the whole stack of the thread and end the process.
///
/// A unit is walked through once, when an address first falls into it, before addr2line sees the address.
#[derive(Debug)]
pub(super) struct Nesting<'s> {
    units: Vec<UnitHeader<Reader<'s>>>,
    /// By start, with how far back a covering range can stand (the largest end up to here).
    ranges: Vec<(Range<u64>, u64, usize)>,
    /// Units that say nothing about their addresses; addr2line finds them by their line tables.
    rangeless: Vec<usize>,
    is_shallow: RefCell<HashMap<usize, bool>>,
}

impl<'s> Nesting<'s> {
    pub(super) fn new(dwarf: &gimli::Dwarf<Reader<'s>>) -> Self {
        let (mut units, mut found, mut rangeless) = (Vec::new(), Vec::new(), Vec::new());
        let mut by_offset: HashMap<DebugInfoOffset<usize>, Vec<Range<u64>>> = HashMap::new();
        let mut sets = dwarf.debug_aranges.headers();
        while let Ok(Some(set)) = sets.next() {
            let ranges = by_offset.entry(set.debug_info_offset()).or_default();
            let mut entries = set.entries();
            while let Ok(Some(entry)) = entries.next() {
                ranges.push(entry.range().begin..entry.range().end);
            }
        }
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let index = units.len();
            let in_aranges = header.debug_info_offset().and_then(|offset| by_offset.remove(&offset));
            let mut ranges = in_aranges.unwrap_or_default();
            if let Ok(unit) = dwarf.unit(header) {
                let mut own = dwarf.unit_ranges(&unit);
                while let Ok(Some(range)) = own.as_mut().map_or(Ok(None), |own| own.next()) {
                    ranges.push(range.begin..range.end);
                }
            }
            ranges.retain(|range| range.start < range.end);
            if ranges.is_empty() {
                rangeless.push(index);
            }
            found.extend(ranges.into_iter().map(|range| (range, index)));
            units.push(header);
        }
        found.sort_unstable_by_key(|(range, index)| (range.start, *index));
        let mut reach = 0;
        let with_reach = |(range, index): (Range<u64>, usize)| {
            reach = range.end.max(reach);
            (range, reach, index)
        };
        let ranges = found.into_iter().map(with_reach).collect();
        Self { units, ranges, rangeless, is_shallow: RefCell::default() }
    }

    /// Whether addr2line may be asked about the address.
    pub(super) fn is_shallow_at(&self, dwarf: &gimli::Dwarf<Reader<'s>>, address: u64) -> bool {
        let before = self.ranges.partition_point(|(range, ..)| range.start <= address);
        let near = self.ranges[..before].iter().rev().take_while(|(_, reach, _)| *reach > address);
        let mut covering = near.filter(|(range, ..)| range.contains(&address)).map(|(.., unit)| *unit).peekable();
        if covering.peek().is_some() {
            covering.all(|unit| self.is_shallow_unit(dwarf, unit))
        } else {
            self.rangeless.iter().all(|unit| self.is_shallow_unit(dwarf, *unit))
        }
    }

    fn is_shallow_unit(&self, dwarf: &gimli::Dwarf<Reader<'s>>, index: usize) -> bool {
        if let Some(known) = self.is_shallow.borrow().get(&index) {
            return *known;
        }
        let verdict = is_shallow(dwarf, self.units[index]);
        self.is_shallow.borrow_mut().insert(index, verdict);
        verdict
    }
}

/// Whether every unit of split or packed DWARF is shallow.
pub(super) fn all_shallow(dwarf: &gimli::Dwarf<Reader<'_>>) -> bool {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if !is_shallow(dwarf, header) {
            return false;
        }
    }
    true
}

/// Walks over the entries of a unit. Where it cannot be read further, addr2line will not get further either.
fn is_shallow(dwarf: &gimli::Dwarf<Reader<'_>>, header: UnitHeader<Reader<'_>>) -> bool {
    let Ok(unit) = dwarf.unit(header) else { return true };
    let unit = UnitRef::new(dwarf, &unit);
    let Ok(mut entries) = unit.entries_raw(None) else { return true };
    while !entries.is_empty() {
        if entries.next_depth() > DEPTH_MAX {
            return false;
        }
        match entries.read_abbreviation() {
            Ok(Some(abbreviation)) if entries.skip_attributes(abbreviation.attributes()).is_ok() => {}
            Ok(None) => {}
            _ => return true,
        }
    }
    true
}
