//! The Go function table: what each Go function holds on the Go heap and, through its cgo calls, outside of it.
//!
//! ```text
//! Go heap     2.41 MiB · go.pb.gz, taken 2026-11-30 12:00:00 UTC (as of its last garbage collection)
//! native      310.0 MiB · native.pb.gz, taken 2026-11-30 12:00:02 UTC
//! native − Go +307.6 MiB
//!   go flat  native flat     go cum  native cum
//!  0.50 MiB    301.0 MiB   0.50 MiB   301.0 MiB  main.handleExport
//! ```

use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use crate::words::size::human;
use offheap_symbolizer::profile::{GoFunction, GoTable};
use serde::Serialize;

/// The document of `diff --go --json`.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    go_total: i64,
    native_total: i64,
    /// Native minus Go.
    delta: i64,
    /// The part of `native_total` that no Go function stands behind.
    native_without_go: i64,
    /// The part of `go_total` that the runtime allocated for itself.
    go_in_runtime: i64,
    functions: Vec<FunctionJson<'a>>,
}

/// One function: `go` and `native` are flat.
#[derive(Serialize)]
struct FunctionJson<'a> {
    name: &'a str,
    file: Option<&'a str>,
    go: i64,
    native: i64,
    go_cum: i64,
    native_cum: i64,
    native_error: Option<f64>,
}

impl<'a> Document<'a> {
    /// The document with the first `count` functions.
    pub(crate) fn of(table: &'a GoTable, count: usize) -> Self {
        let function = |f: &'a GoFunction| FunctionJson {
            name: &f.node.name,
            file: f.node.file.as_deref(),
            go: f.go_flat,
            native: f.native_flat,
            go_cum: f.go_cum,
            native_cum: f.native_cum,
            native_error: f.native_flat_error,
        };
        Self {
            go_total: table.go_total,
            native_total: table.native_total,
            delta: table.native_total.saturating_sub(table.go_total),
            native_without_go: table.native_without_go,
            go_in_runtime: table.go_in_runtime,
            functions: table.functions.iter().take(count).map(function).collect(),
        }
    }
}

/// The text; `heads` name the Go and the native profile.
pub(crate) fn text(table: &GoTable, heads: &[String; 2], count: usize, by_cum: bool, screen: &Screen) -> String {
    let delta = i128::from(table.native_total) - i128::from(table.go_total);
    let sign = if delta > 0 { "+" } else { "" };
    let [go, native] = heads;
    let mut text = String::new();
    for line in [
        format!("Go heap      {} · {go} (as of its last garbage collection)", human(table.go_total.into())),
        format!("native       {} · {native}", human(table.native_total.into())),
        format!("native − Go  {sign}{}", human(delta)),
    ] {
        text += &screen.paint(Style::Strong, &line);
        text.push('\n');
    }
    let mut functions: Vec<&GoFunction> = table.functions.iter().collect();
    if by_cum {
        functions.sort_by_key(|f| std::cmp::Reverse(f.go_cum.saturating_add(f.native_cum)));
    }
    let mut rows = Table::new().number("go flat").number("native flat").number("go cum").number("native cum").name("");
    for f in functions.iter().take(count) {
        let amount = |bytes: i64| match bytes {
            0 => Cell::styled("0 B", Style::Faint),
            bytes => Cell::from(human(bytes.into())),
        };
        rows.row([
            amount(f.go_flat),
            amount(f.native_flat),
            amount(f.go_cum),
            amount(f.native_cum),
            (&*f.node.name).into(),
        ]);
    }
    if table.native_without_go != 0 {
        let amount = human(table.native_without_go.into());
        let cells = ["", &amount, "", "", "[no Go function: threads of C libraries, or stacks that were cut]"];
        rows.row(cells.map(|text| Cell::styled(text, Style::Faint)));
    }
    if table.go_in_runtime != 0 {
        let amount = human(table.go_in_runtime.into());
        rows.row([&amount, "", "", "", "[the Go runtime itself]"].map(|text| Cell::styled(text, Style::Faint)));
    }
    text += &rows.render(screen);
    if let Some(more @ 1..) = functions.len().checked_sub(count) {
        text += &screen.paint(Style::Faint, &format!("{more} more functions; -n 0 shows all\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Document, Screen, text};
    use offheap_symbolizer::profile::{GoFunction, GoTable, Node};

    #[test]
    fn both_sides_stand_in_one_row() {
        let function = |name: &str, go, native| GoFunction {
            node: Node { name: name.into(), ..Node::default() },
            go_flat: go,
            go_cum: go,
            native_flat: native,
            native_cum: native,
            native_flat_error: None,
        };
        let table = GoTable {
            go_total: 100,
            native_total: 900,
            native_without_go: 50,
            go_in_runtime: 0,
            functions: vec![function("main.put", 0, 850), function("main.cache", 100, 0)],
        };
        let shown = text(&table, &["go.pb.gz".into(), "native.pb.gz".into()], 1, false, &Screen::default());
        assert_eq!(
            shown,
            "Go heap      100 B · go.pb.gz (as of its last garbage collection)\n\
             native       900 B · native.pb.gz\n\
             native − Go  +800 B\n\
             go flat  native flat  go cum  native cum\n    \
             0 B        850 B     0 B       850 B  main.put\n                \
             50 B                      [no Go function: threads of C libraries, or stacks that were cut]\n\
             1 more functions; -n 0 shows all\n"
        );
        assert_eq!(Document::of(&table, 10).delta, 800);
    }
}
