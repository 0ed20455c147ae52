//! Charts over time as SVG: areas on top of each other for what adds up, lines for what does not.

use super::html::escape;
use crate::words::size;
use std::fmt::Write;

const WIDTH: f64 = 1100.0;
const HEIGHT: f64 = 300.0;
/// Room for the labels of the axes.
const LEFT: f64 = 86.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 10.0;
/// Colours that people with and without red-green blindness tell apart, light enough for black text beside them.
const COLOURS: [&str; 12] = [
    "#4e79a7", "#f28e2b", "#76b7b2", "#e15759", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#86bcb6",
    "#d37295", "#a0a0a8",
];

/// Values over time under one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// For the legend.
    pub(crate) name: String,
    /// One a moment; `None` where it was not known.
    pub(crate) values: Vec<Option<f64>>,
}

/// A chart under construction.
#[derive(Clone, Debug)]
pub(crate) struct Chart<'a> {
    /// Unix seconds.
    pub(crate) times: &'a [f64],
    /// In the order of the legend; stacked ones from the bottom.
    pub(crate) lines: &'a [Line],
    /// The values add up to something and are drawn on top of each other.
    pub(crate) stacked: bool,
    /// Values are bytes; else ratios.
    pub(crate) bytes: bool,
}

impl Chart<'_> {
    /// The SVG with its legend; a sentence where there are fewer than two moments.
    pub(crate) fn render(&self) -> String {
        let (Some(&first), Some(&last)) = (self.times.first(), self.times.last()) else { return String::new() };
        if self.times.len() < 2 || last <= first {
            return "<p>One reading: nothing to draw over time.</p>".to_owned();
        }
        let top = self.top();
        let x = |time: f64| LEFT + (time - first) / (last - first) * (WIDTH - LEFT);
        let y = |value: f64| TOP + (1.0 - value / top) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\">\n"
        );
        self.axes(&mut svg, top, last - first);
        if self.stacked {
            self.areas(&mut svg, x, y);
        } else {
            self.polylines(&mut svg, x, y);
        }
        svg.push_str("</svg>\n");
        svg + &self.legend()
    }

    /// Highest value of the axis: a round number above everything drawn.
    fn top(&self) -> f64 {
        let at = |moment: usize| {
            self.lines.iter().map(move |line| line.values.get(moment).copied().flatten().unwrap_or(0.0))
        };
        let moments = 0..self.times.len();
        let highest = if self.stacked {
            moments.map(|moment| at(moment).sum()).fold(0.0, f64::max)
        } else {
            moments.flat_map(at).fold(0.0, f64::max)
        };
        if !self.bytes {
            return highest.max(0.01) * 1.1;
        }
        // Steps of a quarter of a power of two look round in binary units.
        let power = highest.max(4096.0).log2().floor().exp2();
        (highest.max(4096.0) / (power / 4.0)).ceil() * (power / 4.0)
    }

    fn axes(&self, svg: &mut String, top: f64, seconds: f64) {
        // As many decimals as tell neighbouring marks apart.
        let decimals = if top < 0.1 { 3 } else { 2 };
        for step in 0..=4 {
            let value = top * f64::from(step) / 4.0;
            let at = TOP + (1.0 - f64::from(step) / 4.0) * (HEIGHT - TOP - BOTTOM);
            let label = if self.bytes { size::human(value as i128) } else { format!("{value:.decimals$}") };
            // Writing to a String does not fail.
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                at + 4.0
            );
        }
        for step in 0..=5 {
            let share = f64::from(step) / 5.0;
            let at = LEFT + share * (WIDTH - LEFT);
            let anchor = match step {
                0 => "start",
                5 => "end",
                _ => "middle",
            };
            let label = elapsed(seconds * share, seconds);
            let _ =
                writeln!(svg, "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>", HEIGHT - 6.0);
        }
    }

    fn areas(&self, svg: &mut String, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
        let mut below = vec![0.0; self.times.len()];
        for (index, line) in self.lines.iter().enumerate() {
            let above: Vec<f64> = below
                .iter()
                .enumerate()
                .map(|(m, b)| b + line.values.get(m).copied().flatten().unwrap_or(0.0))
                .collect();
            let mut points = String::new();
            for (time, value) in self.times.iter().zip(&above) {
                let _ = write!(points, "{:.1},{:.1} ", x(*time), y(*value));
            }
            for (time, value) in self.times.iter().zip(&below).rev() {
                let _ = write!(points, "{:.1},{:.1} ", x(*time), y(*value));
            }
            let (name, colour) = (escape(&line.name), colour(index));
            let _ = writeln!(
                svg,
                "<polygon points=\"{}\" fill=\"{colour}\"><title>{name}</title></polygon>",
                points.trim_end()
            );
            below = above;
        }
    }

    fn polylines(&self, svg: &mut String, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
        for (index, line) in self.lines.iter().enumerate() {
            let mut points = String::new();
            for (time, value) in self.times.iter().zip(&line.values) {
                if let Some(value) = value {
                    let _ = write!(points, "{:.1},{:.1} ", x(*time), y(*value));
                }
            }
            let (name, colour) = (escape(&line.name), colour(index));
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"><title>{name}</title></polyline>",
                points.trim_end()
            );
        }
    }

    /// Coloured squares with the last value of each line.
    fn legend(&self) -> String {
        let mut legend = String::from("<p class=\"legend\">");
        for (index, line) in self.lines.iter().enumerate() {
            let last = line.values.last().copied().flatten();
            let last = match last {
                Some(value) if self.bytes => size::human(value as i128),
                Some(value) => format!("{value:.3}"),
                None => "n/a".to_owned(),
            };
            let (name, colour) = (escape(&line.name), colour(index));
            let _ = write!(legend, "<span><i style=\"background:{colour}\"></i>{name} {last}</span> ");
        }
        legend + "</p>\n"
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Time since the first reading, as finely as the marks of an axis of this length need it.
fn elapsed(seconds: f64, span: f64) -> String {
    if span < 10.0 && seconds > 0.0 {
        return format!("{seconds:.1} s");
    }
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..7200 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{Chart, Line};

    #[test]
    fn areas_stand_on_each_other_and_end_at_their_sum() {
        let line =
            |name: &str, values: &[f64]| Line { name: name.into(), values: values.iter().map(|v| Some(*v)).collect() };
        let lines = [line("Go & co", &[4096.0, 8192.0]), line("jemalloc", &[4096.0, 8192.0])];
        let chart = Chart { times: &[100.0, 160.0], lines: &lines, stacked: true, bytes: true };
        let svg = chart.render();
        // 16 KiB is the top of the axis, at the upper edge of the plot.
        assert!(svg.contains(">16.0 KiB</text>"), "{svg}");
        assert!(svg.contains("1100.0,10.0 1100.0,142.0"), "{svg}");
        assert!(svg.contains("<title>Go &amp; co</title>") && svg.contains("jemalloc 8.00 KiB"), "{svg}");
        assert!(svg.contains(">1:00 min</text>"), "{svg}");
    }

    #[test]
    fn one_moment_is_no_chart_and_gaps_are_left_out() {
        let lines = [Line { name: "index".into(), values: vec![Some(0.5), None, Some(0.25)] }];
        let chart = Chart { times: &[1.0, 2.0, 3.0], lines: &lines, stacked: false, bytes: false };
        let svg = chart.render();
        assert_eq!(svg.matches("<polyline").count(), 1);
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!(points.split(' ').count(), 2, "{points}");
        assert!(Chart { times: &[1.0], ..chart.clone() }.render().contains("One reading"));
        assert_eq!(Chart { times: &[], ..chart }.render(), "");
    }

    #[test]
    fn marks_of_an_axis_differ() {
        let marks = |span: f64, highest: f64| {
            let lines = [Line { name: "index".into(), values: vec![Some(0.0), Some(highest)] }];
            let svg = Chart { times: &[0.0, span], lines: &lines, stacked: false, bytes: false }.render();
            let labels = svg.split("</text>").filter_map(|part| part.rsplit('>').next().map(str::to_owned));
            labels.filter(|label| !label.trim().is_empty()).collect::<Vec<_>>()
        };
        for (span, highest) in [(0.9, 0.01), (3.0, 0.04), (9.0, 0.3), (11.0, 0.9), (59.0, 0.5), (7300.0, 0.5)] {
            let all = marks(span, highest);
            let distinct: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!((all.len(), distinct.len()), (11, 11), "{span} s, {highest}: {all:?}");
        }
    }
}
