//! A walk over the entries of a unit, of which few are wanted.
//!
//! What is to be done with an entry depends on its abbreviation alone, so it is worked out once for each: how many bytes
//! its attributes take, and whether it says where the next entry beside it starts, so that all inside of it is stepped over.

use super::sections::Reader;
use gimli::{Abbreviation, AttributeSpecification, Reader as _, UnitHeader, UnitOffset, UnitRef};

/// Abbreviations are numbered from 1 on without gaps; larger numbers are looked at each time.
const CODES_MAX: usize = 1 << 16;

pub(super) struct Walk<'u, 's> {
    unit: UnitRef<'u, Reader<'s>>,
    rest: Reader<'s>,
    /// By the number of the abbreviation.
    plans: Vec<Option<Plan>>,
    is_wanted: fn(&Abbreviation) -> bool,
    may_step_over: fn(&Abbreviation) -> bool,
    has_stepped_over: bool,
}

enum Plan {
    Want,
    /// Go on behind the attributes: inside of it.
    Enter(Vec<Piece>),
    /// Read the offset behind these attributes, and go on there.
    StepOver(Vec<Piece>),
    /// Attributes of unusual forms.
    LeaveToGimli,
}

/// Bytes of one attribute or several.
enum Piece {
    Fixed(usize),
    Leb128,
    /// Its length comes first, in so many bytes.
    Counted(u8),
    CountedByLeb128,
    UpToNul,
}

impl<'u, 's> Walk<'u, 's> {
    pub(super) fn new(
        unit: UnitRef<'u, Reader<'s>>,
        is_wanted: fn(&Abbreviation) -> bool,
        may_step_over: fn(&Abbreviation) -> bool,
    ) -> gimli::Result<Self> {
        let rest = unit.header.range_from(unit.header.root_offset()..)?;
        Ok(Self { unit, rest, plans: Vec::new(), is_wanted, may_step_over, has_stepped_over: false })
    }

    /// The next entry that is wanted. The walk goes on inside of it unless it is sent on.
    pub(super) fn next(&mut self) -> gimli::Result<Option<UnitOffset<usize>>> {
        while !self.rest.is_empty() {
            let entry = self.here();
            let code = usize::try_from(self.rest.read_uleb128()?).unwrap_or(usize::MAX);
            // The end of a list of entries beside each other.
            if code == 0 {
                continue;
            }
            let at = code.min(CODES_MAX);
            if at == CODES_MAX || !self.plans.get(at).is_some_and(Option::is_some) {
                self.plan(code, at)?;
            }
            match &self.plans[at] {
                Some(Plan::Enter(pieces)) => skip(&mut self.rest, pieces)?,
                Some(Plan::StepOver(pieces)) => {
                    skip(&mut self.rest, pieces)?;
                    let next = UnitOffset(self.rest.read_u32()? as usize);
                    self.step_to(next)?;
                }
                Some(Plan::Want) => {
                    self.pass(entry)?;
                    return Ok(Some(entry));
                }
                Some(Plan::LeaveToGimli) | None => self.pass(entry)?,
            }
        }
        Ok(None)
    }

    /// Go on at an entry further on, and never back: the walk would have no end.
    pub(super) fn step_to(&mut self, entry: UnitOffset<usize>) -> gimli::Result<()> {
        if entry > self.here() {
            self.rest = self.unit.header.range_from(entry..)?;
            self.has_stepped_over = true;
        }
        Ok(())
    }

    pub(super) fn has_stepped_over(&self) -> bool {
        self.has_stepped_over
    }

    fn here(&self) -> UnitOffset<usize> {
        UnitOffset(self.unit.header.length_including_self() - self.rest.len())
    }

    /// Go on inside of the entry.
    fn pass(&mut self, entry: UnitOffset<usize>) -> gimli::Result<()> {
        let mut entries = self.unit.entries_raw(Some(entry))?;
        if let Some(abbreviation) = entries.read_abbreviation()? {
            entries.skip_attributes(abbreviation.attributes())?;
        }
        let inside = entries.next_offset();
        self.rest = self.unit.header.range_from(inside..)?;
        Ok(())
    }

    fn plan(&mut self, code: usize, at: usize) -> gimli::Result<()> {
        let abbreviation =
            self.unit.abbreviations.get(code as u64).ok_or(gimli::Error::InvalidAbbreviationCode(code as u64))?;
        if self.plans.len() <= at {
            self.plans.resize_with(at + 1, || None);
        }
        self.plans[at] = Some(self.plan_of(abbreviation));
        Ok(())
    }

    fn plan_of(&self, abbreviation: &Abbreviation) -> Plan {
        if (self.is_wanted)(abbreviation) {
            return Plan::Want;
        }
        let attributes = abbreviation.attributes();
        let is_sibling =
            |spec: &AttributeSpecification| spec.name() == gimli::DW_AT_sibling && spec.form() == gimli::DW_FORM_ref4;
        let sibling = if abbreviation.has_children() && (self.may_step_over)(abbreviation) {
            attributes.iter().position(is_sibling)
        } else {
            None
        };
        let pieces = pieces(&attributes[..sibling.unwrap_or(attributes.len())], &self.unit.header);
        match (pieces, sibling) {
            (None, _) => Plan::LeaveToGimli,
            (Some(pieces), Some(_)) => Plan::StepOver(pieces),
            (Some(pieces), None) => Plan::Enter(pieces),
        }
    }
}

fn pieces(attributes: &[AttributeSpecification], header: &UnitHeader<Reader<'_>>) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    for attribute in attributes {
        if let Some(size) = attribute.size(header) {
            match pieces.last_mut() {
                Some(Piece::Fixed(sum)) => *sum += size,
                _ => pieces.push(Piece::Fixed(size)),
            }
            continue;
        }
        pieces.push(match attribute.form() {
            gimli::DW_FORM_udata
            | gimli::DW_FORM_sdata
            | gimli::DW_FORM_ref_udata
            | gimli::DW_FORM_strx
            | gimli::DW_FORM_addrx
            | gimli::DW_FORM_loclistx
            | gimli::DW_FORM_rnglistx => Piece::Leb128,
            gimli::DW_FORM_block1 => Piece::Counted(1),
            gimli::DW_FORM_block2 => Piece::Counted(2),
            gimli::DW_FORM_block4 => Piece::Counted(4),
            gimli::DW_FORM_block | gimli::DW_FORM_exprloc => Piece::CountedByLeb128,
            gimli::DW_FORM_string => Piece::UpToNul,
            _ => return None,
        });
    }
    Some(pieces)
}

fn skip(rest: &mut Reader<'_>, pieces: &[Piece]) -> gimli::Result<()> {
    for piece in pieces {
        let bytes = match piece {
            Piece::Fixed(bytes) => *bytes,
            Piece::Counted(bytes) => usize::try_from(rest.read_uint(usize::from(*bytes))?).unwrap_or(usize::MAX),
            Piece::CountedByLeb128 => usize::try_from(rest.read_uleb128()?).unwrap_or(usize::MAX),
            Piece::Leb128 => {
                rest.skip_leb128()?;
                continue;
            }
            Piece::UpToNul => {
                rest.read_null_terminated_slice()?;
                continue;
            }
        };
        rest.skip(bytes)?;
    }
    Ok(())
}
