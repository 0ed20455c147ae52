use super::sections::Reader;
use gimli::UnitRef;

/// Entries nested deeper than this are damage or malice: namespaces, functions, blocks and inlined calls of real programs
/// reach some dozens of levels.
const DEPTH_MAX: isize = 1000;

/// Whether every unit of split or packed DWARF is shallow.
pub(super) fn all_shallow(dwarf: &gimli::Dwarf<Reader<'_>>) -> bool {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let Ok(unit) = dwarf.unit(header)
            && !is_shallow(UnitRef::new(dwarf, &unit))
        {
            return false;
        }
    }
    true
}

/// Guards a recursion in addr2line, which follows nested inlined calls by calling itself: an entry can be a single byte,
/// so a unit of some hundred kilobytes could take the whole stack of the thread and end the process.
///
/// Walks over all entries of the unit. Where it cannot be read further, addr2line will not get further either.
pub(super) fn is_shallow(unit: UnitRef<'_, Reader<'_>>) -> bool {
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
