//! What can be wrong with an input.

use std::fmt;
use thiserror::Error;

/// The input could not be read as a profile.
#[derive(Debug, Error)]
pub enum ReadError {
    /// No format recognised it; the text names what it looks like.
    #[error(
        "not a profile: the input is {looks_like}; expected a jemalloc heap dump (`heap_v2/…`), a pprof protobuf, a Go \
         heap profile as text (`?debug=1`), folded stacks, or an offheap sample table"
    )]
    NotAProfile {
        /// For example `empty`, `an ELF file`, `an HTML page`.
        looks_like: String,
    },
    /// The format was recognised and nothing of it could be salvaged.
    #[error("damaged {format}: {what}")]
    Damaged {
        /// Name of the format.
        format: &'static str,
        /// What is wrong, with its line or offset.
        what: String,
    },
    /// A compressed input grows beyond what is taken from one input.
    #[error("the input decompresses to more than {limit} bytes; decompress it yourself if it is what you expect")]
    TooLarge {
        /// The limit that was reached.
        limit: u64,
    },
}

/// A part of the input that was left out; the rest was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Line, counted from 1, in text formats.
    pub line: Option<u64>,
    /// Byte offset, in binary formats.
    pub offset: Option<u64>,
    /// What is wrong and what was done about it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.offset) {
            (Some(line), _) => write!(f, "line {line}: {}", self.what),
            (None, Some(offset)) => write!(f, "offset {offset}: {}", self.what),
            (None, None) => f.write_str(&self.what),
        }
    }
}

/// Collects damage up to a bound, so that a file of rubbish does not make as many messages as it has lines.
#[derive(Debug, Default)]
pub struct DamageLog {
    entries: Vec<Damage>,
    beyond: u64,
}

impl DamageLog {
    /// Entries that are kept word by word.
    const KEPT: usize = 50;

    /// Damage at a line, counted from 1.
    pub fn at_line(&mut self, line: u64, what: impl Into<String>) {
        self.push(|| Damage { line: Some(line), offset: None, what: what.into() });
    }

    /// Damage at a byte offset.
    pub fn at_offset(&mut self, offset: u64, what: impl Into<String>) {
        self.push(|| Damage { line: None, offset: Some(offset), what: what.into() });
    }

    /// Damage of the input as a whole.
    pub fn whole(&mut self, what: impl Into<String>) {
        self.push(|| Damage { line: None, offset: None, what: what.into() });
    }

    /// Nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, the last of which counts those beyond the bound.
    #[must_use]
    pub fn into_entries(mut self) -> Vec<Damage> {
        if self.beyond > 0 {
            let what = format!("{} more parts of the input were left out", self.beyond);
            self.entries.push(Damage { line: None, offset: None, what });
        }
        self.entries
    }

    fn push(&mut self, entry: impl FnOnce() -> Damage) {
        if self.entries.len() < Self::KEPT {
            self.entries.push(entry());
        } else {
            self.beyond += 1;
        }
    }
}
