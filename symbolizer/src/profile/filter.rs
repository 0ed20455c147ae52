//! Keep or drop samples and frames by name, with the meaning that `focus`, `ignore`, `hide` and `show` have in
//! `go tool pprof`.

use super::{Location, LocationId, Profile};

/// Says whether a function name, a source file or the path of a mapping is meant.
pub type Matcher<'a> = &'a (dyn Fn(&str) -> bool + 'a);

/// What to keep. A location matches by the name or the source file of any of its functions or by the path of its
/// mapping; a line of it matches by its own function or by the mapping.
#[derive(Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Keep only samples with a location that matches.
    pub focus: Option<Matcher<'a>>,
    /// Drop samples with a location that matches; stronger than `focus`.
    pub ignore: Option<Matcher<'a>>,
    /// Take lines that match out of the stacks.
    pub hide: Option<Matcher<'a>>,
    /// Take lines that do not match out of the stacks.
    pub show: Option<Matcher<'a>>,
}

/// Which parts of a filter matched anything; `true` where the part was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched {
    /// `focus` matched a location.
    pub focus: bool,
    /// `ignore` matched a location.
    pub ignore: bool,
    /// `hide` matched a location.
    pub hide: bool,
    /// `show` matched a location.
    pub show: bool,
}

impl Profile {
    /// Apply a filter. Samples that lose all of their locations are dropped.
    pub fn filter(&mut self, filter: &Filter<'_>) -> Matched {
        let mut matched = Matched {
            focus: filter.focus.is_none(),
            ignore: filter.ignore.is_none(),
            hide: filter.hide.is_none(),
            show: filter.show.is_none(),
        };
        let ignored = self.matching(filter.ignore, &mut matched.ignore);
        let focused = self.matching(filter.focus, &mut matched.focus);
        let hidden = self.take_out_lines(filter, &mut matched);
        let at = |set: &[bool], id: &LocationId| set[id.0 as usize];
        self.samples.retain_mut(|sample| {
            let dropped = filter.ignore.is_some() && sample.locations.iter().any(|id| at(&ignored, id));
            let in_focus = filter.focus.is_none() || sample.locations.iter().any(|id| at(&focused, id));
            if dropped || !in_focus {
                return false;
            }
            if filter.hide.is_none() && filter.show.is_none() {
                return true;
            }
            sample.locations.retain(|id| !at(&hidden, id));
            !sample.locations.is_empty()
        });
        matched
    }

    /// For each location, whether it matches; all `false` without a matcher.
    fn matching(&self, matcher: Option<Matcher<'_>>, any: &mut bool) -> Vec<bool> {
        let matches: Vec<bool> =
            self.locations.iter().map(|location| matcher.is_some_and(|m| self.location_matches(location, m))).collect();
        *any |= matches.contains(&true);
        matches
    }

    fn location_matches(&self, location: &Location, matcher: Matcher<'_>) -> bool {
        self.mapping_matches(location, matcher)
            || location.lines.iter().any(|line| self.function_matches(line.function, matcher))
    }

    fn mapping_matches(&self, location: &Location, matcher: Matcher<'_>) -> bool {
        location.mapping.is_some_and(|id| matcher(&self.mapping(id).path))
    }

    fn function_matches(&self, id: super::FunctionId, matcher: Matcher<'_>) -> bool {
        let function = self.function(id);
        matcher(&function.name) || matcher(&function.file)
    }

    /// Take lines out of the locations; returns which locations are to leave the stacks.
    fn take_out_lines(&mut self, filter: &Filter<'_>, matched: &mut Matched) -> Vec<bool> {
        let mut gone = vec![false; self.locations.len()];
        let mut locations = std::mem::take(&mut self.locations);
        for (gone, location) in gone.iter_mut().zip(&mut locations) {
            if let Some(hide) = filter.hide
                && self.location_matches(location, hide)
            {
                matched.hide = true;
                if self.mapping_matches(location, hide) {
                    location.lines.clear();
                } else {
                    location.lines.retain(|line| !self.function_matches(line.function, hide));
                }
                *gone |= location.lines.is_empty();
            }
            if let Some(show) = filter.show {
                if !self.mapping_matches(location, show) {
                    location.lines.retain(|line| self.function_matches(line.function, show));
                    *gone |= location.lines.is_empty();
                }
                matched.show |= !*gone;
            }
        }
        self.locations = locations;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, Matched};
    use crate::profile::{Function, FunctionId, Line, Location, LocationId, Mapping, MappingId, Profile, Sample};

    /// Two stacks, leaf first, `grow` inlined into `put` and one frame of a library without names:
    ///
    /// ```text
    /// 10  [grow put] main      20  [librock.so] scan main
    /// ```
    fn profile() -> Profile {
        let function =
            |name: &str, file: &str| Function { name: name.into(), file: file.into(), ..Function::default() };
        let line = |id| Line { function: FunctionId(id), line: 1, column: 0 };
        let location = |mapping, lines: &[u32]| Location {
            mapping: Some(MappingId(mapping)),
            lines: lines.iter().map(|&id| line(id)).collect(),
            ..Location::default()
        };
        let sample = |locations: &[u32], value| Sample {
            locations: locations.iter().map(|&id| LocationId(id)).collect(),
            values: vec![value],
            ..Sample::default()
        };
        Profile {
            functions: vec![
                function("grow", "arena.cc"),
                function("put", "table.cc"),
                function("main", "main.go"),
                function("scan", "table.cc"),
            ],
            mappings: vec![
                Mapping { path: "/srv/app".into(), ..Mapping::default() },
                Mapping { path: "/usr/lib/librock.so".into(), ..Mapping::default() },
            ],
            locations: vec![location(0, &[0, 1]), location(0, &[2]), location(0, &[3]), location(1, &[])],
            samples: vec![sample(&[0, 1], 10), sample(&[3, 2, 1], 20)],
            ..Profile::default()
        }
    }

    /// What is left: value and names, `?` for a location without lines.
    fn left(profile: &Profile) -> Vec<(i64, Vec<String>)> {
        let names = |id: &LocationId| match &profile.location(*id).lines[..] {
            [] => vec!["?".to_owned()],
            lines => lines.iter().map(|line| profile.function(line.function).name.to_string()).collect(),
        };
        profile.samples.iter().map(|s| (s.values[0], s.locations.iter().flat_map(names).collect())).collect()
    }

    #[test]
    fn parts_of_the_filter() {
        let is = |wanted: &'static str| move |name: &str| name.contains(wanted);
        let (grow, put, table, rock, main) = (is("grow"), is("put"), is("table.cc"), is("librock"), is("main"));
        let none = Filter::default();
        let full = ["grow", "put", "main"].map(String::from).to_vec();
        let bare = ["?", "scan", "main"].map(String::from).to_vec();
        let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        for (label, filter, expected) in [
            ("nothing", none, vec![(10, full.clone()), (20, bare.clone())]),
            ("focus", Filter { focus: Some(&grow), ..none }, vec![(10, full.clone())]),
            ("focus by mapping", Filter { focus: Some(&rock), ..none }, vec![(20, bare.clone())]),
            ("ignore beats focus", Filter { focus: Some(&main), ignore: Some(&put), ..none }, vec![(20, bare.clone())]),
            (
                "hide an inlined line",
                Filter { hide: Some(&grow), ..none },
                vec![(10, names(&["put", "main"])), (20, bare.clone())],
            ),
            (
                "hide by file and whole locations",
                Filter { hide: Some(&table), ..none },
                vec![(10, names(&["grow", "main"])), (20, names(&["?", "main"]))],
            ),
            (
                "hide by mapping",
                Filter { hide: Some(&rock), ..none },
                vec![(10, full.clone()), (20, names(&["scan", "main"]))],
            ),
            ("show", Filter { show: Some(&put), ..none }, vec![(10, names(&["put"]))]),
            ("show by mapping", Filter { show: Some(&rock), ..none }, vec![(20, names(&["?"]))]),
        ] {
            let mut profile = profile();
            profile.filter(&filter);
            assert_eq!(left(&profile), expected, "{label}");
        }
    }

    #[test]
    fn what_matched_nothing_is_told() {
        let nowhere = |_: &str| false;
        let somewhere = |name: &str| name == "put";
        let filter = Filter { focus: Some(&nowhere), hide: Some(&somewhere), ..Filter::default() };
        let matched = profile().filter(&filter);
        assert_eq!(matched, Matched { focus: false, ignore: true, hide: true, show: true });
    }
}
