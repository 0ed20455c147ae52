//! Values of a profile, for people.

use crate::words::size;
use offheap_symbolizer::profile::ValueType;

/// What a value counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unit {
    /// Bytes, printed as sizes.
    Bytes,
    /// Allocations.
    Objects,
    /// Time, in a unit of so many nanoseconds.
    Time {
        /// Nanoseconds in one.
        nanoseconds: f64,
        /// Time on a CPU, and not spent waiting.
        of_cpu: bool,
    },
    /// Other things that are counted, by the name that the profile gives them: `samples`, `contentions`.
    Counted(String),
    /// Anything else, by the name of its unit.
    Other(String),
}

impl Unit {
    /// The unit of a value type; bytes when there is none.
    pub(crate) fn of(value: Option<&ValueType>) -> Self {
        match value.map(|value| (&*value.unit, &*value.kind)) {
            None | Some(("bytes", _)) => Self::Bytes,
            Some(("count", kind)) if kind.ends_with("objects") => Self::Objects,
            Some(("count", kind)) if !kind.is_empty() => Self::Counted(kind.to_owned()),
            Some((unit, kind)) => match nanoseconds_in(unit) {
                Some(nanoseconds) => Self::Time { nanoseconds, of_cpu: kind == "cpu" },
                None => Self::Other(unit.to_owned()),
            },
        }
    }

    /// A value for people, without the name of its unit where it is a count.
    pub(crate) fn amount(&self, value: i128) -> String {
        match self {
            Self::Bytes => size::human(value),
            Self::Time { nanoseconds, .. } => time(value as f64 * nanoseconds),
            Self::Objects | Self::Counted(_) | Self::Other(_) => value.to_string(),
        }
    }

    /// A value for people with the name of its unit.
    pub(crate) fn named(&self, value: i128) -> String {
        match self {
            Self::Bytes => size::human(value),
            Self::Time { .. } => self.amount(value),
            Self::Objects => format!("{value} objects"),
            Self::Counted(kind) => format!("{value} {kind}"),
            Self::Other(unit) => format!("{value} {unit}"),
        }
    }

    /// A value behind the name of what is counted.
    pub(crate) fn headed(&self, value: i128) -> String {
        match self {
            Self::Counted(_) => self.amount(value),
            _ => self.named(value),
        }
    }

    /// What there are shares of: `40 % of bytes`.
    pub(crate) fn counted(&self) -> &str {
        match self {
            Self::Bytes => "bytes",
            Self::Objects => "objects",
            Self::Time { of_cpu: true, .. } => "CPU time",
            Self::Time { .. } => "time",
            Self::Counted(kind) => kind,
            Self::Other(unit) => unit,
        }
    }

    /// A change, with its sign.
    pub(crate) fn change(&self, value: i128) -> String {
        let sign = if value > 0 { "+" } else { "" };
        format!("{sign}{}", self.amount(value))
    }
}

/// Nanoseconds in a unit of time; `None` for other units. The names are those that `go tool pprof` knows.
fn nanoseconds_in(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().trim_end_matches('s') {
        "n" | "nanosecond" => 1.0,
        "u" | "µ" | "microsecond" => 1e3,
        "m" | "millisecond" => 1e6,
        "second" | "sec" => 1e9,
        "minute" | "min" => 60e9,
        "hour" | "hr" => 3600e9,
        _ => return None,
    })
}

/// A time as `go tool pprof` prints it: `10ms`, `1.23s`, `0`.
fn time(nanoseconds: f64) -> String {
    const UNITS: [(f64, &str); 5] = [(3600e9, "hrs"), (1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let unit = UNITS.into_iter().find(|(length, _)| nanoseconds.abs() >= *length);
    let Some((length, name)) = unit else { return "0".to_owned() };
    let number = format!("{:.2}", nanoseconds / length);
    format!("{}{name}", number.strip_suffix(".00").unwrap_or(&number))
}

#[cfg(test)]
mod tests {
    use super::{Unit, time};
    use offheap_symbolizer::profile::ValueType;

    #[test]
    fn times_as_go_tool_pprof_prints_them() {
        for (nanoseconds, expected) in [
            (0.0, "0"),
            (17.0, "17ns"),
            (1500.0, "1.50us"),
            (10e6, "10ms"),
            (1.234e9, "1.23s"),
            (90e9, "90s"),
            (5400e9, "1.50hrs"),
            (-20e6, "-20ms"),
        ] {
            assert_eq!(time(nanoseconds), expected);
        }
    }

    #[test]
    fn shares_are_of_what_is_counted() {
        for (kind, unit, expected) in [
            ("inuse_space", "bytes", "bytes"),
            ("alloc_objects", "count", "objects"),
            ("samples", "count", "samples"),
            ("cpu", "nanoseconds", "CPU time"),
            ("delay", "nanoseconds", "time"),
        ] {
            assert_eq!(Unit::of(Some(&ValueType::new(kind, unit))).counted(), expected, "{kind}");
        }
    }

    #[test]
    fn units_by_what_the_profile_says() {
        for (kind, unit, expected) in [
            ("inuse_space", "bytes", "2.00 KiB"),
            ("inuse_objects", "count", "2048 objects"),
            ("samples", "count", "2048 samples"),
            ("contentions", "count", "2048 contentions"),
            ("temperature", "kelvin", "2048 kelvin"),
            ("cpu", "nanoseconds", "2.05us"),
            ("delay", "microseconds", "2.05ms"),
            ("wall", "seconds", "2048s"),
        ] {
            assert_eq!(Unit::of(Some(&ValueType::new(kind, unit))).named(2048), expected, "{kind}");
        }
        assert_eq!(Unit::Bytes.change(2048), "+2.00 KiB");
        assert_eq!(Unit::Objects.change(-3), "-3");
    }
}
