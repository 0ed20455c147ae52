//! Folded stacks: one stack a line, root first, and its value.
//!
//! ```text
//! main;operator<< <int>(std::ostream&, int);f 7
//! ```

use crate::profile::{NO_STACK, Profile};
use std::borrow::Cow;
use std::io::{self, Write};

/// Write one value of a profile as folded stacks. Samples of equal stacks stand on one line, ordered by their text;
/// what is zero is left out.
///
/// # Errors
/// When the output cannot be written.
pub fn write(profile: &Profile, value: usize, out: &mut dyn Write) -> io::Result<()> {
    for (stack, value) in stacks(profile, value) {
        writeln!(out, "{stack} {value}")?;
    }
    Ok(())
}

/// The stacks, root first and joined by `;`, with the sum of one value; ordered by text.
#[must_use]
pub fn stacks(profile: &Profile, value: usize) -> Vec<(String, i64)> {
    let frames: Vec<String> = profile.locations.iter().map(|location| frames_of(profile, location)).collect();
    let mut stacks: Vec<(String, i64)> = Vec::with_capacity(profile.samples.len());
    for sample in &profile.samples {
        let parts = sample.locations.iter().rev().map(|id| frames[id.0 as usize].as_str());
        let stack = if sample.locations.is_empty() { NO_STACK.to_owned() } else { parts.collect::<Vec<_>>().join(";") };
        stacks.push((stack, sample.values[value]));
    }
    stacks.sort();
    stacks.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    stacks.retain(|(_, value)| *value != 0);
    stacks
}

/// The frames of a location, outermost first, joined by `;`.
fn frames_of(profile: &Profile, location: &crate::profile::Location) -> String {
    if location.lines.is_empty() {
        return clean(&profile.fallback_name(location)).into_owned();
    }
    let names = location.lines.iter().rev().map(|line| clean(&profile.function(line.function).name));
    names.collect::<Vec<_>>().join(";")
}

/// A name without the two characters that have a meaning in this format.
fn clean(name: &str) -> Cow<'_, str> {
    if name.contains([';', '\n', '\r']) {
        Cow::Owned(name.replace(';', ":").replace(['\n', '\r'], " "))
    } else if name.is_empty() {
        Cow::Borrowed("[unknown]")
    } else {
        Cow::Borrowed(name)
    }
}
