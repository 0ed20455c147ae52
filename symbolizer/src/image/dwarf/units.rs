use super::lines::Lines;
use super::sections::Reader;
use super::split::{SplitSource, SplitUnit};
use crate::image::ranges::RangeMap;
use gimli::{AbbreviationsCacheStrategy, DebugInfoOffset, UnitHeader, UnitOffset, UnitRef, UnitType};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// A unit, of which no more is read than is asked for.
#[derive(Debug)]
pub(super) struct Unit<'s> {
    header: UnitHeader<Reader<'s>>,
    content: OnceLock<Option<Box<gimli::Unit<Reader<'s>>>>>,
    split: OnceLock<Option<Box<SplitUnit<'s>>>>,
}

/// A unit that says that an address is its own.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    /// Number of the unit.
    pub(super) unit: usize,
    /// Start of its range with the address.
    pub(super) start: u64,
}

/// Where entries stand.
#[derive(Clone, Copy)]
pub(super) struct Entries<'u, 's> {
    pub(super) unit: UnitRef<'u, Reader<'s>>,
    /// The units that a reference out of this one can lead to; `None` in split DWARF, which has no such references.
    pub(super) others: Option<&'u Units<'s>>,
}

impl<'s> Unit<'s> {
    fn new(header: UnitHeader<Reader<'s>>) -> Self {
        Self { header, content: OnceLock::new(), split: OnceLock::new() }
    }

    /// Its place in `.debug_info`.
    pub(super) fn place(&self) -> Option<DebugInfoOffset<usize>> {
        self.header.debug_info_offset()
    }

    /// The unit itself; `None` when it is damaged.
    pub(super) fn content<'u>(&'u self, units: &'u Units<'s>) -> Option<UnitRef<'u, Reader<'s>>> {
        let content = self.content.get_or_init(|| units.dwarf.unit(self.header).ok().map(Box::new));
        content.as_ref().map(|unit| UnitRef::new(&units.dwarf, unit))
    }

    /// The entries of its functions, which can be in another file; `None` when that is missing.
    pub(super) fn entries<'u>(&'u self, units: &'u Units<'s>) -> Option<Entries<'u, 's>> {
        let unit = self.content(units)?;
        if unit.dwo_id.is_none() {
            return Some(Entries { unit, others: Some(units) });
        }
        let split = self.split.get_or_init(|| units.split.as_ref()?.find(unit).map(Box::new)).as_ref()?;
        Some(Entries { unit: UnitRef::new(&split.dwarf, &split.unit), others: None })
    }
}

/// The units of one file, by address and by place. Of most of them only the header is ever read.
#[derive(Debug)]
pub(super) struct Units<'s> {
    dwarf: gimli::Dwarf<Reader<'s>>,
    split: Option<SplitSource<'s>>,
    /// In order of their places in `.debug_info`.
    units: Vec<Unit<'s>>,
    ranges: RangeMap<usize>,
    /// Units that say nothing about their addresses, and those that their line tables have.
    rangeless: Vec<usize>,
    ranges_of_lines: OnceLock<RangeMap<usize>>,
}

impl<'s> Units<'s> {
    pub(super) fn read(dwarf: gimli::Dwarf<Reader<'s>>, split: SplitSource<'s>) -> Self {
        let mut units = Self { split: Some(split), ..Self::without_addresses(dwarf) };
        let in_aranges = aranges(&units.dwarf);
        let mut found = Vec::new();
        for (index, unit) in units.units.iter().enumerate() {
            // Types, and what units share, have no code.
            if matches!(unit.header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial) {
                continue;
            }
            let before = found.len();
            match unit.place().and_then(|place| in_aranges.get(&place)) {
                // Compilers that write this table write all of a unit's code into it.
                Some(ranges) => found.extend(ranges.iter().map(|range| (range.clone(), index))),
                None => {
                    let Some(content) = unit.content(&units) else { continue };
                    let mut ranges = content.unit_ranges().ok();
                    while let Some(Ok(Some(range))) = ranges.as_mut().map(gimli::RangeIter::next) {
                        found.push((range.begin..range.end, index));
                    }
                }
            }
            if found[before..].iter().all(|(range, _)| range.is_empty()) {
                units.rangeless.push(index);
            }
        }
        units.ranges = found.into_iter().collect();
        units
    }

    /// The units of a file that is only referred to.
    pub(super) fn without_addresses(mut dwarf: gimli::Dwarf<Reader<'s>>) -> Self {
        // Some compilers give each unit abbreviations of its own, others have one list for all.
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            units.push(Unit::new(header));
        }
        let ranges = std::iter::empty().collect();
        Self { dwarf, split: None, units, ranges, rangeless: Vec::new(), ranges_of_lines: OnceLock::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    pub(super) fn get(&self, number: usize) -> &Unit<'s> {
        &self.units[number]
    }

    /// Units that say that the address is theirs, in the order of their places: where several do (a function that each of
    /// them has, of which the linker kept one), the first is right, as that is the one that was kept.
    pub(super) fn owners(&self, address: u64) -> Vec<Owner> {
        let mut ranges = &self.ranges;
        if ranges.covering(address).next().is_none() && !self.rangeless.is_empty() {
            ranges = self.ranges_of_lines.get_or_init(|| self.read_ranges_of_lines());
        }
        let owner = |(range, unit): (&Range<u64>, usize)| Owner { unit, start: range.start };
        let mut found: Vec<_> = ranges.covering(address).map(owner).collect();
        found.sort_by_key(|owner| owner.unit);
        found.dedup_by_key(|owner| owner.unit);
        found
    }

    fn read_ranges_of_lines(&self) -> RangeMap<usize> {
        let lines = |number: &usize| Some((*number, Lines::new(self.units[*number].content(self)?)));
        let ranges = |(number, lines): (usize, Lines<'s>)| lines.ranges().into_iter().map(move |range| (range, number));
        self.rangeless.iter().filter_map(lines).flat_map(ranges).collect()
    }

    /// The entry at an offset in `.debug_info`.
    pub(super) fn at(&self, offset: DebugInfoOffset<usize>) -> Option<(Entries<'_, 's>, UnitOffset<usize>)> {
        let after = self.units.partition_point(|unit| unit.place().is_some_and(|start| start <= offset));
        let unit = self.units[..after].last()?;
        let entries = Entries { unit: unit.content(self)?, others: Some(self) };
        Some((entries, offset.to_unit_offset(&unit.header)?))
    }
}

/// What `.debug_aranges` says, by unit. One of which it has no code, or something that cannot be, is not in it.
fn aranges(dwarf: &gimli::Dwarf<Reader<'_>>) -> HashMap<DebugInfoOffset<usize>, Vec<Range<u64>>> {
    let (mut by_unit, mut damaged) = (HashMap::<_, Vec<_>>::new(), Vec::new());
    let mut sets = dwarf.debug_aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let (unit, mut entries) = (set.debug_info_offset(), set.entries());
        loop {
            match entries.next() {
                Ok(Some(entry)) if entry.length() > 0 => {
                    let range = entry.range();
                    by_unit.entry(unit).or_default().push(range.begin..range.end);
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    damaged.push(unit);
                    break;
                }
            }
        }
    }
    for unit in damaged {
        by_unit.remove(&unit);
    }
    by_unit
}
