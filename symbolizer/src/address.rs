//! The three kinds of address, which must never be mixed.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An address in a running process.
    RuntimeAddress
}
address! {
    /// A link-time virtual address of an image: what `p_vaddr`, symbol tables and DWARF speak.
    ImageAddress
}
address! {
    /// A byte offset in the file of an image.
    FileOffset
}

impl RuntimeAddress {
    /// The address to look up for a frame whose return address this is.
    ///
    /// A return address is that of the instruction after the call, which may belong to the next line, the next inlined
    /// function or (after a call that does not return) the next function. One byte before it is inside the call.
    #[must_use]
    pub fn of_call(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}
