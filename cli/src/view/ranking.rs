//! The table of `top`.
//!
//! ```text
//! inuse_space 163.1 MiB · svc.heap
//!      flat  flat%   sum%        cum    cum%
//!  98.0 MiB  60.1%  60.1%   98.0 MiB   60.1%  rocksdb::Arena::AllocateNewBlock
//!       0 B   0.0%  60.1%  163.1 MiB  100.0%  main.handlePut
//! ```

use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use super::value::Unit;
use offheap_symbolizer::profile::{self, Row};
use serde::Serialize;

/// Rows below this share are not what one is looking for.
const FAINT_BELOW: f64 = 0.01;
/// Rows from this share are.
const STRONG_FROM: f64 = 0.10;
/// Standard errors to either side that hold the truth in 95 of 100 cases.
pub(crate) const NINETY_FIVE: f64 = 1.96;

/// The document of `top --json`.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    pub(crate) sample_type: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) total: i64,
    pub(crate) rows: Vec<RowJson<'a>>,
}

/// One row of the document.
#[derive(Serialize)]
pub(crate) struct RowJson<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<i64>,
    module: Option<&'a str>,
    flat: i64,
    cum: i64,
    /// Standard errors that sampling leaves; null where the input does not tell.
    flat_error: Option<f64>,
    cum_error: Option<f64>,
}

impl<'a> RowJson<'a> {
    /// A row of a ranking.
    pub(crate) fn of(row: &'a Row) -> Self {
        Self {
            name: &row.node.name,
            file: row.node.file.as_deref(),
            line: row.node.line,
            module: row.node.module.as_deref(),
            flat: row.flat,
            cum: row.cum,
            flat_error: row.flat_error,
            cum_error: row.cum_error,
        }
    }
}

/// The text of the first `count` rows.
pub(crate) fn text(ranking: &profile::Table, count: usize, unit: &Unit, by_line: bool, screen: &Screen) -> String {
    let rows = &ranking.rows[..count.min(ranking.rows.len())];
    // The error of the value that the row is there for.
    let error_of = |row: &Row| if row.flat == 0 { row.cum_error } else { row.flat_error };
    let with_errors = rows.iter().any(|row| error_of(row).is_some());
    let mut table = Table::new().number("flat").number("flat%").number("sum%").number("cum").number("cum%");
    if with_errors {
        table = table.number("±95%");
    }
    table = table.name("");
    let mut sum: i128 = 0;
    for row in rows {
        sum += i128::from(row.flat);
        let share = ratio(row.flat.into(), ranking.total).max(ratio(row.cum.into(), ranking.total)).abs();
        let style = match share {
            share if share >= STRONG_FROM => Style::Strong,
            share if share < FAINT_BELOW => Style::Faint,
            _ => Style::Plain,
        };
        let percent = |value: i128| Cell::styled(format!("{:.1}%", 100.0 * ratio(value, ranking.total)), style);
        let amount = |value: i64| Cell::styled(unit.amount(value.into()), style);
        let mut cells =
            vec![amount(row.flat), percent(row.flat.into()), percent(sum), amount(row.cum), percent(row.cum.into())];
        if with_errors {
            let error = |error: f64| unit.amount((error * NINETY_FIVE).round() as i128);
            cells.push(Cell::styled(error_of(row).map_or_else(|| "n/a".to_owned(), error), Style::Faint));
        }
        cells.push(Cell::styled(name(&row.node, by_line), style));
        table.row(cells);
    }
    table.render(screen)
}

/// Name of a row; with its place in the source where rows are lines.
pub(crate) fn name(node: &profile::Node, by_line: bool) -> String {
    match (&node.file, node.line) {
        (Some(file), Some(line)) if by_line => format!("{} {file}:{line}", node.name),
        (Some(file), None) if by_line => format!("{} {file}", node.name),
        _ => node.name.to_string(),
    }
}

/// Share of the total; 0 for a total of 0. A share of a negative total, as differences have, keeps the value's sign.
pub(crate) fn ratio(value: i128, total: i64) -> f64 {
    if total == 0 { 0.0 } else { value as f64 / total.unsigned_abs() as f64 }
}

#[cfg(test)]
mod tests {
    use super::{Screen, Unit, text};
    use offheap_symbolizer::profile::{Node, Row, Table};

    fn row(name: &str, flat: i64, cum: i64, error: Option<f64>) -> Row {
        let node = Node { name: name.into(), ..Node::default() };
        Row { node, flat, cum, flat_error: error, cum_error: error }
    }

    #[test]
    fn rows_add_up_from_the_top() {
        let table = Table { total: 4096, rows: vec![row("grow", 3072, 3072, None), row("put", 1024, 4096, None)] };
        let expected = "    flat  flat%    sum%       cum    cum%\n\
                        3.00 KiB  75.0%   75.0%  3.00 KiB   75.0%  grow\n\
                        1.00 KiB  25.0%  100.0%  4.00 KiB  100.0%  put\n";
        assert_eq!(text(&table, 10, &Unit::Bytes, false, &Screen::default()), expected);
    }

    #[test]
    fn errors_have_a_column_where_they_are_known() {
        let table = Table { total: 100, rows: vec![row("grow", 100, 100, Some(10.0)), row("main", 0, 100, None)] };
        let shown = text(&table, 10, &Unit::Objects, false, &Screen::default());
        assert_eq!(
            shown,
            "flat   flat%    sum%  cum    cum%  ±95%\n \
             100  100.0%  100.0%  100  100.0%    20  grow\n   \
             0    0.0%  100.0%  100  100.0%   n/a  main\n"
        );
    }

    #[test]
    fn shares_of_a_negative_total_keep_their_sign() {
        let table = Table { total: -100, rows: vec![row("gone", -150, -150, None), row("new", 50, 50, None)] };
        let shown = text(&table, 1, &Unit::Objects, false, &Screen::default());
        assert_eq!(shown, "flat    flat%     sum%   cum     cum%\n-150  -150.0%  -150.0%  -150  -150.0%  gone\n");
    }
}
