//! Prometheus text of several targets as one page.
//!
//! ```text
//! # HELP jemalloc_active_bytes Bytes in pages that hold allocations
//! # TYPE jemalloc_active_bytes gauge
//! jemalloc_active_bytes 369164288                          becomes
//! jemalloc_active_bytes{target="billing"} 369164288
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

/// Metric families by name. A family must stand in one piece, with its help once.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: BTreeMap<String, Family>,
}

#[derive(Debug, Default)]
struct Family {
    help: Option<String>,
    kind: Option<String>,
    samples: Vec<String>,
}

impl Exposition {
    /// Take in the page of one target, with a label that tells it apart.
    pub(crate) fn add_page(&mut self, page: &str, target: &str) {
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                if let Some((name, help)) = rest.split_once(' ') {
                    self.families.entry(name.to_owned()).or_default().help.get_or_insert_with(|| help.to_owned());
                }
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                if let Some((name, kind)) = rest.split_once(' ') {
                    self.families.entry(name.to_owned()).or_default().kind.get_or_insert_with(|| kind.to_owned());
                }
            } else if !line.starts_with('#') {
                self.add_line(line, target);
            }
        }
    }

    fn add_line(&mut self, line: &str, target: &str) {
        let end = line.find(|c: char| c == '{' || c.is_whitespace()).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        if name.is_empty() || rest.trim().is_empty() {
            return;
        }
        let label = label("target", target);
        let sample = match rest.strip_prefix('{') {
            Some(labels) if labels.trim_start().starts_with('}') => format!("{name}{{{label}{labels}"),
            Some(labels) => format!("{name}{{{label},{labels}"),
            None => format!("{name}{{{label}}}{rest}"),
        };
        self.families.entry(name.to_owned()).or_default().samples.push(sample);
    }

    /// Add a gauge of our own.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let family = self.families.entry(name.to_owned()).or_default();
        family.help.get_or_insert_with(|| help.to_owned());
        family.kind.get_or_insert_with(|| "gauge".to_owned());
        let labels: Vec<String> = labels.iter().map(|(key, value)| label(key, value)).collect();
        family.samples.push(format!("{name}{{{}}} {value}", labels.join(",")));
    }

    /// The page.
    pub(crate) fn render(&self) -> String {
        let mut page = String::new();
        // Writing to a String does not fail.
        for (name, family) in self.families.iter().filter(|(_, family)| !family.samples.is_empty()) {
            if let Some(help) = &family.help {
                let _ = writeln!(page, "# HELP {name} {help}");
            }
            let _ = writeln!(page, "# TYPE {name} {}", family.kind.as_deref().unwrap_or("untyped"));
            for sample in &family.samples {
                page.push_str(sample);
                page.push('\n');
            }
        }
        page
    }
}

fn label(key: &str, value: &str) -> String {
    let mut text = format!("{key}=\"");
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::Exposition;

    #[test]
    fn families_of_several_targets_stand_together() {
        let mut page = Exposition::default();
        let text = "# HELP a_bytes Bytes\n# TYPE a_bytes gauge\na_bytes 5\n# TYPE b_total counter\nb_total{why=\"x\"} 1 1700000000\n";
        page.add_page(text, "one");
        page.add_page(text, "t\"w\\o");
        page.gauge("offheap_up", "Reached", &[("target", "one")], 1.0);
        assert_eq!(
            page.render(),
            "# HELP a_bytes Bytes\n# TYPE a_bytes gauge\na_bytes{target=\"one\"} 5\na_bytes{target=\"t\\\"w\\\\o\"} 5\n\
             # TYPE b_total counter\nb_total{target=\"one\",why=\"x\"} 1 1700000000\n\
             b_total{target=\"t\\\"w\\\\o\",why=\"x\"} 1 1700000000\n\
             # HELP offheap_up Reached\n# TYPE offheap_up gauge\noffheap_up{target=\"one\"} 1\n"
        );
    }

    #[test]
    fn garbage_lines_add_nothing() {
        let mut page = Exposition::default();
        page.add_page("\n\nname\n{x} 1\n# nothing\n# HELP\n# TYPE only\nok{} 2\n", "t");
        assert_eq!(page.render(), "# TYPE ok untyped\nok{target=\"t\"} 2\n");
    }
}
