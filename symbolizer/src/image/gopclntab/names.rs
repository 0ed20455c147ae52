//! The table as a source of names.

use super::header::{self, Header};
use super::module_data::ModuleData;
use super::table::Table;
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use crate::image::elf::Elf;
use crate::image::names::Names;

/// Names of Go code.
#[derive(Debug)]
pub struct Gopclntab<'a> {
    table: Table<'a>,
}

impl<'a> Gopclntab<'a> {
    /// Find and read the table, if the image has one.
    #[must_use]
    pub fn load(elf: &Elf<'a>) -> Option<Self> {
        let (address, bytes, header) = header::find(elf)?;
        let module = ModuleData::find(elf, address, &header);
        let text = module.as_ref().map(|m| m.text).or_else(|| text_without_module(elf, address, &header))?;
        let table = Table::new(bytes, header, text)?;
        let table = match module {
            Some(module) => table.with_inline_trees(elf, &module),
            None => table,
        };
        Some(Self { table })
    }

    /// Whether the address is in Go code.
    pub(in crate::image) fn covers(&self, address: ImageAddress) -> bool {
        self.table.covers(address)
    }
}

/// Until Go 1.25 the header holds the start of the text; in position-independent images as a relocation.
fn text_without_module(elf: &Elf<'_>, address: ImageAddress, header: &Header) -> Option<ImageAddress> {
    let words = crate::image::relocations::words_at(elf, address, Header::WORDS)?;
    let text = words.get(header.text_start_word())?;
    (*text != 0).then_some(ImageAddress(*text))
}

impl Names for Gopclntab<'_> {
    fn source(&self) -> NameSource {
        NameSource::Gopclntab
    }

    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName> {
        let before = frames.len();
        self.table.frames(address, frames).ok_or_else(|| {
            frames.truncate(before);
            NoName::NoSymbol
        })
    }
}
