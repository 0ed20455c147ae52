//! Value in, text or bytes out: no I/O.

pub(crate) mod size;
