//! Damage to images: whole files are mutated, with a preference for the sections that readers look into.

use offheap_symbolizer::address::ImageAddress;
use offheap_symbolizer::demangle::demangle;
use offheap_symbolizer::image::{AltLink, DebugLink, Elf, ImageFiles, LookUps, Sources};
use std::ops::Range;

/// A small generator of numbers (xorshift64*), so that a seed gives the same damage everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound
    }
}

/// An image with the parts of it that are worth damaging.
pub(crate) struct Seed {
    bytes: Vec<u8>,
    targets: Vec<Range<usize>>,
}

impl Seed {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let targets = targets(&bytes);
        Self { bytes, targets }
    }

    /// The image with one to eight faults.
    pub(crate) fn mutated(&self, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for _ in 0..=dice.below(8) {
            let target = self.targets[dice.below(self.targets.len())].clone();
            fault(&mut bytes, target, dice);
        }
        bytes
    }
}

/// The file header, the tables of headers, and every section that is not plain code or data.
fn targets(bytes: &[u8]) -> Vec<Range<usize>> {
    let word = |at: usize| bytes.get(at..at + 8).map_or(0, |w| u64::from_le_bytes(w.try_into().unwrap()) as usize);
    let half = |at: usize| bytes.get(at..at + 2).map_or(0, |w| usize::from(u16::from_le_bytes(w.try_into().unwrap())));
    let (segments, sections) = (word(0x20), word(0x28));
    let mut targets = vec![0..64, segments..segments + half(0x38) * 56, sections..sections + half(0x3c) * 64];
    for index in 0..half(0x3c) {
        let header = sections + index * 64;
        let (kind, flags) = (word(header + 4) as u32, word(header + 8));
        let (offset, size) = (word(header + 24), word(header + 32));
        // Not NOBITS, not executable.
        if kind != 8 && flags & 4 == 0 && size > 0 {
            targets.push(offset..offset + size);
        }
    }
    targets.retain(|t| t.start < t.end && t.end <= bytes.len());
    if targets.is_empty() {
        targets.push(0..bytes.len());
    }
    targets
}

fn fault(bytes: &mut Vec<u8>, target: Range<usize>, dice: &mut Dice) {
    const LOUD: [u64; 8] = [0, 1, u64::MAX, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, i64::MAX as u64, 0xff];
    let end = target.end.min(bytes.len());
    if target.start >= end {
        return;
    }
    // Half of the faults near the start of the section, where headers are.
    let room = end - target.start;
    let at = target.start + if dice.below(2) == 0 { dice.below(room.min(64)) } else { dice.below(room) };
    match dice.below(8) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[at] = dice.next() as u8,
        2 => bytes[at] = bytes[at].wrapping_add(1),
        3 | 4 => {
            let width = [1, 2, 4, 8][dice.below(4)].min(end - at);
            bytes[at..at + width].copy_from_slice(&LOUD[dice.below(LOUD.len())].to_le_bytes()[..width]);
        }
        5 => {
            let length = dice.below(32).min(end - at);
            let from = dice.below(bytes.len() - length + 1);
            bytes.copy_within(from..from + length, at);
        }
        6 => {
            let length = dice.below(64).min(end - at);
            bytes[at..at + length].fill([0, 0xff, 0x80][dice.below(3)]);
        }
        // Rarely, since little is left to read after it.
        _ if dice.below(16) == 0 => bytes.truncate(at),
        _ => bytes.swap(at, target.start),
    }
}

/// Everything that is done with an image; the number of addresses that got a name.
pub(crate) fn exercise(bytes: &[u8], dice: &mut Dice) -> usize {
    let Ok(elf) = Elf::parse(bytes) else { return 0 };
    let _ = (elf.build_id(), DebugLink::of(&elf), AltLink::of(&elf), elf.has_layout_of(&elf));
    // In every role that a file may have.
    let (debug, supplementary, package) = (Some(&elf), Some(&elf), Some(&elf));
    let sources = Sources::new(ImageFiles { debug, supplementary, package, ..ImageFiles::only(&elf) });
    let _ = sources.present();
    let look_ups = LookUps::new(&sources);
    let mut frames = Vec::new();
    let mut named = 0;
    let extents: Vec<_> = elf.segments().iter().map(|s| (s.address.0, s.memory_size.max(1))).collect();
    for _ in 0..64 {
        let (start, size) = extents.get(dice.below(extents.len().max(1))).copied().unwrap_or((0, 1));
        let address = ImageAddress(start.wrapping_add(dice.next() % size));
        frames.clear();
        named += usize::from(look_ups.frames(address, &mut frames).is_ok());
        for frame in &frames {
            let _ = demangle(&frame.function);
        }
        let _ = sources.function_bounds(address);
    }
    named
}
