//! The tree as SVG, drawn by `inferno`.
//!
//! `inferno` takes folded lines and knows a frame by its name alone. To give each *node* its own colour and a title
//! with a size that people can read, each name goes in with the number of its node appended as two private-use
//! characters; the finished document then has its titles rewritten and the marks taken out:
//!
//! ```text
//! in    <title>main.serve·· (12,345,678 ·, 40.00%)</title>
//! out   <title>main.serve (11.8 MiB, 40.00%)</title>
//! ```
//!
//! The marks also keep hostile names harmless: a line never starts with `# `, never ends in a number that belongs to a
//! name, and `;` inside a name travels as a private-use character.

use super::colour::{self, Kind};
use super::tree::{Node, Tree};
use crate::view::value::Unit;
use crate::words::text::shorten_middle;
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Options, TextTruncateDirection};
use std::fmt::Write;

/// Nodes narrower than this share of the whole are not drawn: at 1200 pixels this is a quarter of a pixel.
const NARROWEST: f64 = 0.0002;
/// Characters of a name that fit into the widest frame; the title keeps more of it.
const LONGEST_LABEL: usize = 170;
/// Characters of a name in a title: C++ template names can have thousands.
const LONGEST_TITLE: usize = 400;
/// Private-use characters: first digit of a node number (two digits of base `DIGITS`), padding, semicolon, unit, legend.
const DIGIT: u32 = 0xe000;
const DIGITS: usize = 6000;
const PAD: char = '\u{f8f0}';
const SEMICOLON: char = '\u{f8f1}';
const UNIT: &str = "\u{f8f2}";
const LEGEND: &str = "\u{f8f3}";

/// What stands around the graph.
#[derive(Debug)]
pub(crate) struct Picture<'a> {
    /// First line: what is shown and its total.
    pub(crate) title: &'a str,
    /// What the values count.
    pub(crate) unit: &'a Unit,
    /// Colours show the change against the base values.
    pub(crate) differential: bool,
}

/// Draw the tree.
///
/// # Errors
/// When the drawing library refuses, which it does for a tree without values: ask [`Tree::total`] first.
pub(crate) fn render(tree: &Tree, picture: &Picture<'_>) -> anyhow::Result<Vec<u8>> {
    let drawn = Drawn::new(tree);
    let mut palette = drawn.palette(picture);
    let lines = drawn.lines();
    let mut options = Options::default();
    options.title = clean(picture.title, LONGEST_TITLE);
    options.subtitle = Some(LEGEND.into());
    options.count_name = UNIT.into();
    options.name_type = String::new();
    options.bgcolors = Some(BackgroundColor::Flat(Color { r: 252, g: 252, b: 250 }));
    options.palette_map = Some(&mut palette);
    options.frame_height = 18;
    options.min_width = 0.0;
    options.text_truncate_direction = TextTruncateDirection::Right;
    // The lines come in the order of the tree. The other modes want them sorted as text, in which `f(int)` stands
    // between `f` and `f;g` and would cut the frame `f` in two.
    options.flame_chart = true;
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut options, lines.iter().rev().map(String::as_str), &mut svg)?;
    // A label of a tenth of the ink is one that nobody finds.
    let svg = String::from_utf8(svg)?.replacen("opacity:0.1;", "opacity:0.75;", 1);
    Ok(drawn.finish(&svg, picture).into_bytes())
}

/// A small picture for a graph with nothing in it.
pub(crate) fn empty(title: &str, reason: &str) -> Vec<u8> {
    let (title, reason) = (escape(&clean(title, LONGEST_TITLE)), escape(&clean(reason, LONGEST_TITLE)));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg version=\"1.1\" width=\"1200\" height=\"90\" viewBox=\"0 0 1200 90\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"monospace\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fcfcfa\"/>\n\
         <text x=\"50%\" y=\"32\" font-size=\"17\" text-anchor=\"middle\">{title}</text>\n\
         <text x=\"50%\" y=\"62\" font-size=\"12\" text-anchor=\"middle\">Nothing to draw: {reason}</text>\n\
         </svg>\n"
    )
    .into_bytes()
}

/// The part of the tree that is wide enough, in the order it is drawn.
struct Drawn<'a> {
    tree: &'a Tree,
    /// Nodes in depth-first order with their depth, and their own value with that of children left out.
    order: Vec<(u32, usize, u64)>,
}

impl<'a> Drawn<'a> {
    fn new(tree: &'a Tree) -> Self {
        let least = (tree.total() as f64 * NARROWEST).max(1.0) as u64;
        let mut children = tree.children();
        let mut order = Vec::new();
        let mut pending = vec![(0_u32, 0_usize)];
        while let Some((index, depth)) = pending.pop() {
            let below = &mut children[index as usize];
            below.retain(|&child| tree.nodes[child as usize].value >= least);
            // Widest first, from the left; the name breaks ties so that the picture is reproducible.
            below.sort_by(|&a, &b| {
                let (a, b) = (&tree.nodes[a as usize], &tree.nodes[b as usize]);
                b.value.cmp(&a.value).then_with(|| tree.name(a).cmp(tree.name(b)))
            });
            let shown: u64 = below.iter().map(|&child| tree.nodes[child as usize].value).sum();
            order.push((index, depth, tree.nodes[index as usize].value.saturating_sub(shown)));
            pending.extend(below.iter().rev().map(|&child| (child, depth + 1)));
        }
        Self { tree, order }
    }

    /// One folded line for each node with a value of its own, in drawing order.
    fn lines(&self) -> Vec<String> {
        let mut path: Vec<u32> = Vec::new();
        let mut lines = Vec::new();
        for &(index, depth, own) in &self.order {
            path.truncate(depth.saturating_sub(1));
            if index != 0 {
                path.push(index);
            }
            // The root's own value is that of empty stacks; it widens the root and has no frame.
            if own > 0 {
                let names: Vec<String> = path.iter().map(|&node| self.marked(node)).collect();
                let stack = if names.is_empty() { PAD.to_string() } else { names.join(";") };
                lines.push(format!("{stack} {own}"));
            }
        }
        lines
    }

    /// The name that `inferno` gets: padding, the label, the node's number.
    fn marked(&self, index: u32) -> String {
        let label = clean(self.tree.name(&self.tree.nodes[index as usize]), LONGEST_LABEL);
        let label = label.replace(';', &SEMICOLON.to_string());
        let digit = |value: usize| char::from_u32(DIGIT + value as u32).unwrap_or(PAD);
        let number = index as usize;
        format!("{PAD}{label}{}{}", digit(number / DIGITS % DIGITS), digit(number % DIGITS))
    }

    fn palette(&self, picture: &Picture<'_>) -> PaletteMap {
        let change = |node: &Node| node.value as f64 - node.base as f64;
        let largest = self.order.iter().map(|&(i, ..)| change(&self.tree.nodes[i as usize]).abs()).fold(1.0, f64::max);
        let mut palette = PaletteMap::default();
        palette.insert("", colour::ROOT);
        palette.insert(PAD, Kind::Elided.colour(""));
        for &(index, ..) in &self.order[1..] {
            let node = &self.tree.nodes[index as usize];
            let colour = if picture.differential {
                colour::of_change(change(node) / largest)
            } else {
                node.kind.colour(self.tree.name(node))
            };
            palette.insert(self.marked(index), colour);
        }
        palette
    }

    /// Rewrite the titles, put in the legend, take out the marks.
    fn finish(&self, svg: &str, picture: &Picture<'_>) -> String {
        let mut out = String::with_capacity(svg.len());
        let mut rest = svg;
        while let Some(start) = rest.find("<title>") {
            let (before, after) = rest.split_at(start + "<title>".len());
            self.unmark(before, picture, &mut out);
            let end = after.find("</title>").unwrap_or(after.len());
            out.push_str(&escape(&self.title(&after[..end], picture)));
            rest = &after[end..];
        }
        self.unmark(rest, picture, &mut out);
        out
    }

    fn title(&self, drawn: &str, picture: &Picture<'_>) -> String {
        let digits: Vec<usize> = drawn
            .chars()
            .filter_map(|c| (c as u32).checked_sub(DIGIT).map(|digit| digit as usize).filter(|&digit| digit < DIGITS))
            .collect();
        let node = match digits[..] {
            [high, low] => &self.tree.nodes[high * DIGITS + low],
            _ if drawn.contains(PAD) => return self.empty_stacks(picture),
            _ => &self.tree.nodes[0],
        };
        let name = match self.tree.name(node) {
            "" => "all".to_owned(),
            name => clean(name, LONGEST_TITLE),
        };
        let mut title = format!("{name} ({}, {}", picture.unit.named(node.value.into()), self.share(node.value));
        if picture.differential {
            let change = i128::from(node.value) - i128::from(node.base);
            let _ = write!(title, "; {} against the base", picture.unit.change(change));
        }
        title.push(')');
        title
    }

    fn empty_stacks(&self, picture: &Picture<'_>) -> String {
        let own = self.order[0].2;
        format!("[no stack] ({}, {})", picture.unit.named(own.into()), self.share(own))
    }

    fn share(&self, value: u64) -> String {
        format!("{:.2}%", 100.0 * value as f64 / self.tree.total().max(1) as f64)
    }

    fn unmark(&self, text: &str, picture: &Picture<'_>, out: &mut String) {
        for c in text.chars() {
            match c {
                SEMICOLON => out.push(';'),
                c if LEGEND.starts_with(c) => out.push_str(&self.legend(picture)),
                '\u{e000}'..='\u{f8ff}' => {}
                c => out.push(c),
            }
        }
    }

    /// Coloured squares with what they mean, as `tspan` elements inside the subtitle's text.
    fn legend(&self, picture: &Picture<'_>) -> String {
        let mut legend = String::new();
        let mut entry = |c: Color, text: &str| {
            // No-break spaces keep entries apart: ordinary ones are folded into one.
            let _ = write!(
                legend,
                "<tspan fill=\"rgb({},{},{})\" stroke=\"#777\" stroke-width=\"0.5\" font-size=\"16\">&#9632;</tspan> \
                 {text}&#160;&#160; ",
                c.r, c.g, c.b
            );
        };
        if picture.differential {
            entry(colour::of_change(1.0), "grew");
            entry(colour::of_change(-1.0), "shrank");
            entry(colour::of_change(0.0), "as in the base");
        } else {
            for (kind, text) in Kind::LEGEND {
                if self.tree.has(kind) {
                    entry(kind.legend_colour(), text);
                }
            }
        }
        legend
    }
}

/// A name without what XML 1.0 cannot hold and without our own marks, of bounded length.
fn clean(name: &str, longest: usize) -> String {
    let shown: String = name
        .chars()
        .map(|c| match c {
            '\t' | '\n' | '\r' => ' ',
            '\u{e000}'..='\u{f8ff}' | '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect();
    shorten_middle(&shown, longest).into_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{Kind, Picture, Tree, Unit, empty, render};

    const PICTURE: Picture<'_> = Picture { title: "inuse_space", unit: &Unit::Bytes, differential: false };

    fn titles(svg: &[u8]) -> Vec<String> {
        let svg = std::str::from_utf8(svg).unwrap();
        svg.split("<title>").skip(1).map(|part| part.split("</title>").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn titles_have_sizes_for_people() {
        let mut tree = Tree::default();
        tree.add(&[("malloc", Kind::Native), ("main.serve", Kind::Go)], 3 << 20, 0);
        tree.add(&[("main.serve", Kind::Go)], 1 << 20, 0);
        let svg = render(&tree, &PICTURE).unwrap();
        let mut titles = titles(&svg);
        titles.sort();
        assert_eq!(titles, ["all (4.00 MiB, 100.00%)", "main.serve (4.00 MiB, 100.00%)", "malloc (3.00 MiB, 75.00%)"]);
    }

    #[test]
    fn hostile_names_stay_text() {
        let names = [
            "operator<< <int>(std::ostream&, int)",
            "\"quoted\" & <tag>; 7",
            "# comment",
            "a\x1b[31mb\0c\u{ffff}",
            "\u{e001}\u{e002}\u{f8f3}",
            "]]></title><script>alert(1)</script>",
            "f 12 34",
            "g_[k]",
        ];
        let mut tree = Tree::default();
        for name in names {
            tree.add(&[(name, Kind::Native)], 10, 0);
        }
        let svg = render(&tree, &PICTURE).unwrap();
        let titles = titles(&svg);
        assert_eq!(titles.len(), names.len() + 1, "{titles:#?}");
        for expected in
            ["&lt;int&gt;", "&quot;quoted&quot; &amp; &lt;tag&gt;; 7 (", "# comment (", "f 12 34 (", "g_[k] ("]
        {
            assert!(titles.iter().any(|title| title.contains(expected)), "{expected} in {titles:#?}");
        }
        let text = String::from_utf8(svg).unwrap();
        assert!(text.chars().all(|c| c == '\n'
            || c == '\r'
            || c == '\t'
            || (!c.is_control() && !('\u{e000}'..='\u{f8ff}').contains(&c))));
        assert!(!text.contains("<script>alert"));
    }

    /// Sorted as text, `f(int)` would stand between `f` and `f;g`.
    #[test]
    fn a_frame_is_drawn_once() {
        let mut tree = Tree::default();
        for (stack, value) in [(&["f"][..], 5), (&["f(int)"], 6), (&["g", "f"], 7), (&["h", "f"], 8)] {
            let frames: Vec<_> = stack.iter().map(|name| (*name, Kind::Native)).collect();
            tree.add(&frames, value, 0);
        }
        let svg = render(&tree, &PICTURE).unwrap();
        assert_eq!(titles(&svg).iter().filter(|title| title.starts_with("f (")).count(), 1);
    }

    #[test]
    fn a_differential_graph_shows_the_change_of_whole_subtrees() {
        let mut tree = Tree::default();
        tree.add(&[("malloc", Kind::Native), ("main.leak", Kind::Go)], 3 << 20, 1 << 20);
        tree.add(&[("malloc", Kind::Native), ("main.calm", Kind::Go)], 1 << 20, 2 << 20);
        let svg = render(&tree, &Picture { differential: true, ..PICTURE }).unwrap();
        let titles = titles(&svg);
        assert!(titles.contains(&"main.leak (3.00 MiB, 75.00%; +2.00 MiB against the base)".to_owned()), "{titles:#?}");
        assert!(titles.contains(&"main.calm (1.00 MiB, 25.00%; -1.00 MiB against the base)".to_owned()), "{titles:#?}");
    }

    #[test]
    fn the_search_label_can_be_read() {
        let mut tree = Tree::default();
        tree.add(&[("main", Kind::Go)], 30, 0);
        let svg = String::from_utf8(render(&tree, &PICTURE).unwrap()).unwrap();
        let style = svg.split("#search {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
        let opacity = style.split("opacity:").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
        assert!(opacity.trim().parse::<f64>().unwrap() >= 0.7, "{style}");
    }

    #[test]
    fn empty_stacks_have_a_frame_of_their_own() {
        let mut tree = Tree::default();
        tree.add(&[("main", Kind::Go)], 30, 0);
        tree.add::<&str>(&[], 70, 0);
        assert!(titles(&render(&tree, &PICTURE).unwrap()).contains(&"[no stack] (70 B, 70.00%)".to_owned()));
    }

    #[test]
    fn nothing_is_a_small_picture() {
        let svg = String::from_utf8(empty("a & b", "profiling was off")).unwrap();
        assert!(svg.starts_with("<?xml") && svg.contains("a &amp; b") && svg.contains("profiling was off"));
    }
}
