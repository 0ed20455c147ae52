//! Durations as people write and read them.

use std::time::Duration;

/// Read a duration: numbers with the units `ms`, `s`, `m`, `h`, `d`, one after the other (`1h30m`); a bare number is
/// seconds.
///
/// # Errors
/// When the text is no duration; the message says what one looks like.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write for example 30s, 5m, 1h30m");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let seconds = match unit.trim() {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            // Only alone: in `1h30` the 30 could be minutes or seconds.
            "" if total.is_zero() => 1.0,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    Ok(total)
}

/// A duration for people, in its two largest units: `2 h 5 min`, `35 s`, `250 ms`.
#[must_use]
pub(crate) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds == 0 && !duration.is_zero() {
        return format!("{} ms", duration.as_millis());
    }
    let units = [(86400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(length, _)| seconds >= *length).unwrap_or(units.len() - 1);
    let mut left = seconds;
    let mut parts = Vec::new();
    for (length, unit) in units.iter().skip(first).take(2) {
        if left / length > 0 || parts.is_empty() {
            parts.push(format!("{} {unit}", left / length));
        }
        left %= length;
    }
    parts.join(" ")
}

/// A moment, as RFC 3339 in UTC: `2026-11-30T16:20:05Z`.
///
/// Days are counted in eras of 400 years (146,097 days), which begin in March so that the leap day is the last one.
#[must_use]
pub(crate) fn moment(unix_seconds: f64) -> String {
    if !(0.0..2.5e11).contains(&unix_seconds) {
        return "unknown".to_owned();
    }
    let seconds = unix_seconds as i64;
    let day = seconds.div_euclid(86400) + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let clock = seconds.rem_euclid(86400);
    format!("{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z", clock / 3600, clock / 60 % 60, clock % 60)
}

#[cfg(test)]
mod tests {
    use super::{human, moment, parse};
    use std::time::Duration;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, milliseconds) in [
            ("0", 0),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1500),
            ("250ms", 250),
            ("7", 7000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "5 parsecs", "-1s", "1h30", "1e999s", "99999999999999999999d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_printed_in_two_units() {
        for (milliseconds, expected) in [
            (0, "0 s"),
            (250, "250 ms"),
            (35_000, "35 s"),
            (7_500_000, "2 h 5 min"),
            (3_600_000, "1 h"),
            (90_061_000, "1 d 1 h"),
        ] {
            assert_eq!(human(Duration::from_millis(milliseconds)), expected);
        }
    }

    #[test]
    fn moments_are_dates_in_utc() {
        for (seconds, expected) in [
            (0.0, "1970-01-01T00:00:00Z"),
            (951_782_399.0, "2000-02-28T23:59:59Z"),
            (951_782_400.9, "2000-02-29T00:00:00Z"),
            (4_107_542_400.0, "2100-03-01T00:00:00Z"),
            (-1.0, "unknown"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(moment(seconds), expected);
        }
    }
}
