//! Frames that the writer of a profile marked as of no interest.

use super::{Line, Location, LocationId, Matcher, Profile};

impl Profile {
    /// Cut stacks at their outermost frame that `drop` matches and `keep` does not: it and all that it called goes, as in
    /// `go tool pprof`. A stack of nothing else stays whole, so that its values stay with a name.
    ///
    /// Names are matched without their arguments. What was asked is done then, and no longer asked of the next reader.
    pub fn drop_frames(&mut self, drop: Matcher<'_>, keep: Option<Matcher<'_>>) {
        self.drop_frames = None;
        self.keep_frames = None;
        let cuts: Vec<Cut> = self.locations.iter().map(|location| self.cut(location, drop, keep)).collect();
        for (location, cut) in self.locations.iter_mut().zip(&cuts) {
            if let Cut::Lines(lines) = *cut {
                location.lines.drain(..lines);
            }
        }
        for sample in &mut self.samples {
            let cut = |id: &LocationId| cuts[id.0 as usize];
            let stack = &mut sample.locations;
            let Some(user) = stack.iter().rposition(|id| cut(id) == Cut::No) else { continue };
            let Some(at) = stack[..user].iter().rposition(|id| cut(id) != Cut::No) else { continue };
            let kept = if cut(&stack[at]) == Cut::Whole { at + 1 } else { at };
            stack.drain(..kept);
        }
    }

    fn cut(&self, location: &Location, drop: Matcher<'_>, keep: Option<Matcher<'_>>) -> Cut {
        let is_dropped = |line: &Line| {
            let name = without_arguments(&self.function(line.function).name);
            !name.is_empty() && drop(name) && !keep.is_some_and(|keep| keep(name))
        };
        match location.lines.iter().rposition(is_dropped) {
            None => Cut::No,
            Some(last) if last + 1 == location.lines.len() => Cut::Whole,
            Some(last) => Cut::Lines(last + 1),
        }
    }
}

/// How much of a location goes, from the innermost line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    No,
    /// This many inlined lines.
    Lines(usize),
    Whole,
}

/// `ns::f(int)` is `ns::f`; the brackets of `operator()` and `(anonymous namespace)` are of the name.
fn without_arguments(name: &str) -> &str {
    let name = name.strip_prefix('.').unwrap_or(name);
    let of_the_name = |at: usize| {
        name[at..].starts_with("(anonymous namespace)")
            || name[..at].ends_with("operator") && name[at..].starts_with("()")
    };
    match name.match_indices('(').find(|&(at, _)| !of_the_name(at)) {
        Some((at, _)) => &name[..at],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::without_arguments;
    use crate::profile::{Line, Location, Profile, ProfileBuilder, Sample};

    #[test]
    fn names_without_arguments() {
        for (name, expected) in [
            ("main.work", "main.work"),
            ("ns::f(int)", "ns::f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("Fn::operator()(int) const", "Fn::operator()"),
            (".f", "f"),
        ] {
            assert_eq!(without_arguments(name), expected);
        }
    }

    fn profile(frames: &[&[&str]]) -> Profile {
        let mut builder = ProfileBuilder::default();
        let mut locations = Vec::new();
        for names in frames {
            let line = |name: &&str| Line { function: builder.function(name, name, "", 0), line: 0, column: 0 };
            let lines = names.iter().map(line).collect();
            locations.push(builder.location_as_given(Location { lines, ..Location::default() }));
        }
        builder.sample(Sample { locations, ..Sample::default() });
        builder.finish()
    }

    /// Expected values are what `go tool pprof -traces` prints of the same stacks.
    #[test]
    fn stacks_are_cut_at_the_outermost_match_below_a_frame_of_interest() {
        let drop = |name: &str| ["malloc", "inner"].contains(&name);
        let keep = |name: &str| name == "inner";
        for (frames, plain, with_keep) in [
            (&[&["malloc"][..], &["inner"], &["outer"], &["main"]][..], "outer main", "inner outer main"),
            (&[&["malloc"], &["outer"], &["inner"], &["main"]], "main", "outer inner main"),
            (&[&["malloc", "outer"], &["main"]], "outer main", "outer main"),
            (&[&["outer", "malloc"], &["main"]], "main", "main"),
            (&[&["outer"], &["malloc"]], "outer malloc", "outer malloc"),
            (&[&["malloc", "outer"]], "outer", "outer"),
            (&[&["inner"], &["malloc"]], "inner malloc", "inner malloc"),
            (&[&["outer"], &["main"], &["malloc"]], "outer main malloc", "outer main malloc"),
            (&[&["outer(int)"], &["malloc(int)"], &["main"]], "main", "main"),
        ] {
            for (keep, expected) in [(None, plain), (Some(&keep as super::Matcher<'_>), with_keep)] {
                let mut profile = profile(frames);
                profile.drop_frames(&drop, keep);
                let names: Vec<_> =
                    profile.frames(&profile.samples[0]).map(|frame| frame.name().into_owned()).collect();
                assert_eq!(names.join(" "), expected, "{frames:?}, keep: {}", keep.is_some());
            }
        }
    }
}
