//! The source-level frames of a stack.

use super::{Function, Line, Location, Mapping, Profile, Sample};
use std::borrow::Cow;

/// One source-level frame of a sample, inlined ones told apart.
#[derive(Clone, Copy, Debug)]
pub struct StackFrame<'a> {
    profile: &'a Profile,
    /// Where it is.
    pub location: &'a Location,
    /// Function and line; `None` when the location has no name.
    pub line: Option<Line>,
    /// The frame was inlined into the next one.
    pub inlined: bool,
}

impl<'a> StackFrame<'a> {
    /// Name to show: the function's, or what stands in for the name of a location that has none.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        match self.function() {
            Some(function) if !function.name.is_empty() => Cow::Borrowed(&*function.name),
            _ => self.profile.fallback_name(self.location),
        }
    }

    /// The function, when the location has lines.
    #[must_use]
    pub fn function(&self) -> Option<&'a Function> {
        self.line.map(|line| self.profile.function(line.function))
    }

    /// Mapping of the location.
    #[must_use]
    pub fn mapping(&self) -> Option<&'a Mapping> {
        self.location.mapping.map(|id| self.profile.mapping(id))
    }
}

impl Profile {
    /// Frames of a location, innermost first; one without a line when it has no name.
    pub fn location_frames<'a>(&'a self, location: &'a Location) -> impl DoubleEndedIterator<Item = StackFrame<'a>> {
        let last = location.lines.len().saturating_sub(1);
        let named = location.lines.iter().enumerate().map(move |(index, &line)| StackFrame {
            profile: self,
            location,
            line: Some(line),
            inlined: index < last,
        });
        let bare = StackFrame { profile: self, location, line: None, inlined: false };
        named.chain(location.lines.is_empty().then_some(bare))
    }

    /// Frames of a sample, leaf first.
    pub fn frames<'a>(&'a self, sample: &'a Sample) -> impl DoubleEndedIterator<Item = StackFrame<'a>> {
        sample.locations.iter().flat_map(|&id| self.location_frames(self.location(id)))
    }
}

#[cfg(test)]
mod tests {
    use crate::address::{FileOffset, RuntimeAddress};
    use crate::profile::{Function, FunctionId, Line, Location, LocationId, Mapping, MappingId, Profile, Sample};

    #[test]
    fn inlined_frames_and_code_without_a_name() {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let line = |id, line| Line { function: FunctionId(id), line, column: 0 };
        let profile = Profile {
            functions: vec![function("grow"), function("put"), function("")],
            mappings: vec![Mapping {
                start: RuntimeAddress(0x7000),
                end: RuntimeAddress(0x8000),
                offset: FileOffset(0x300),
                path: "/usr/lib/librock.so.7".into(),
                ..Mapping::default()
            }],
            locations: vec![
                Location { lines: vec![line(0, 10), line(1, 20)], ..Location::default() },
                Location { mapping: Some(MappingId(0)), address: RuntimeAddress(0x7010), ..Location::default() },
                Location { address: RuntimeAddress(0x10), ..Location::default() },
                Location { address: RuntimeAddress(0x20), lines: vec![line(2, 7)], ..Location::default() },
            ],
            ..Profile::default()
        };
        let sample = Sample { locations: [0, 1, 2, 3].map(LocationId).to_vec(), ..Sample::default() };
        let seen: Vec<_> =
            profile.frames(&sample).map(|f| (f.name().into_owned(), f.line.map_or(0, |l| l.line), f.inlined)).collect();
        let expected = [
            ("grow", 10, true),
            ("put", 20, false),
            ("librock.so.7+0x310", 0, false),
            ("[unknown]", 0, false),
            ("[unknown]", 7, false),
        ];
        assert_eq!(seen, expected.map(|(name, line, inlined)| (name.to_owned(), line, inlined)));
    }
}
