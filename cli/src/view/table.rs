//! Aligned columns.

use super::screen::{Screen, Style};
use crate::words::text::{printable, shorten_middle};
use std::fmt::Write;

/// Fewest characters a shortened name keeps, however narrow the terminal is.
const NARROWEST_NAME: usize = 24;

/// A table under construction. Numbers stand at the right of their column, names at the left of the last one, which
/// alone is shortened when the terminal is too narrow.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
struct Column {
    heading: String,
    right: bool,
}

/// One field.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A field with emphasis.
    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: printable(text.as_ref()).into_owned(), style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::Plain)
    }
}

impl Table {
    /// A table without columns.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Add a column of numbers.
    pub(crate) fn number(mut self, heading: &str) -> Self {
        self.columns.push(Column { heading: heading.into(), right: true });
        self
    }

    /// Add a column of names.
    pub(crate) fn name(mut self, heading: &str) -> Self {
        self.columns.push(Column { heading: heading.into(), right: false });
        self
    }

    /// Add a row; fields that are missing at its end stay empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The text, a line feed at the end of each line.
    pub(crate) fn render(&self, screen: &Screen) -> String {
        let widths = self.widths(screen);
        let mut out = String::new();
        if self.columns.iter().any(|column| !column.heading.is_empty()) {
            let heading: Vec<Cell> =
                self.columns.iter().map(|column| Cell::styled(&column.heading, Style::Strong)).collect();
            self.line(&mut out, &heading, &widths, screen);
        }
        for row in &self.rows {
            self.line(&mut out, row, &widths, screen);
        }
        out
    }

    /// Width of each column: its longest field; the last one takes what the terminal leaves.
    fn widths(&self, screen: &Screen) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.heading.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        if let (Some(available), Some((last, before))) = (screen.width, widths.split_last_mut()) {
            let taken: usize = before.iter().map(|width| width + 2).sum();
            *last = (*last).min(available.saturating_sub(taken).max(NARROWEST_NAME));
        }
        widths
    }

    fn line(&self, out: &mut String, cells: &[Cell], widths: &[usize], screen: &Screen) {
        let start = out.len();
        for (index, (column, &width)) in self.columns.iter().zip(widths).enumerate() {
            let Some(cell) = cells.get(index) else { break };
            if index > 0 {
                out.push_str("  ");
            }
            let text = shorten_middle(&cell.text, width);
            let padding = width - text.chars().count().min(width);
            let painted = screen.paint(cell.style, &text);
            // Writing to a String does not fail.
            let _ = if column.right {
                write!(out, "{:padding$}{painted}", "")
            } else {
                write!(out, "{painted}{:padding$}", "")
            };
        }
        out.truncate(start + out[start..].trim_end_matches(' ').len());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Screen, Style, Table};

    fn sample() -> Table {
        let mut table = Table::new().number("flat").number("flat%").name("");
        table.row(["1.00 KiB", "50.0%", "github.com/acme/store.(*Cache).Put"].map(Cell::from));
        table.row(["17 B", "0.8%", "main.main"].map(Cell::from));
        table
    }

    #[test]
    fn numbers_right_names_left() {
        assert_eq!(
            sample().render(&Screen::default()),
            "    flat  flat%\n\
             1.00 KiB  50.0%  github.com/acme/store.(*Cache).Put\n    \
             17 B   0.8%  main.main\n"
        );
    }

    #[test]
    fn only_a_terminal_shortens() {
        let narrow = Screen { width: Some(45), colour: false };
        assert_eq!(
            sample().render(&narrow),
            "    flat  flat%\n\
             1.00 KiB  50.0%  github.com/ac…e.(*Cache).Put\n    \
             17 B   0.8%  main.main\n"
        );
    }

    #[test]
    fn colour_does_not_shift_columns() {
        let mut table = Table::new().number("").name("");
        table.row([Cell::styled("1", Style::Bad), Cell::from("a")]);
        table.row([Cell::from("22"), Cell::styled("b", Style::Strong)]);
        let screen = Screen { width: None, colour: true };
        assert_eq!(table.render(&screen), " \x1b[31m1\x1b[0m  a\n22  \x1b[1mb\x1b[0m\n");
    }
}
