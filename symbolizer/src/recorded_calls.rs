//! The calls that a profile's stacks passed through in one image, as evidence of which build it was.

use crate::address::{FileOffset, RuntimeAddress};
use crate::image::{Elf, ends_with_call};

/// Calls below which nothing is concluded.
const ENOUGH: usize = 4;

/// The recorded calls in one image.
///
/// Every address of a jemalloc dump is a return address, so that a call stands before it in the build that was running.
/// In another build of the same layout other code stands there: of all places in the code of libc, RocksDB and a Go service
/// one in 40 to 80 follows a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedCalls(Vec<Call>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    /// Inside the call.
    address: RuntimeAddress,
    map_start: RuntimeAddress,
    map_offset: FileOffset,
}

impl RecordedCalls {
    /// Add a call, by an address inside it and the mapping that it lies in.
    pub(crate) fn add(&mut self, address: RuntimeAddress, map_start: RuntimeAddress, map_offset: FileOffset) {
        self.0.push(Call { address, map_start, map_offset });
    }

    /// How many of them the image has, and of how many that can be told; `None` when that speaks for the image, or says
    /// too little.
    ///
    /// A third may be missing: a goroutine's first frame returns behind a padding instruction, and so do interrupted
    /// functions below a signal handler.
    pub(crate) fn missing_in(&self, elf: &Elf<'_>) -> Option<(usize, usize)> {
        let (mut found, mut known) = (0, 0);
        for call in &self.0 {
            // Both unknown addresses and code that is not in the file (a separate debug file) tell nothing.
            let Some(is_call) = is_call(elf, call) else { continue };
            known += 1;
            found += usize::from(is_call);
        }
        (known >= ENOUGH && found * 3 < known * 2).then_some((found, known))
    }
}

fn is_call(elf: &Elf<'_>, call: &Call) -> Option<bool> {
    let segments = elf.segments();
    let address = segments.image_address(call.address, call.map_start, call.map_offset)?;
    let offset = usize::try_from(segments.file_offset(address)?.0).ok()?;
    // The address is the last byte of the call.
    ends_with_call(elf.machine(), elf.bytes(), offset.checked_add(1)?)
}
