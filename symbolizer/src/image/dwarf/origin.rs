use super::sections::Reader;
use super::units::{Entries, Units};
use gimli::{AttributeValue, UnitOffset};

/// A concrete function refers to its abstract one, that to its declaration; longer chains are damage.
const STEPS_MAX: usize = 16;

/// Name of the function of an entry, mangled where it has such a name: its own, or that of what it is an instance of, which
/// may stand in another unit or in the supplementary file. `None` when it has none.
pub(super) fn name<'u, 's>(
    mut entries: Entries<'u, 's>,
    mut entry: UnitOffset<usize>,
    supplementary: Option<&'u Units<'s>>,
) -> gimli::Result<Option<Reader<'s>>> {
    for _ in 0..STEPS_MAX {
        let unit = entries.unit;
        let mut at = unit.entries_raw(Some(entry))?;
        let Some(abbreviation) = at.read_abbreviation()? else { return Ok(None) };
        let (mut plain, mut origin) = (None, None);
        for spec in abbreviation.attributes() {
            let attribute = at.read_attribute(*spec)?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    if let Ok(name) = unit.attr_string(attribute.value()) {
                        return Ok(Some(name));
                    }
                }
                gimli::DW_AT_name => plain = unit.attr_string(attribute.value()).ok(),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => origin = Some(attribute.value()),
                _ => {}
            }
        }
        let elsewhere = match (plain, origin) {
            (Some(name), _) => return Ok(Some(name)),
            (None, Some(AttributeValue::UnitRef(next))) => {
                entry = next;
                continue;
            }
            (None, Some(AttributeValue::DebugInfoRef(next))) => entries.others.and_then(|units| units.at(next)),
            (None, Some(AttributeValue::DebugInfoRefSup(next))) => supplementary.and_then(|units| units.at(next)),
            _ => None,
        };
        match elsewhere {
            Some(found) => (entries, entry) = found,
            None => return Ok(None),
        }
    }
    Ok(None)
}
