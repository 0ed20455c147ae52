use super::sections::Reader;
use super::units::{Unit, Units};
use gimli::{AttributeValue, UnitOffset};

/// A concrete function refers to its abstract one, that to its declaration; longer chains are damage.
const STEPS_MAX: usize = 16;

/// Name of the function of an entry, mangled where it has such a name: its own, or that of what it is an instance of.
///
/// `None` when it has none, and when it stands in a supplementary file.
pub(super) fn name<'s>(
    dwarf: &gimli::Dwarf<Reader<'s>>,
    units: &Units<'s>,
    unit: &Unit<'s>,
    entry: UnitOffset<usize>,
) -> gimli::Result<Option<Reader<'s>>> {
    let (mut unit, mut entry) = (unit, entry);
    for _ in 0..STEPS_MAX {
        let place = unit.with(dwarf);
        let mut entries = place.entries_raw(Some(entry))?;
        let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
        let (mut plain, mut origin) = (None, None);
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    if let Ok(name) = place.attr_string(attribute.value()) {
                        return Ok(Some(name));
                    }
                }
                gimli::DW_AT_name => plain = place.attr_string(attribute.value()).ok(),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => origin = Some(attribute.value()),
                _ => {}
            }
        }
        match (plain, origin) {
            (Some(name), _) => return Ok(Some(name)),
            (None, Some(AttributeValue::UnitRef(next))) => entry = next,
            (None, Some(AttributeValue::DebugInfoRef(next))) => match units.at(next) {
                Some(found) => (unit, entry) = found,
                None => return Ok(None),
            },
            _ => return Ok(None),
        }
    }
    Ok(None)
}
