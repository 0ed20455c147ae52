//! The frame of the page and its parts.

use std::fmt::Write;

const STYLE: &str = "\
:root { color-scheme: light }\n\
body { font: 14px/1.45 system-ui, sans-serif; color: #1c1c1e; background: #fcfcfa; max-width: 1180px; margin: 24px auto; padding: 0 20px }\n\
h1 { font-size: 22px; margin: 0 0 4px } h2 { font-size: 17px; margin: 34px 0 8px }\n\
p { margin: 6px 0 } .facts { color: #555 }\n\
table { border-collapse: collapse; font-variant-numeric: tabular-nums }\n\
th { text-align: left; font-weight: 600; border-bottom: 1px solid #bbb } th, td { padding: 3px 14px 3px 0; vertical-align: top }\n\
td.n, th.n { text-align: right; white-space: nowrap } td.name { font-family: ui-monospace, monospace; font-size: 13px; overflow-wrap: anywhere }\n\
tr:nth-child(even) td { background: #f3f3ef }\n\
.bar { display: inline-block; height: 10px; background: #4e79a7; vertical-align: middle }\n\
.chart { width: 100%; height: auto } .chart text { font: 11px system-ui, sans-serif; fill: #555 } .grid { stroke: #e2e2dc }\n\
.legend span { margin-right: 16px; white-space: nowrap } .legend i { display: inline-block; width: 10px; height: 10px; margin-right: 5px }\n\
object { width: 100%; border: 1px solid #ddd }\n";

/// A page under construction.
#[derive(Debug)]
pub(crate) struct Page {
    body: String,
    title: String,
}

/// Rows of a table: a number column is right-aligned, the last column holds names.
pub(crate) type Rows = Vec<Vec<String>>;

impl Page {
    /// A page with its heading and the facts below it.
    pub(crate) fn new(title: &str, facts: &[String]) -> Self {
        let mut body = format!("<h1>{}</h1>\n", escape(title));
        for fact in facts {
            // Writing to a String does not fail.
            let _ = writeln!(body, "<p class=\"facts\">{}</p>", escape(fact));
        }
        Self { body, title: title.to_owned() }
    }

    /// Start a section.
    pub(crate) fn section(&mut self, heading: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(heading));
    }

    /// A sentence.
    pub(crate) fn text(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// Markup that was made here: a chart.
    pub(crate) fn markup(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    /// A table; all columns but the last are numbers.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &Rows) {
        let class = |index: usize| if index + 1 < headings.len() { "n" } else { "name" };
        self.body.push_str("<table><tr>");
        for (index, heading) in headings.iter().enumerate() {
            let class = if class(index) == "n" { " class=\"n\"" } else { "" };
            let _ = write!(self.body, "<th{class}>{}</th>", escape(heading));
        }
        self.body.push_str("</tr>\n");
        for row in rows {
            self.body.push_str("<tr>");
            for (index, cell) in row.iter().enumerate() {
                let _ = write!(self.body, "<td class=\"{}\">{}</td>", class(index), escape(cell));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</table>\n");
    }

    /// An interactive SVG, inside a document of its own so that its script and identifiers stay there.
    pub(crate) fn picture(&mut self, svg: &[u8], height: u32) {
        let _ = writeln!(
            self.body,
            "<object type=\"image/svg+xml\" height=\"{height}\" data=\"data:image/svg+xml;base64,{}\"></object>",
            base64(svg)
        );
    }

    /// The whole document.
    pub(crate) fn finish(self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n<style>\n{STYLE}</style>\
             </head>\n<body>\n{}</body></html>\n",
            escape(&self.title),
            self.body
        )
    }
}

/// Text as HTML and XML have it; control characters, which neither can hold, become a mark.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() && c != '\n' => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

/// RFC 4648 with padding. A data URL is the one place that needs it.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().chain([&0, &0]).take(3).fold(0_u32, |group, &byte| (group << 8) | u32::from(byte));
        for digit in 0..4 {
            if digit <= chunk.len() {
                text.push(char::from(DIGITS[(group >> (18 - 6 * digit)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Page, base64};

    #[test]
    fn base64_as_in_rfc_4648() {
        for (plain, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), expected, "{plain}");
        }
    }

    #[test]
    fn foreign_names_are_text() {
        let mut page = Page::new("<b>", &["a & b".into()]);
        page.table(&["bytes", "function"], &vec![vec!["7".into(), "operator<\x1b".into()]]);
        let html = page.finish();
        assert!(html.contains("<title>&lt;b&gt;</title>") && html.contains("a &amp; b"));
        assert!(html.contains("<td class=\"n\">7</td><td class=\"name\">operator&lt;\u{fffd}</td>"), "{html}");
    }
}
