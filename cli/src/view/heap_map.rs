//! The heap map as a picture: one cell a slab, colour by occupancy, grouped by size class.

use crate::analysis::occupancy::{ClassOccupancy, Occupancy, STEPS, step};
use crate::words::size::human;
use offheap_wire::HeapMap;
use std::fmt::Write;

/// Nearly empty to full: a scale that people with colour-blindness can read too, dark where slabs are full.
const COLOURS: [&str; STEPS] =
    ["#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#f7e8df", "#e3eef5", "#c6dcec", "#92c5de", "#4393c3", "#2166ac"];
const WIDTH: usize = 960;
const MARGIN: usize = 16;
/// Side of a cell with its gap, and without.
const PITCH: usize = 5;
const CELL: usize = 4;
/// Cells of one class that are drawn; beyond that a picture says no more and browsers choke.
const CELLS_MAX: usize = 60_000;
const STYLE: &str =
    "text{font:12px sans-serif;fill:#222}.h{font-size:18px;font-weight:bold}.c{font-weight:bold}.s{fill:#666}";

/// Draw a map. `title` says whose it is.
pub(crate) fn render(map: &HeapMap, sum: &Occupancy, title: &str) -> String {
    let mut body = String::new();
    let mut y = MARGIN + 18;
    let _ = writeln!(body, "<text class=\"h\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escape(title));
    y += 20;
    let _ = writeln!(body, "<text class=\"s\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escape(&subtitle(sum)));
    y += 12;
    legend(&mut body, y);
    y += 44;
    for class in &sum.classes {
        y = draw_class(&mut body, map, class, y);
    }
    if sum.classes.is_empty() {
        let _ = writeln!(
            body,
            "<text x=\"{MARGIN}\" y=\"{y}\">no slabs: nothing was allocated in small size classes</text>"
        );
        y += 16;
    }
    let height = y + MARGIN;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

fn subtitle(sum: &Occupancy) -> String {
    let cut = if sum.truncated { " (the scan reached its bound: there are more)" } else { "" };
    format!(
        "{} slabs{cut}, {} in free regions; one cell a slab, in the order of addresses",
        sum.slabs,
        human(sum.waste.into())
    )
}

fn legend(body: &mut String, y: usize) {
    let swatch = 34;
    for (index, colour) in COLOURS.iter().enumerate() {
        let x = MARGIN + index * swatch;
        let _ = writeln!(body, "<rect x=\"{x}\" y=\"{y}\" width=\"{swatch}\" height=\"10\" fill=\"{colour}\"/>");
    }
    let (below, end) = (y + 24, MARGIN + STEPS * swatch);
    let _ = writeln!(body, "<text class=\"s\" x=\"{MARGIN}\" y=\"{below}\">nearly empty</text>");
    let _ = writeln!(body, "<text class=\"s\" x=\"{end}\" y=\"{below}\" text-anchor=\"end\">full</text>");
}

/// A heading and the cells; the place below.
fn draw_class(body: &mut String, map: &HeapMap, class: &ClassOccupancy, y: usize) -> usize {
    let Some(slabs) = map.classes.iter().find(|slabs| slabs.size == class.size) else { return y };
    let _ = writeln!(
        body,
        "<text class=\"c\" x=\"{MARGIN}\" y=\"{y}\">{} B<tspan class=\"s\" font-weight=\"normal\">  {} slabs of {}, {:.1} % used, {} free</tspan></text>",
        class.size,
        class.slabs,
        human(slabs.slab_size.into()),
        class.utilization * 100.0,
        human(class.waste.into()),
    );
    let columns = (WIDTH - 2 * MARGIN) / PITCH;
    let top = y + 6;
    // A path for each colour: a tenth of the size of a rectangle for each cell.
    let mut paths: [String; STEPS] = Default::default();
    let drawn = slabs.slabs.len().min(CELLS_MAX);
    for (index, &(_, free)) in slabs.slabs.iter().take(drawn).enumerate() {
        let (x, y) = (MARGIN + index % columns * PITCH, top + index / columns * PITCH);
        let _ = write!(paths[step(free, slabs.nregs)], "M{x} {y}h{CELL}v{CELL}h-{CELL}z");
    }
    for (path, colour) in paths.iter().zip(COLOURS).filter(|(path, _)| !path.is_empty()) {
        let _ = writeln!(body, "<path fill=\"{colour}\" d=\"{path}\"/>");
    }
    let mut below = top + drawn.div_ceil(columns) * PITCH + 22;
    if drawn < slabs.slabs.len() {
        let _ = writeln!(
            body,
            "<text class=\"s\" x=\"{MARGIN}\" y=\"{}\">and {} more slabs of this class</text>",
            below - 8,
            slabs.slabs.len() - drawn
        );
        below += 16;
    }
    below
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::analysis::occupancy::occupancy;
    use offheap_wire::{HeapMap, SlabClass};

    #[test]
    fn every_slab_is_a_cell() {
        let slabs: Vec<(u64, u64)> = (0..1000).map(|index| (index * 28672, index % 65)).collect();
        let map = HeapMap {
            classes: vec![SlabClass { size: 448, nregs: 64, slab_size: 28672, slabs }],
            ..HeapMap::default()
        };
        let svg = render(&map, &occupancy(&map), "a <b> & \"c\"\u{1b}");
        assert_eq!(svg.matches("h4v4h-4z").count(), 1000);
        assert_eq!(svg.matches("<path").count(), 10);
        assert!(svg.contains("a &lt;b&gt; &amp; &quot;c&quot;\u{fffd}"), "{svg}");
        assert!(svg.contains("448 B") && svg.contains("1000 slabs"), "{svg}");
    }

    #[test]
    fn an_empty_map_is_a_small_picture_that_says_so() {
        let map = HeapMap::default();
        let svg = render(&map, &occupancy(&map), "nothing");
        assert!(svg.contains("no slabs") && svg.ends_with("</svg>\n") && svg.len() < 3000, "{svg}");
    }
}
