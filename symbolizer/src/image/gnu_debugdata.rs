use super::elf::Elf;
use super::names::Names;
use super::symbol_table::SymbolTable;
use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};
use std::io::{self, Write};

/// The symbol table that some distributions leave in stripped libraries: `.gnu_debugdata` holds an xz-compressed ELF
/// file whose `.symtab` has the functions that `.dynsym` lacks.
#[derive(Debug)]
pub struct GnuDebugdata(SymbolTable<'static>);

/// A table of function symbols is a few megabytes for the largest libraries.
const DECOMPRESSED_MAX: usize = 256 << 20;

impl GnuDebugdata {
    /// Decompress and read the section, if the image has one.
    #[must_use]
    pub fn load(elf: &Elf<'_>) -> Option<Self> {
        let compressed = elf.content(".gnu_debugdata")?;
        let limit = compressed.len().saturating_mul(200).min(DECOMPRESSED_MAX);
        let mut inner = Bounded { bytes: Vec::new(), limit };
        lzma_rs::xz_decompress(&mut &compressed[..], &mut inner).ok()?;
        let inner = Elf::parse(&inner.bytes).ok()?;
        let table = SymbolTable::load(&inner, NameSource::Symtab)?;
        Some(Self(table.into_owned(NameSource::GnuDebugdata)))
    }
}

impl Names for GnuDebugdata {
    fn source(&self) -> NameSource {
        self.0.source()
    }

    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName> {
        self.0.frames(address, frames)
    }
}

/// A vector that refuses to outgrow its limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + chunk.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(chunk);
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
