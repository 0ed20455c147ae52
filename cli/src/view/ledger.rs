//! The ledger as a table, with its verdict.

use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use crate::analysis::ledger::{Ledger, Owner};
use crate::analysis::verdict::{Cause, Verdict};
use crate::words::size::human;
use std::fmt::Write;

/// The rows, their sum, and what makes RSS lie.
pub(crate) fn table(ledger: &Ledger, before: Option<&Ledger>, screen: &Screen) -> String {
    let mut table = Table::new().number("bytes").number("").number("share");
    if before.is_some() {
        table = table.number("change");
    }
    table = table.name("owner").name("measured by");
    let mut row = |name: &str, bytes: u64, was: Option<u64>, by: &str, style: Style| {
        let share = if ledger.rss == 0 { 0.0 } else { 100.0 * bytes as f64 / ledger.rss as f64 };
        let mut cells = vec![Cell::from(bytes.to_string()), human(bytes.into()).into(), format!("{share:.1}%").into()];
        if let Some(was) = was {
            cells.push(signed(i128::from(bytes) - i128::from(was)).into());
        }
        cells.extend([Cell::styled(name, style), Cell::styled(by, Style::Faint)]);
        table.row(cells);
    };
    for line in &ledger.rows {
        let style = if line.owner == Owner::Unattributed && line.bytes > 0 { Style::Warning } else { Style::Plain };
        let was = before.map(|before| before.bytes(line.owner));
        row(line.owner.name(), line.bytes, was, &line.measured_by, style);
    }
    row("RSS", ledger.rss, before.map(|before| before.rss), "sum of the rows = sum of Rss in smaps", Style::Strong);
    table.render(screen)
}

/// Figures beside the sum that a reader of RSS must know.
pub(crate) fn beside(ledger: &Ledger) -> String {
    let mut out = format!(
        "of RSS: {} in huge pages (AnonHugePages), {} given up and not yet taken (LazyFree); swapped out: {}\n",
        human(ledger.anon_huge_pages.into()),
        human(ledger.lazy_free.into()),
        human(ledger.swap.into())
    );
    if ledger.hugetlb > 0 {
        let _ = writeln!(
            out,
            "not in RSS, since the kernel leaves it out: {} in pages of hugetlbfs (Shared_Hugetlb, Private_Hugetlb); they \
             come out of the pool of vm.nr_hugepages, and a control group counts them as hugetlb, or in memory.current",
            human(ledger.hugetlb.into())
        );
    }
    if ledger.native_untouched > 0 || ledger.go_untouched > 0 {
        let _ = writeln!(
            out,
            "not in RSS, since never touched: {} of what jemalloc counts as resident, {} of what the Go heap counts",
            human(ledger.native_untouched.into()),
            human(ledger.go_untouched.into())
        );
    }
    out
}

/// The verdict with its reasons.
pub(crate) fn verdict(verdict: &Verdict, screen: &Screen) -> String {
    let style = match verdict.cause {
        Cause::Healthy => Style::Good,
        Cause::NotEnoughToTell => Style::Warning,
        _ => Style::Bad,
    };
    let mut out = format!("verdict: {}\n", screen.paint(style, verdict.cause.name()));
    for reason in &verdict.reasons {
        let _ = writeln!(out, "  {reason}");
    }
    out
}

fn signed(bytes: i128) -> String {
    if bytes > 0 { format!("+{}", human(bytes)) } else { human(bytes) }
}

#[cfg(test)]
mod tests {
    use super::{beside, table};
    use crate::analysis::ledger::{self, Ledger, Owner, Readings, Row};
    use crate::analysis::smaps;
    use crate::view::screen::Screen;

    #[test]
    fn pages_of_hugetlbfs_stand_outside_the_sum() {
        let smaps = |hugetlb: &str| {
            let text = format!(
                "7f0000000000-7f0000400000 rw-p 00000000 00:0f 41                         /anon_hugepage (deleted)\n\
                 Size:               4096 kB\nRss:                   0 kB\n{hugetlb}VmFlags: rd wr mr mw me de ht\n\
                 7f0000400000-7f0000500000 rw-p 00000000 00:00 0\nRss:                1024 kB\nAnonymous: 1024 kB\n"
            );
            let mappings = smaps::parse(text.as_bytes()).unwrap();
            ledger::of(Readings { mappings: &mappings, is_go: false, native: None, go: None })
        };
        let with = smaps("Shared_Hugetlb:        2048 kB\nPrivate_Hugetlb:       4096 kB\n");
        assert_eq!((with.rss, with.hugetlb), (1 << 20, 6 << 20));
        assert_eq!(with.rows.iter().map(|row| row.bytes).sum::<u64>(), with.rss);
        assert!(beside(&with).contains("not in RSS, since the kernel leaves it out: 6.00 MiB"), "{}", beside(&with));
        for without in [smaps(""), smaps("Shared_Hugetlb: 0 kB\nPrivate_Hugetlb: 0 kB\n")] {
            assert!(!beside(&without).contains("hugetlbfs"), "{}", beside(&without));
        }
    }

    #[test]
    fn rows_stand_above_their_sum() {
        let row = |owner, bytes, by: &str| Row { owner, bytes, measured_by: by.into() };
        let ledger = Ledger {
            rss: 3 << 20,
            rows: vec![row(Owner::JemallocLive, 2 << 20, "agent"), row(Owner::Unattributed, 1 << 20, "nobody")],
            unattributed: 1 << 20,
            ..Ledger::default()
        };
        let before =
            Ledger { rss: 1 << 20, rows: vec![row(Owner::JemallocLive, 1 << 20, "agent")], ..Ledger::default() };
        assert_eq!(
            table(&ledger, Some(&before), &Screen::default()),
            "  bytes             share     change  owner          measured by\n\
             2097152  2.00 MiB   66.7%  +1.00 MiB  jemalloc live  agent\n\
             1048576  1.00 MiB   33.3%  +1.00 MiB  unattributed   nobody\n\
             3145728  3.00 MiB  100.0%  +2.00 MiB  RSS            sum of the rows = sum of Rss in smaps\n"
        );
    }
}
