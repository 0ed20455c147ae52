//! Colours of frames.
//!
//! Text on them is black, so all of them are light. Hue says what kind of code a frame is; a shade drawn from the name
//! keeps neighbours apart.

use inferno::flamegraph::color::Color;

/// Kind of code of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A Go function of the program or of a library.
    Go,
    /// The Go runtime, and the bridge into C.
    GoRuntime,
    /// C, C++, Rust: anything else with a name.
    Native,
    /// No name was found.
    Unknown,
    /// Drawn by us in place of frames that are left out.
    Elided,
}

/// The root.
pub(super) const ROOT: Color = Color { r: 225, g: 225, b: 220 };

impl Kind {
    /// Kinds that the legend explains, with what it says.
    pub(super) const LEGEND: [(Self, &'static str); 4] = [
        (Self::Go, "Go"),
        (Self::GoRuntime, "Go runtime and cgo bridge"),
        (Self::Native, "C, C++ and other native code"),
        (Self::Unknown, "no name"),
    ];

    /// Colour of a frame of this kind.
    pub(super) fn colour(self, name: &str) -> Color {
        let (base, spread): ([u8; 3], [i16; 3]) = match self {
            Self::Go => ([86, 190, 222], [42, 26, 22]),
            Self::GoRuntime => ([186, 220, 232], [22, 14, 12]),
            Self::Native => ([246, 158, 74], [8, 50, 46]),
            Self::Unknown => ([178, 176, 180], [20, 20, 20]),
            Self::Elided => return Color { r: 240, g: 240, b: 240 },
        };
        let shade = i16::from(hash(name));
        let mix = |channel: usize| {
            let moved = i16::from(base[channel]) + spread[channel] * shade / 255;
            u8::try_from(moved.clamp(0, 255)).unwrap_or(u8::MAX)
        };
        Color { r: mix(0), g: mix(1), b: mix(2) }
    }

    /// Colour of the square in the legend: the middle shade.
    pub(super) fn legend_colour(self) -> Color {
        self.colour("legend")
    }
}

/// Colour of a change: red grew, blue shrank, near white stayed; `share` is the change over the largest change, −1 to 1.
pub(super) fn of_change(share: f64) -> Color {
    // The square root keeps a change of a few percent visible beside a huge one.
    let strength = share.abs().min(1.0).sqrt();
    let faded = |full: f64| (248.0 - (248.0 - full) * strength).round() as u8;
    if share >= 0.0 {
        Color { r: faded(240.0), g: faded(92.0), b: faded(80.0) }
    } else {
        Color { r: faded(92.0), g: faded(140.0), b: faded(236.0) }
    }
}

/// FNV-1a, folded to a byte: the same name has the same shade in every picture.
fn hash(name: &str) -> u8 {
    let full = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    full.to_le_bytes().iter().fold(0, |folded, byte| folded ^ byte)
}

#[cfg(test)]
mod tests {
    use super::{Kind, of_change};

    /// WCAG relative luminance.
    fn luminance(c: inferno::flamegraph::color::Color) -> f64 {
        let linear = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.03928 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b)
    }

    #[test]
    fn black_text_is_readable_on_every_colour() {
        let kinds = [Kind::Go, Kind::GoRuntime, Kind::Native, Kind::Unknown, Kind::Elided];
        let names = (0..500).map(|n| format!("function{n}"));
        let colours = names
            .flat_map(|name| kinds.map(|kind| kind.colour(&name)))
            .chain((-10..=10).map(|tenth| of_change(f64::from(tenth) / 10.0)));
        for colour in colours {
            // 4.5:1 is the AA contrast for text; ours must be better than that.
            assert!((luminance(colour) + 0.05) / 0.05 > 5.5, "{colour:?}");
        }
    }

    #[test]
    fn kinds_keep_apart_whatever_the_name() {
        let distance = |a: inferno::flamegraph::color::Color, b: inferno::flamegraph::color::Color| {
            [(a.r, b.r), (a.g, b.g), (a.b, b.b)].iter().map(|(x, y)| i32::from(x.abs_diff(*y)).pow(2)).sum::<i32>()
        };
        let kinds = [Kind::Go, Kind::GoRuntime, Kind::Native, Kind::Unknown];
        for n in 0..50 {
            for m in 0..50 {
                for (index, first) in kinds.iter().enumerate() {
                    for second in &kinds[index + 1..] {
                        let (a, b) = (first.colour(&format!("f{n}")), second.colour(&format!("g{m}")));
                        assert!(distance(a, b) > 30 * 30, "{first:?} {a:?} and {second:?} {b:?}");
                    }
                }
            }
        }
    }
}
