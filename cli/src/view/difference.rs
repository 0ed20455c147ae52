//! What changed between two readings.
//!
//! ```text
//! inuse_space 8.62 MiB → 41.2 MiB: +32.6 MiB (+378.1%), 1.1 MiB/s · before.heap → after.heap
//!      delta      ±95%       base        new  state
//!  +24.4 MiB  1.02 MiB   4.88 MiB   29.3 MiB  grew   leak
//! ```

use super::ranking::{NINETY_FIVE, name};
use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use super::value::Unit;
use offheap_symbolizer::profile::{Diff, DiffRow, State, ValueType};
use serde::Serialize;
use std::fmt::Write;

/// The document of `diff --json`.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    sample_type: &'a str,
    unit: &'a str,
    base_total: i64,
    new_total: i64,
    delta: i64,
    /// Standard error of the delta that sampling leaves; null where it is not known.
    error: Option<f64>,
    /// Between the readings; null where one has no time.
    seconds: Option<f64>,
    rows: Vec<RowJson<'a>>,
}

/// One row of the document.
#[derive(Serialize)]
pub(crate) struct RowJson<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<i64>,
    module: Option<&'a str>,
    base: i64,
    new: i64,
    delta: i64,
    state: String,
    error: Option<f64>,
}

impl<'a> Document<'a> {
    /// The document with the first `count` rows.
    pub(crate) fn of(diff: &'a Diff, value: &'a ValueType, count: usize) -> Self {
        Self {
            sample_type: &value.kind,
            unit: &value.unit,
            base_total: diff.base_total,
            new_total: diff.new_total,
            delta: diff.delta(),
            error: diff.total_error,
            seconds: diff.seconds,
            rows: diff.rows.iter().take(count).map(RowJson::of).collect(),
        }
    }
}

impl<'a> RowJson<'a> {
    fn of(row: &'a DiffRow) -> Self {
        Self {
            name: &row.node.name,
            file: row.node.file.as_deref(),
            line: row.node.line,
            module: row.node.module.as_deref(),
            base: row.base,
            new: row.new,
            delta: row.delta(),
            state: row.state.to_string(),
            error: row.error,
        }
    }
}

/// The line above the table.
pub(crate) fn head(diff: &Diff, kind: &str, unit: &Unit, names: &str, screen: &Screen) -> String {
    let (base, new, delta) = (i128::from(diff.base_total), i128::from(diff.new_total), i128::from(diff.delta()));
    let mut text = format!("{kind} {} → {}: {}", unit.amount(base), unit.headed(new), unit.change(delta));
    // Writing to a String does not fail.
    if base != 0 {
        let _ = write!(text, " ({:+.1}%)", 100.0 * delta as f64 / base.unsigned_abs() as f64);
    }
    if let Some(seconds) = diff.seconds {
        let _ = write!(text, ", {}/s", unit.change((delta as f64 / seconds).round() as i128));
    }
    if delta != 0 && !diff.is_significant() {
        text += ", within the sampling error";
    }
    let _ = write!(text, " · {names}");
    format!("{}\n", screen.paint(Style::Strong, &text))
}

/// The table of the first `count` rows.
pub(crate) fn text(diff: &Diff, count: usize, unit: &Unit, by_line: bool, screen: &Screen) -> String {
    let rows = &diff.rows[..count.min(diff.rows.len())];
    let with_errors = rows.iter().any(|row| row.error.is_some_and(|error| error > 0.0));
    let mut table = Table::new().number("delta");
    if with_errors {
        table = table.number("±95%");
    }
    table = table.number("base").number("new");
    if diff.seconds.is_some() {
        table = table.number("per second");
    }
    table = table.name("state").name("");
    for row in rows {
        let style = match row.state {
            State::New | State::Grew => Style::Bad,
            State::Gone | State::Shrank => Style::Good,
            State::Same => Style::Faint,
        };
        let mut cells = vec![Cell::styled(unit.change(row.delta().into()), style)];
        if with_errors {
            let error = row.error.map_or_else(|| "n/a".to_owned(), |error| unit.amount((error * NINETY_FIVE) as i128));
            cells.push(Cell::styled(error, Style::Faint));
        }
        cells.extend([row.base, row.new].map(|value| Cell::from(unit.amount(value.into()))));
        if let Some(seconds) = diff.seconds {
            cells.push(unit.change((row.delta() as f64 / seconds).round() as i128).into());
        }
        cells.extend([Cell::styled(row.state.to_string(), style), name(&row.node, by_line).into()]);
        table.row(cells);
    }
    if rows.is_empty() { String::new() } else { table.render(screen) }
}

#[cfg(test)]
mod tests {
    use super::{head, text};
    use crate::view::screen::Screen;
    use crate::view::value::Unit;
    use offheap_symbolizer::profile::{Diff, DiffRow, Node, State};

    #[test]
    fn a_change_has_its_sign_its_rate_and_its_state() {
        let row = |name: &str, base, new, error, state| DiffRow {
            node: Node { name: name.into(), ..Node::default() },
            base,
            new,
            error,
            state,
        };
        let diff = Diff {
            base_total: 1000,
            new_total: 4000,
            total_error: Some(10.0),
            seconds: Some(10.0),
            rows: vec![row("leak", 500, 4000, Some(100.0), State::Grew), row("cache", 500, 0, None, State::Gone)],
        };
        let screen = Screen::default();
        assert_eq!(
            head(&diff, "inuse_objects", &Unit::Objects, "a → b", &screen),
            "inuse_objects 1000 → 4000 objects: +3000 (+300.0%), +300/s · a → b\n"
        );
        assert_eq!(
            text(&diff, 10, &Unit::Objects, false, &screen),
            "delta  ±95%  base   new  per second  state\n\
             +3500   196   500  4000        +350  grew   leak\n \
             -500   n/a   500     0         -50  gone   cache\n"
        );
        assert_eq!(text(&Diff::default(), 10, &Unit::Bytes, false, &screen), "");
    }
}
