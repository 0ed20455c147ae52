//! One walk: from the hook through jemalloc to the caller of `malloc`, through C, into Go, back into C, to the root.

use super::arch::{self, Regs};
use super::memory::StackReader;
use super::modules::{HookUnwinder, ModuleTable};
use super::scratch::HookCaches;
use framehop::{Error, FrameAddress, Unwinder};
use offheap_wire::StackEnd;

/// Frames that are walked without being recorded: jemalloc's and the hook's own.
const OWN_FRAMES_LIMIT: usize = 64;
/// Stack switches within Go frames (`systemstack`, callbacks) that are believed before a chain counts as a loop.
const BACKWARD_LIMIT: usize = 32;

/// What a walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Walked {
    /// Frames written.
    pub(super) frames: usize,
    /// How it ended.
    pub(super) end: StackEnd,
    /// It crossed into Go at least once.
    pub(super) with_go: bool,
}

/// Walks from the captured registers and writes return addresses, leaf first.
pub(super) fn walk(
    table: &ModuleTable,
    caches: &mut HookCaches,
    (ip, regs): (u64, Regs),
    frames: &mut [usize],
) -> Walked {
    let memory = StackReader::new(arch::stack_pointer(&regs));
    let mut walker = Walker { table, caches, memory, frames, count: 0, with_go: false, near: 0..0 };
    let end = walker.run(ip, regs);
    Walked { frames: walker.count, end, with_go: walker.with_go }
}

struct Walker<'a> {
    table: &'a ModuleTable,
    caches: &'a mut HookCaches,
    memory: StackReader,
    frames: &'a mut [usize],
    count: usize,
    with_go: bool,
    /// Executable range that the last return address was in; most are in the same.
    near: std::ops::Range<u64>,
}

/// Where the walk goes on after a Go chain.
enum AfterGo {
    Native(u64, Regs),
    End(StackEnd),
}

impl Walker<'_> {
    fn run(&mut self, ip: u64, mut regs: Regs) -> StackEnd {
        let mut address = FrameAddress::InstructionPointer(ip);
        let mut own_frames = 0;
        loop {
            let sp = arch::stack_pointer(&regs);
            let return_address = match self.unwind(address, &mut regs) {
                Ok(Some(return_address)) => return_address,
                Ok(None) => return StackEnd::Root,
                Err(error) => return end_of(error),
            };
            if self.count == 0 && own_frames < OWN_FRAMES_LIMIT && self.table.is_own(return_address) {
                own_frames += 1;
            } else if let Some(go) = self.table.go_text(return_address) {
                let root = go.is_root(return_address);
                if !self.record(return_address) {
                    return StackEnd::TooDeep;
                }
                self.with_go = true;
                if root {
                    return StackEnd::Root;
                }
                match self.go_chain(&regs) {
                    AfterGo::Native(return_address, native) => {
                        regs = native;
                        let Some(next) = FrameAddress::from_return_address(return_address) else {
                            return StackEnd::Root;
                        };
                        address = next;
                        continue;
                    }
                    AfterGo::End(end) => return end,
                }
            } else if !self.is_code(return_address) {
                return StackEnd::UnknownImage;
            } else if !self.record(return_address) {
                return StackEnd::TooDeep;
            }
            // Each step pops at least its return address, or the tables lie.
            if arch::stack_pointer(&regs) <= sp && !matches!(address, FrameAddress::InstructionPointer(_)) {
                return StackEnd::NoProgress;
            }
            let Some(next) = FrameAddress::from_return_address(return_address) else { return StackEnd::Root };
            address = next;
        }
    }

    #[inline]
    fn unwind(&mut self, address: FrameAddress, regs: &mut Regs) -> Result<Option<u64>, Error> {
        let unwinder: &HookUnwinder = &self.table.unwinder;
        let memory = &mut self.memory;
        let cache = self.caches.at(address.address_for_lookup());
        unwinder.unwind_frame(address, regs, cache, &mut |at| memory.read(at).ok_or(()))
    }

    /// Follows Go's frame pointers from a call into C.
    ///
    /// ```text
    /// [fp+8] return address     [fp] the caller's frame pointer; 0 in the first function of a goroutine
    /// ```
    ///
    /// The chain crosses stacks by itself: a callback's `cgocallback` runs on the goroutine's stack, but its frame
    /// pointer was saved on the system stack, by a `crosscall2` that linked the C caller's in turn. So a return address
    /// outside Go's text is the C function that called back.
    ///
    /// `crosscall2` saves the frame pointer twice, by Go's assembler and by its own macro, the second record just below
    /// the first and overlapping it:
    ///
    /// ```text
    /// [f+16] return address into C     [f+8] C's RBP     [f] = f+8
    /// ```
    ///
    /// A record that links to eight bytes above itself is therefore no frame, only a step to the true record.
    fn go_chain(&mut self, regs: &Regs) -> AfterGo {
        let memory = &mut self.memory;
        let Some(mut frame) = arch::go_frame_pointer(regs, &mut |at| memory.read(at)) else {
            return AfterGo::End(StackEnd::Unreadable);
        };
        self.memory.enter_goroutine(frame);
        let mut backward = 0;
        loop {
            let Some((return_address, caller)) = self.frame_record(frame) else {
                return AfterGo::End(StackEnd::Unreadable);
            };
            if caller == frame.wrapping_add(8) {
                frame = caller;
                continue;
            }
            let Some(go) = self.table.go_text(return_address) else {
                return if self.is_code(return_address) {
                    if self.record(return_address) {
                        AfterGo::Native(return_address, arch::native_regs(return_address, frame, caller))
                    } else {
                        AfterGo::End(StackEnd::TooDeep)
                    }
                } else if return_address == 0 {
                    AfterGo::End(StackEnd::Root)
                } else {
                    AfterGo::End(StackEnd::UnknownImage)
                };
            };
            let root = go.is_root(return_address);
            if !self.record(return_address) {
                return AfterGo::End(StackEnd::TooDeep);
            }
            if root || caller == 0 {
                return AfterGo::End(StackEnd::Root);
            }
            if caller == frame {
                return AfterGo::End(StackEnd::NoProgress);
            }
            if caller < frame {
                backward += 1;
                if backward > BACKWARD_LIMIT {
                    return AfterGo::End(StackEnd::NoProgress);
                }
            }
            frame = caller;
        }
    }

    #[inline]
    fn is_code(&mut self, address: u64) -> bool {
        if self.near.contains(&address) {
            return true;
        }
        match self.table.code_around(address) {
            Some(range) => {
                self.near = range.clone();
                true
            }
            None => false,
        }
    }

    fn frame_record(&mut self, frame: u64) -> Option<(u64, u64)> {
        let caller = self.memory.read(frame)?;
        let return_address = self.memory.read(frame.checked_add(8)?)?;
        Some((return_address, caller))
    }

    /// Writes one frame; `false` when there is no room.
    #[inline]
    fn record(&mut self, return_address: u64) -> bool {
        match self.frames.get_mut(self.count) {
            Some(frame) => {
                *frame = return_address as usize;
                self.count += 1;
                true
            }
            None => false,
        }
    }
}

fn end_of(error: Error) -> StackEnd {
    match error {
        Error::CouldNotReadStack(_) => StackEnd::Unreadable,
        // Frame pointers are what framehop falls back to where the tables say nothing (a loader's or a JIT's assembly).
        Error::FramepointerUnwindingMovedBackwards => StackEnd::NoUnwindInfo,
        Error::DidNotAdvance => StackEnd::NoProgress,
        Error::IntegerOverflow => StackEnd::Unreadable,
        Error::ReturnAddressIsNull => StackEnd::Root,
    }
}
