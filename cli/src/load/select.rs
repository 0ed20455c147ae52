//! Options that pick a value, samples and frames of a profile.

use crate::output;
use anyhow::bail;
use offheap_symbolizer::profile::{Filter, Profile};
use regex::Regex;

/// What of a profile is shown.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct Select {
    /// Value to show: inuse_space (the default), inuse_objects, alloc_space, alloc_objects, or another one of the profile
    #[arg(long, value_name = "TYPE")]
    pub(crate) sample: Option<String>,
    /// Keep only stacks with a function, source file or image that matches
    #[arg(long, value_name = "REGEX")]
    pub(crate) focus: Option<Regex>,
    /// Drop stacks with a function, source file or image that matches
    #[arg(long, value_name = "REGEX")]
    pub(crate) ignore: Option<Regex>,
    /// Take frames that match out of the stacks
    #[arg(long, value_name = "REGEX")]
    pub(crate) hide: Option<Regex>,
    /// Take frames that do not match out of the stacks
    #[arg(long, value_name = "REGEX")]
    pub(crate) show: Option<Regex>,
}

impl Select {
    /// Index of the value to show.
    ///
    /// # Errors
    /// When the profile has no such value; the message lists those that it has.
    pub(crate) fn value(&self, profile: &Profile) -> anyhow::Result<usize> {
        let Some(wanted) = self.sample.as_deref() else { return Ok(usual_value(profile)) };
        let kinds: Vec<&str> = profile.value_types.iter().map(|value| &*value.kind).collect();
        match kinds.iter().position(|&kind| kind == wanted) {
            Some(index) => Ok(index),
            None => bail!("--sample {wanted}: the profile has no such value; it has {}", kinds.join(", ")),
        }
    }

    /// Drop the samples and frames that are not wanted. An expression that matches nothing is said, as it is a typing
    /// mistake more often than a result.
    pub(crate) fn apply(&self, profile: &mut Profile) {
        let matcher = |regex: &Option<Regex>| {
            let regex = regex.clone();
            move |text: &str| regex.as_ref().is_some_and(|regex| regex.is_match(text))
        };
        let (focus, ignore, hide, show) =
            (matcher(&self.focus), matcher(&self.ignore), matcher(&self.hide), matcher(&self.show));
        let matched = profile.filter(&Filter {
            focus: self.focus.is_some().then_some(&focus),
            ignore: self.ignore.is_some().then_some(&ignore),
            hide: self.hide.is_some().then_some(&hide),
            show: self.show.is_some().then_some(&show),
        });
        let options = [
            ("--focus", &self.focus, matched.focus),
            ("--ignore", &self.ignore, matched.ignore),
            ("--hide", &self.hide, matched.hide),
            ("--show", &self.show, matched.show),
        ];
        for (option, regex, matched) in options {
            if let (Some(regex), false) = (regex, matched) {
                output::note(&format!("{option} {regex} matches no function, file or image"));
            }
        }
    }
}

/// The value that is meant when none is named: live bytes where there are any such, else what the profile prefers.
pub(crate) fn usual_value(profile: &Profile) -> usize {
    profile.value_index("inuse_space").or_else(|| profile.default_value_index()).unwrap_or(0)
}
