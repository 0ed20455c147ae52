//! Sizes as people write and read them.

/// A size for people, with a binary unit that people pronounce in decimal spelling: `1.5 GiB`, `512 KiB`, `17 B`.
#[must_use]
pub(crate) fn human(bytes: i128) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let magnitude = bytes.unsigned_abs();
    let sign = if bytes < 0 { "-" } else { "" };
    if magnitude < 1024 {
        return format!("{sign}{magnitude} B");
    }
    let mut value = magnitude as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if value < 9.995 { 2 } else { 1 };
    format!("{sign}{value:.decimals$} {}", UNITS[unit])
}

/// Read a size: a number with an optional fraction and an optional unit. `k`, `kB`, `KB` are 1000; `KiB`, `Ki` are
/// 1024; a bare number is bytes.
///
/// # Errors
/// When the text is no size; the message says what a size looks like.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let wrong = || format!("`{text}` is not a size; write for example 1500000, 512KiB, 1.5GB");
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let scale: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "ki" | "kib" => 1024.0,
        "mi" | "mib" => 1048576.0,
        "gi" | "gib" => 1073741824.0,
        "ti" | "tib" => 1099511627776.0,
        _ => return Err(wrong()),
    };
    let bytes = number * scale;
    if bytes >= 9.2e18 {
        return Err(format!("`{text}` is larger than any memory"));
    }
    Ok(bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{human, parse};

    #[test]
    fn sizes_are_printed_with_a_binary_unit() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10 * 1024, "10.0 KiB"),
            (171_054_080, "163.1 MiB"),
            (-2_147_483_648, "-2.00 GiB"),
        ] {
            assert_eq!(human(bytes), expected);
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in
            [("0", 0), ("17", 17), ("1.5GB", 1_500_000_000), ("512KiB", 524_288), ("512 k", 512_000), ("2Gi", 2 << 30)]
        {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["", "GB", "1.2.3", "12 parsecs", "-5", "1e30TB", "99999999TB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
