//! jemalloc heap dumps.
//!
//! ```text
//! heap_v2/524288                                     sampling period in bytes
//!   t*: 322: 832638 [0: 0]                           all threads: live objects: bytes [allocated since start: bytes]
//!   t0: 1: 82338 [0: 0] mix                          one thread, with its name
//! @ 0x7fa9c04a2630 0x7fa9c04a2d21 0x55f6d613c1a2     a stack of return addresses, leaf first; may be empty
//!   t*: 20: 167772161 [0: 0]                         its counts
//!   t1: 20: 167772161 [0: 0]                         the part of one thread
//!
//! MAPPED_LIBRARIES:                                  /proc/self/maps
//! 55f6d613b000-55f6d613c000 r--p 00000000 fe:00 10232827                   /srv/demo/mix
//! ```
//!
//! Around it: log lines before the header, a table of names in front (`jeprof --raw` puts it there), and the older form
//! in which each stack is one line. What the counts mean stands in [`crate::sampling`].

mod blocks;
mod legacy;
mod record;
mod sink;
mod symbol_table;

pub(crate) use blocks::read;
pub(crate) use legacy::{LegacyHeader, header as legacy_header, read as read_legacy, stack_line};
pub(crate) use record::{Counts, addresses};
pub(crate) use sink::{Estimates, HeapSink, Part, heap_sink};
pub(crate) use symbol_table::{find as find_symbol_table, is_heading as is_symbol_heading, read as read_symbol_table};
