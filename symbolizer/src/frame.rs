//! Names found for an address, and the reasons when none was found.

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// One source-level frame at an address. An address with inlined calls has several, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Linkage name as the image has it; demangling happens later.
    pub function: Arc<str>,
    /// Source file, if known.
    pub file: Option<Arc<str>>,
    /// Line of the call in the source file, if known.
    pub line: Option<u32>,
    /// Column of the call, if known.
    pub column: Option<u32>,
    /// First line of the function, if known.
    pub start_line: Option<u32>,
    /// The frame was inlined into the next one.
    pub inlined: bool,
}

/// Where a name came from, most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NameSource {
    /// The Go function table.
    Gopclntab,
    /// DWARF of the image or of its debug file.
    Dwarf,
    /// `.symtab`.
    Symtab,
    /// `.dynsym`.
    Dynsym,
    /// The symbol table inside `.gnu_debugdata`.
    GnuDebugdata,
    /// Names that stood in the input.
    Input,
}

impl fmt::Display for NameSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dwarf => "DWARF",
            Self::Gopclntab => ".gopclntab",
            Self::Symtab => ".symtab",
            Self::Dynsym => ".dynsym",
            Self::GnuDebugdata => ".gnu_debugdata",
            Self::Input => "input",
        })
    }
}

/// Why an address has no name. Not an error: a result, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoName {
    /// No mapping holds the address.
    NoMapping,
    /// The mapping is not a file (`[vdso]`, anonymous memory).
    NotAFile,
    /// The file of the mapping was not found, or was passed over because it is not shown to be the same one.
    NoImage,
    /// A file was found and its build id differs from the recorded one.
    BuildIdMismatch,
    /// No segment of the image holds the address.
    OutsideSegments,
    /// The image was read and has no symbol for the address.
    NoSymbol,
}

impl fmt::Display for NoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMapping => "in no mapping",
            Self::NotAFile => "mapping is not a file",
            Self::NoImage => "image not found",
            Self::BuildIdMismatch => "build id differs",
            Self::OutsideSegments => "outside the image's segments",
            Self::NoSymbol => "no symbol there",
        })
    }
}
