//! What was resolved, image by image, and why not.

use crate::frame::{NameSource, NoName};
use crate::modules::{Candidate, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// What was resolved, image by image, and why not. Counts are of distinct addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// One entry a file that the profile speaks of and that has addresses to name.
    pub images: Vec<ImageReport>,
    /// Addresses in no file, by reason: in no mapping, or in memory that is not a file.
    pub outside: BTreeMap<NoName, usize>,
    /// Bytes (or whatever the profile's main value counts) in stacks.
    pub total: i64,
    /// Bytes of stacks whose leaf has no name.
    pub unnamed: i64,
}

/// What became of one image.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ImageReport {
    /// Path as recorded.
    pub path: String,
    /// Build id as recorded, else as found; empty when unknown.
    pub build_id: String,
    /// The accepted file.
    pub file: Option<PathBuf>,
    /// The accepted separate debug file.
    pub debug_file: Option<PathBuf>,
    /// Files that were looked at, in order.
    pub looked_at: Vec<Candidate>,
    /// Sources that the file has, most trusted first.
    pub sources: Vec<NameSource>,
    /// Addresses asked for.
    pub addresses: usize,
    /// Addresses named, by source.
    pub resolved: BTreeMap<NameSource, usize>,
    /// Addresses without a name, by reason.
    pub unresolved: BTreeMap<NoName, usize>,
}

/// Share of unnamed bytes from which the user is told.
const WORTH_MENTIONING: f64 = 0.05;

impl Report {
    /// Put the report of another profile to it.
    pub fn add(&mut self, other: Self) {
        self.images.extend(other.images);
        for (why, count) in other.outside {
            *self.outside.entry(why).or_default() += count;
        }
        self.total = self.total.saturating_add(other.total);
        self.unnamed = self.unnamed.saturating_add(other.unnamed);
    }

    /// Share of the bytes whose stack has no name at the leaf; `None` when there are none.
    #[must_use]
    pub fn unnamed_share(&self) -> Option<f64> {
        (self.total > 0).then(|| self.unnamed as f64 / self.total as f64)
    }

    /// One line for the user when more than 5 % of the bytes, or of what else is `counted`, have no name: how many, and
    /// the image to blame first.
    #[must_use]
    pub fn warning(&self, counted: &str) -> Option<String> {
        let share = self.unnamed_share().filter(|share| *share > WORTH_MENTIONING)?;
        let worst = self.images.iter().max_by_key(|i| i.unresolved_count()).filter(|i| i.unresolved_count() > 0);
        let blame = worst.map(|i| format!("; most of them in {}: {}", i.path, i.why())).unwrap_or_default();
        let (percent, verb) = (share * 100.0, if counted.ends_with('s') { "have" } else { "has" });
        Some(format!("{percent:.0} % of {counted} {verb} no name{blame} (-v tells more)"))
    }
}

impl ImageReport {
    /// Addresses named.
    #[must_use]
    pub fn resolved_count(&self) -> usize {
        self.resolved.values().sum()
    }

    /// Addresses without a name.
    #[must_use]
    pub fn unresolved_count(&self) -> usize {
        self.unresolved.values().sum()
    }

    /// Share of the addresses that were named.
    #[must_use]
    pub fn resolved_share(&self) -> f64 {
        if self.addresses == 0 { 1.0 } else { self.resolved_count() as f64 / self.addresses as f64 }
    }

    /// Why addresses have no name, in words.
    fn why(&self) -> String {
        if self.file.is_some() {
            if self.sources.is_empty() {
                return "the file has no symbols".into();
            }
            let reasons: Vec<_> = self.unresolved.iter().map(|(why, count)| format!("{why} ({count})")).collect();
            return reasons.join(", ");
        }
        // Of several candidates, one that exists says more than one that does not.
        let telling = self.looked_at.iter().rev().find(|c| c.verdict != Verdict::Missing).or(self.looked_at.last());
        match telling {
            Some(candidate) if candidate.verdict == Verdict::Missing => {
                "it is not here; give it with --binary, --symbols or --sysroot".into()
            }
            Some(candidate) => format!("{} {}", candidate.path.display(), candidate.verdict),
            None => "no place to look for it".into(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for image in &self.images {
            writeln!(f, "{image}")?;
        }
        for (why, count) in &self.outside {
            writeln!(f, "{count} addresses: {why}")?;
        }
        Ok(())
    }
}

/// ```text
/// /usr/lib/libfoo.so.1: 10 of 12 addresses named (83 %): .symtab 10; no symbol there 2
///   build id 0123abcd
///   has .symtab, .dynsym
///   /usr/lib/libfoo.so.1 (recorded path): accepted
/// ```
impl fmt::Display for ImageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (named, share) = (self.resolved_count(), self.resolved_share() * 100.0);
        write!(f, "{}: {named} of {} addresses named ({share:.0} %)", self.path, self.addresses)?;
        let by_source = self.resolved.iter().map(|(source, count)| format!("{source} {count}"));
        let by_reason = self.unresolved.iter().map(|(why, count)| format!("{why} {count}"));
        for (index, part) in by_source.chain(by_reason).enumerate() {
            write!(f, "{}{part}", if index == 0 { ": " } else { ", " })?;
        }
        if !self.build_id.is_empty() {
            write!(f, "\n  build id {}", self.build_id)?;
        }
        if !self.sources.is_empty() {
            let sources: Vec<_> = self.sources.iter().map(ToString::to_string).collect();
            write!(f, "\n  has {}", sources.join(", "))?;
        }
        for candidate in &self.looked_at {
            write!(f, "\n  {} ({}): {}", candidate.path.display(), candidate.place, candidate.verdict)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::Place;

    fn report() -> Report {
        let looked_at = vec![
            Candidate { path: "/sysroot/lib/libx.so".into(), place: Place::Sysroot, verdict: Verdict::Missing },
            Candidate {
                path: "/lib/libx.so".into(),
                place: Place::Recorded,
                verdict: Verdict::BuildIdDiffers("beef".into()),
            },
        ];
        let image = ImageReport {
            path: "/lib/libx.so".into(),
            build_id: "dead".into(),
            looked_at,
            addresses: 4,
            unresolved: BTreeMap::from([(NoName::BuildIdMismatch, 4)]),
            ..ImageReport::default()
        };
        Report { images: vec![image], outside: BTreeMap::from([(NoName::NoMapping, 2)]), total: 100, unnamed: 40 }
    }

    #[test]
    fn printed() {
        let expected = "\
/lib/libx.so: 0 of 4 addresses named (0 %): build id differs 4
  build id dead
  /sysroot/lib/libx.so (--sysroot): no such file
  /lib/libx.so (recorded path): refused: its build id is beef
2 addresses: in no mapping
";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn warned_above_five_percent() {
        let warning = report().warning("bytes").unwrap();
        assert_eq!(
            warning,
            "40 % of bytes have no name; most of them in /lib/libx.so: /lib/libx.so refused: its build id is beef \
             (-v tells more)"
        );
        assert!(report().warning("CPU time").unwrap().starts_with("40 % of CPU time has no name"));
        assert_eq!(Report { unnamed: 5, ..report() }.warning("bytes"), None);
        assert_eq!(Report::default().warning("bytes"), None);
    }

    #[test]
    fn as_json() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["images"][0]["unresolved"]["build_id_mismatch"], 4);
        assert_eq!(json["images"][0]["looked_at"][1]["verdict"]["build_id_differs"], "beef");
        assert_eq!(json["outside"]["no_mapping"], 2);
    }
}
