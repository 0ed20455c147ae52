//! Tables whose columns are found by their headings, since every version moved them.
//!
//! ```text
//! bins:     bin  size regs pgs    allocated      nmalloc      ndalloc    nrequests …    curruns          (3.x)
//! bins:           size ind    allocated      nmalloc … nrequests      curregs      curruns regs pgs  util …   (4.x)
//! bins:           size ind    allocated      nmalloc (#/sec) … nshards  curregs  curslabs  nonfull_slabs …    (5.2)
//!                    8   0         4752          631       0 …       1      594         2              0 …
//!                      ---
//! ```

use super::report::UNDERFLOWED;
use offheap_wire::BinStats;

/// Which table a heading opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Small classes.
    Bins,
    /// Large classes, and the huge ones of 4.x.
    Large,
    /// A table that is not read.
    Other,
}

/// A heading.
#[derive(Debug)]
pub(super) struct Heading<'a> {
    pub(super) kind: Kind,
    columns: Vec<&'a str>,
}

/// What a line is to an open table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<T> {
    Row(T),
    /// The table goes on and this line has nothing to say: `---`, `[3..7]`.
    Gap,
    /// A row that does not fit its heading.
    Unreadable,
    /// The table has ended.
    End,
}

impl<'a> Heading<'a> {
    /// Recognise a heading: `bins:` and its relatives, followed by names. (`large:` followed by a number is a row of the
    /// totals.)
    pub(super) fn of(line: &'a str) -> Option<Self> {
        let mut columns = line.split_whitespace();
        let kind = match columns.next()? {
            "bins:" => Kind::Bins,
            "large:" | "huge:" => Kind::Large,
            "extents:" => Kind::Other,
            _ => return None,
        };
        let columns: Vec<&str> = columns.collect();
        if !columns.first()?.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        // `huge:` of 3.x has no sizes.
        let kind = if columns.contains(&"size") { kind } else { Kind::Other };
        Some(Self { kind, columns })
    }

    /// It has the columns that its kind needs; one that was wrapped lost some.
    pub(super) fn is_sufficient(&self) -> bool {
        let any = |names: &[&str]| names.iter().any(|name| self.columns.contains(name));
        match self.kind {
            Kind::Bins => any(&["regs"]) && any(&["pgs"]) && any(&["curslabs", "curruns"]),
            Kind::Large => any(&["curlextents", "curruns", "curhchunks"]),
            Kind::Other => true,
        }
    }

    /// The values of a line under this heading.
    pub(super) fn line<'l>(&self, line: &'l str) -> Line<Row<'a, 'l, '_>> {
        let values: Vec<&str> = line.split_whitespace().collect();
        match values.first() {
            Some(first) if *first == "---" || first.starts_with('[') => Line::Gap,
            Some(first) if first.starts_with(|c: char| c.is_ascii_digit()) => {
                if values.len() == self.columns.len() {
                    Line::Row(Row { heading: self, values })
                } else {
                    Line::Unreadable
                }
            }
            _ => Line::End,
        }
    }
}

/// A row with as many values as its heading has columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row<'a, 'l, 'h> {
    heading: &'h Heading<'a>,
    values: Vec<&'l str>,
}

impl PartialEq for Heading<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns
    }
}

impl Eq for Heading<'_> {}

impl Row<'_, '_, '_> {
    /// The number in the first of these columns that the table has.
    fn number(&self, names: &[&str]) -> Option<u64> {
        let column = names.iter().find_map(|name| self.heading.columns.iter().position(|column| column == name))?;
        self.values[column].parse().ok().filter(|value| *value < UNDERFLOWED)
    }

    /// A small class. 3.x prints no count of regions: it is allocated ÷ size, exactly.
    pub(super) fn bin(&self, page_size: u64) -> Option<BinStats> {
        let size = self.number(&["size"]).filter(|size| *size > 0)?;
        Some(BinStats {
            size,
            nregs: self.number(&["regs"])?,
            slab_size: self.number(&["pgs"])?.checked_mul(page_size)?,
            curregs: if self.heading.columns.contains(&"curregs") {
                self.number(&["curregs"])?
            } else {
                self.number(&["allocated"])? / size
            },
            curslabs: self.number(&["curslabs", "curruns"])?,
            nonfull_slabs: self.number(&["nonfull_slabs"]),
            nmalloc: self.number(&["nmalloc"]),
            ndalloc: self.number(&["ndalloc"]),
        })
    }

    /// Size and live extents of a large class.
    pub(super) fn large(&self) -> Option<(u64, u64)> {
        Some((self.number(&["size"])?, self.number(&["curlextents", "curruns", "curhchunks"])?))
    }
}

#[cfg(test)]
mod tests {
    use super::{Heading, Kind, Line};

    #[test]
    fn columns_are_found_wherever_they_stand() {
        for (label, heading, row) in [
            (
                "3.x",
                "bins:     bin  size regs pgs    allocated      nmalloc      ndalloc      newruns       reruns      curruns",
                "            3    48   85   1         4800          200          100            2            0            2",
            ),
            (
                "4.x",
                "bins:           size ind    allocated      nmalloc      ndalloc    nrequests      curregs      curruns regs pgs  util",
                "                  48   3         4800          200          100            0          100            2   85   1 0.588",
            ),
            (
                "5.2",
                "bins:  size ind allocated nmalloc (#/sec) ndalloc (#/sec) nshards curregs curslabs nonfull_slabs regs pgs util",
                "         48   3      4800     200       9     100       8       1     100        2             1   85   1  race",
            ),
        ] {
            let heading = Heading::of(heading).unwrap();
            assert_eq!(heading.kind, Kind::Bins, "{label}");
            let Line::Row(row) = heading.line(row) else { panic!("{label}: not a row") };
            let bin = row.bin(4096).unwrap();
            assert_eq!((bin.size, bin.nregs, bin.slab_size), (48, 85, 4096), "{label}");
            assert_eq!((bin.curregs, bin.curslabs, bin.nmalloc), (100, 2, Some(200)), "{label}");
            assert_eq!(bin.nonfull_slabs, (label == "5.2").then_some(1), "{label}");
        }
    }

    #[test]
    fn totals_are_no_headings_and_short_rows_no_rows() {
        assert!(Heading::of("large:   167948288   25   25").is_none());
        assert_eq!(Heading::of("huge: nmalloc      ndalloc    allocated").unwrap().kind, Kind::Other);
        let heading = Heading::of("bins: size ind curregs").unwrap();
        assert_eq!(heading.line("  ---"), Line::Gap);
        assert_eq!(heading.line("[1..3]"), Line::Gap);
        assert_eq!(heading.line("  8 0"), Line::Unreadable);
        assert_eq!(heading.line("active: 5"), Line::End);
        assert_eq!(heading.line(""), Line::End);
    }
}
