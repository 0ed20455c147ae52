//! Values of a profile, for people.

use crate::words::size;
use offheap_symbolizer::profile::ValueType;

/// What a value counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes, printed as sizes.
    Bytes,
    /// Allocations.
    Objects,
    /// Anything else, by the name that the profile gives it.
    Other(String),
}

impl Unit {
    /// The unit of a value type; bytes when there is none.
    pub(crate) fn of(value: Option<&ValueType>) -> Self {
        match value.map(|value| (&*value.unit, &*value.kind)) {
            None | Some(("bytes", _)) => Self::Bytes,
            Some(("count", kind)) if kind.ends_with("objects") => Self::Objects,
            Some((unit, _)) => Self::Other(unit.to_owned()),
        }
    }

    /// A value for people, without the name of its unit where it is a count.
    pub(crate) fn amount(&self, value: i128) -> String {
        match self {
            Self::Bytes => size::human(value),
            Self::Objects | Self::Other(_) => value.to_string(),
        }
    }

    /// A value for people with the name of its unit.
    pub(crate) fn named(&self, value: i128) -> String {
        match self {
            Self::Bytes => size::human(value),
            Self::Objects => format!("{value} objects"),
            Self::Other(unit) => format!("{value} {unit}"),
        }
    }

    /// A change, with its sign.
    pub(crate) fn change(&self, value: i128) -> String {
        let sign = if value > 0 { "+" } else { "" };
        format!("{sign}{}", self.amount(value))
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;
    use offheap_symbolizer::profile::ValueType;

    #[test]
    fn units_by_what_the_profile_says() {
        for (kind, unit, expected) in [
            ("inuse_space", "bytes", "2.00 KiB"),
            ("inuse_objects", "count", "2048 objects"),
            ("samples", "count", "2048 count"),
            ("cpu", "nanoseconds", "2048 nanoseconds"),
        ] {
            assert_eq!(Unit::of(Some(&ValueType::new(kind, unit))).named(2048), expected, "{kind}");
        }
        assert_eq!(Unit::Bytes.change(2048), "+2.00 KiB");
        assert_eq!(Unit::Objects.change(-3), "-3");
    }
}
