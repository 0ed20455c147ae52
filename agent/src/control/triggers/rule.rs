//! The text of rules.
//!
//! ```text
//! rss>1.5G,every=60,dir=/var/dumps,keep=5,keep-bytes=1G ; cgroup>80% ; rss+50% ; allocated>800M ; index>0.35
//! ```
//!
//! Rules are separated by semicolons. Sizes are powers of 1024 (K, M, G, T, with or without `iB`).

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// When a rule holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Condition {
    /// RSS of the process, bytes.
    RssAbove(f64),
    /// Bytes allocated by the program.
    AllocatedAbove(f64),
    /// Working set of the control group as a share of its limit.
    CgroupShareAbove(f64),
    /// RSS grown by this share since the rule was made, or since it held last.
    RssGrownBy(f64),
    /// Fragmentation index.
    IndexAbove(f64),
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) when: Condition,
    /// Least time between two files.
    pub(crate) every: Duration,
    pub(crate) directory: PathBuf,
    pub(crate) keep_files: u64,
    pub(crate) keep_bytes: u64,
}

/// What is wrong with a rule's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in a trigger: expected {}", self.text, self.expected)
    }
}

const CONDITIONS: &str = "rss>SIZE, allocated>SIZE, cgroup>PERCENT%, rss+PERCENT% or index>NUMBER";
const OPTIONS: &str = "every=SECONDS, dir=PATH, keep=FILES or keep-bytes=SIZE";
const SIZE: &str = "a size such as 800M or 1.5G";
const PERCENT: &str = "a percentage such as 80%";

const EVERY: Duration = Duration::from_secs(300);
const KEEP_FILES: u64 = 5;
const KEEP_BYTES: u64 = 1 << 30;

/// Parses rules. `default_directory` is for those that name none.
pub(crate) fn parse(text: &str, default_directory: &str) -> Result<Vec<Rule>, RuleError> {
    let rules = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
    let rules = rules.map(|rule| parse_rule(rule, default_directory)).collect::<Result<Vec<_>, _>>()?;
    if rules.is_empty() { error(text, CONDITIONS) } else { Ok(rules) }
}

fn parse_rule(text: &str, default_directory: &str) -> Result<Rule, RuleError> {
    let mut parts = text.split(',').map(str::trim);
    let mut rule = Rule {
        when: parse_condition(parts.next().unwrap_or_default())?,
        every: EVERY,
        directory: default_directory.into(),
        keep_files: KEEP_FILES,
        keep_bytes: KEEP_BYTES,
    };
    for part in parts {
        match part.split_once('=') {
            Some(("every", value)) => rule.every = parse_seconds(value)?,
            Some(("dir", value)) if value.starts_with('/') => rule.directory = value.into(),
            Some(("dir", _)) => return error(part, "an absolute path"),
            Some(("keep", value)) => match value.parse() {
                Ok(files) if files > 0 => rule.keep_files = files,
                _ => return error(part, "a number of files, at least 1"),
            },
            Some(("keep-bytes", value)) => rule.keep_bytes = parse_size(value)? as u64,
            _ => return error(part, OPTIONS),
        }
    }
    Ok(rule)
}

fn parse_condition(text: &str) -> Result<Condition, RuleError> {
    if let Some(percent) = text.strip_prefix("rss+") {
        return Ok(Condition::RssGrownBy(parse_percent(percent)?));
    }
    match text.split_once('>').map(|(name, value)| (name.trim(), value.trim())) {
        Some(("rss", size)) => Ok(Condition::RssAbove(parse_size(size)?)),
        Some(("allocated", size)) => Ok(Condition::AllocatedAbove(parse_size(size)?)),
        Some(("cgroup", percent)) => parse_share(percent).map(Condition::CgroupShareAbove),
        Some(("index", number)) => match number.parse::<f64>() {
            Ok(index) if (0.0..1.0).contains(&index) => Ok(Condition::IndexAbove(index)),
            _ => error(number, "a number from 0 to 1 such as 0.35"),
        },
        _ => error(text, CONDITIONS),
    }
}

fn parse_size(text: &str) -> Result<f64, RuleError> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return error(text, SIZE),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 => {
            Ok(number * f64::from(1u32 << (shift % 30)) * f64::from(1u32 << (shift / 30 * 30)))
        }
        _ => error(text, SIZE),
    }
}

fn parse_percent(text: &str) -> Result<f64, RuleError> {
    match text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()) {
        Some(percent) if percent > 0.0 && percent.is_finite() => Ok(percent / 100.0),
        _ => error(text, PERCENT),
    }
}

/// Of a limit, which nothing exceeds.
fn parse_share(text: &str) -> Result<f64, RuleError> {
    parse_percent(text).and_then(|share| {
        if share < 1.0 { Ok(share) } else { error(text, "less than 100%: the kernel ends a process at the limit") }
    })
}

fn parse_seconds(text: &str) -> Result<Duration, RuleError> {
    let seconds = text.trim_end_matches('s').parse::<f64>().ok();
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(duration) => Ok(duration),
        None => error(text, "a number of seconds"),
    }
}

fn error<T>(text: &str, expected: &'static str) -> Result<T, RuleError> {
    Err(RuleError { text: text.to_owned(), expected })
}

impl Condition {
    /// A word for file names.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::RssAbove(_) => "rss",
            Self::AllocatedAbove(_) => "allocated",
            Self::CgroupShareAbove(_) => "cgroup",
            Self::RssGrownBy(_) => "growth",
            Self::IndexAbove(_) => "index",
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RssAbove(bytes) => write!(f, "rss>{bytes}"),
            Self::AllocatedAbove(bytes) => write!(f, "allocated>{bytes}"),
            Self::CgroupShareAbove(share) => write!(f, "cgroup>{}%", share * 100.0),
            Self::RssGrownBy(share) => write!(f, "rss+{}%", share * 100.0),
            Self::IndexAbove(index) => write!(f, "index>{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_their_options() {
        let rules =
            parse("rss>1.5G, every=60s, dir=/d, keep=2, keep-bytes=10MiB; cgroup>80% ;rss+50%", "/tmp/x").unwrap();
        assert_eq!(rules.len(), 3);
        let first = &rules[0];
        assert_eq!(first.when, Condition::RssAbove(1_610_612_736.0));
        assert_eq!((first.every, first.keep_files, first.keep_bytes), (Duration::from_secs(60), 2, 10 << 20));
        assert_eq!(first.directory, PathBuf::from("/d"));
        assert_eq!((rules[1].when, rules[1].every), (Condition::CgroupShareAbove(0.8), EVERY));
        assert_eq!(rules[2].directory, PathBuf::from("/tmp/x"));
        assert_eq!(parse("allocated>2T", "/").unwrap()[0].when, Condition::AllocatedAbove(2.0 * 1024f64.powi(4)));
    }

    #[test]
    fn text_survives_a_round_trip() {
        for text in ["rss>1048576", "allocated>5", "cgroup>80%", "rss+50%", "index>0.35"] {
            assert_eq!(parse(text, "/").unwrap()[0].when.to_string(), text);
        }
    }

    #[test]
    fn faults_are_named() {
        for (text, part) in [
            ("", "rss>SIZE"),
            ("rss", "rss>SIZE"),
            ("rss>1X", "1.5G"),
            ("cgroup>80", "80%"),
            ("cgroup>100%", "less than 100%"),
            ("index>35", "0.35"),
            ("rss>1G,dir=here", "absolute"),
            ("rss>1G,keep=0", "at least 1"),
            ("rss>1G,when=now", "keep-bytes"),
        ] {
            let message = parse(text, "/").unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
