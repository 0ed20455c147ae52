//! The stacks of a profile as a tree.

use super::{Kind, Tree};
use offheap_symbolizer::profile::go_name::{is_cgo_stub, is_go, is_runtime};
use offheap_symbolizer::profile::{Profile, StackFrame};
use std::borrow::Cow;

/// Which value of a frame a profile gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that is drawn.
    New,
    /// The one that it is compared with.
    Base,
}

impl Tree {
    /// Add all stacks of a profile. Negative values cannot be drawn; their sum is returned.
    pub(crate) fn add_profile(&mut self, profile: &Profile, value: usize, side: Side) -> i128 {
        let mut negative: i128 = 0;
        for sample in &profile.samples {
            let amount = sample.values[value];
            negative += i128::from(amount.min(0));
            let Ok(amount @ 1..) = u64::try_from(amount) else { continue };
            let stack: Vec<(Cow<'_, str>, Kind)> =
                profile.frames(sample).map(|frame| (frame.name(), kind(profile, &frame))).collect();
            match side {
                Side::New => self.add(&stack, amount, 0),
                Side::Base => self.add(&stack, 0, amount),
            }
        }
        negative
    }
}

fn kind(profile: &Profile, frame: &StackFrame<'_>) -> Kind {
    if profile.is_unnamed(frame.location) {
        return Kind::Unknown;
    }
    let Some(function) = frame.function() else { return Kind::Unknown };
    if is_cgo_stub(&function.name) || (is_go(function) && is_runtime(&function.name)) {
        Kind::GoRuntime
    } else if is_go(function) {
        Kind::Go
    } else {
        Kind::Native
    }
}
