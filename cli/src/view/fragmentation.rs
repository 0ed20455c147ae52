//! Fragmentation as text.

use super::amount::{bytes_or_na, count_or_na, percent_or_na, size_or_na};
use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use crate::analysis::fragmentation::{Arena, Class, Fragmentation, Large, Verdict};
use crate::analysis::tenants::Tenant;
use crate::words::duration;
use crate::words::size::human;
use std::fmt::Write;
use std::time::Duration;

/// Above this mean age, objects are called long-lived.
const LONG_LIVED_SECONDS: f64 = 60.0;

/// Everything that is shown.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) parts: &'a Fragmentation,
    pub(crate) classes: &'a [Class],
    pub(crate) large: &'a [Large],
    pub(crate) arenas: &'a [Arena],
    /// `None` when there is no profile.
    pub(crate) tenants: Option<&'a [Tenant]>,
    /// Rows of each table.
    pub(crate) shown: usize,
}

impl Report<'_> {
    /// The text, for this screen.
    pub(crate) fn render(&self, screen: &Screen) -> String {
        let parts = self.parts;
        let style = match parts.verdict {
            Verdict::Ok => Style::Good,
            Verdict::Fragmented => Style::Bad,
            Verdict::Unreliable | Verdict::Unknown => Style::Warning,
        };
        let index = parts.index.map_or_else(|| "n/a".to_owned(), |index| format!("{index:.3}"));
        let mut out = format!("fragmentation index {index}: {}\n", screen.paint(style, parts.verdict.name()));
        for reason in &parts.reasons {
            let _ = writeln!(out, "  {reason}");
        }
        let sections = [
            named_numbers(parts, screen),
            self.class_table(screen),
            self.tenant_table(screen),
            self.large_table(screen),
            self.arena_table(screen),
        ];
        for section in sections.into_iter().filter(|section| !section.is_empty()) {
            out.push('\n');
            out.push_str(&section);
        }
        out
    }

    fn class_table(&self, screen: &Screen) -> String {
        if self.classes.is_empty() {
            return String::new();
        }
        let mut table = Table::new();
        for heading in ["waste", "share", "size", "used", "regions", "slabs", "not full"] {
            table = table.number(heading);
        }
        for class in self.classes.iter().take(self.shown) {
            table.row(
                [
                    size_or_na(Some(class.waste)),
                    percent_or_na(class.share),
                    class.size.to_string(),
                    percent_or_na(class.utilization),
                    class.curregs.to_string(),
                    class.curslabs.to_string(),
                    count_or_na(class.nonfull_slabs),
                ]
                .map(Cell::from),
            );
        }
        let mut out = format!("Small size classes by waste\n{}", table.render(screen));
        let rest: i128 = self.classes.iter().skip(self.shown).map(|class| i128::from(class.waste)).sum();
        self.rest(&mut out, self.classes.len(), Some(rest));
        out
    }

    fn rest(&self, out: &mut String, rows: usize, waste: Option<i128>) {
        if rows > self.shown {
            let _ = match waste {
                Some(waste) => writeln!(out, "and {} more with {}", rows - self.shown, human(waste)),
                None => writeln!(out, "and {} more", rows - self.shown),
            };
        }
    }

    fn tenant_table(&self, screen: &Screen) -> String {
        let Some(tenants) = self.tenants.filter(|tenants| !tenants.is_empty()) else { return String::new() };
        let mut out = "Who lives in them (an estimate: the waste of a class is shared by live objects and their age)\n"
            .to_owned();
        if let Some(first) = tenants.iter().find(|tenant| tenant.objects > 0) {
            let _ = writeln!(out, "{}", screen.paint(Style::Strong, &sentence(first)));
        }
        let mut table = Table::new().number("waste").number("objects").number("mean age").number("sizes").name("");
        for tenant in tenants.iter().take(self.shown) {
            let sizes: Vec<String> = tenant.classes.iter().take(3).map(|stay| stay.size.to_string()).collect();
            let more = if tenant.classes.len() > 3 { ", …" } else { "" };
            table.row(
                [
                    human(tenant.waste.into()),
                    tenant.objects.to_string(),
                    tenant.age.map_or_else(|| "n/a".to_owned(), age),
                    format!("{}{more}", sizes.join(", ")),
                    tenant.name.clone(),
                ]
                .map(Cell::from),
            );
        }
        out.push_str(&table.render(screen));
        let rest: i128 = tenants.iter().skip(self.shown).map(|tenant| i128::from(tenant.waste)).sum();
        self.rest(&mut out, tenants.len(), Some(rest));
        out
    }

    fn large_table(&self, screen: &Screen) -> String {
        if self.large.is_empty() {
            return String::new();
        }
        let mut table = Table::new().number("in use").number("size").number("extents");
        for class in self.large.iter().take(self.shown) {
            table.row([human(class.bytes.into()), class.size.to_string(), class.extents.to_string()].map(Cell::from));
        }
        let mut out = format!("Large size classes (no slabs: each is an extent of its own)\n{}", table.render(screen));
        self.rest(&mut out, self.large.len(), None);
        out
    }

    fn arena_table(&self, screen: &Screen) -> String {
        if self.arenas.len() < 2 {
            return String::new();
        }
        let mut table = Table::new();
        for heading in ["arena", "index", "slab waste", "active", "allocated", "unused pages", "threads"] {
            table = table.number(heading);
        }
        let mut table = table.name("");
        for arena in self.arenas.iter().take(self.shown) {
            table.row(
                [
                    arena.index.to_string(),
                    arena.fragmentation.map_or_else(|| "n/a".to_owned(), |index| format!("{index:.3}")),
                    size_or_na(arena.slab_waste),
                    size_or_na(arena.active),
                    size_or_na(arena.allocated),
                    size_or_na(arena.unused),
                    count_or_na(arena.nthreads),
                    if arena.agent { "the agent's own".to_owned() } else { String::new() },
                ]
                .map(Cell::from),
            );
        }
        let mut out = format!(
            "Arenas by slab waste (fewer of them, MALLOC_CONF=narenas:N, share slabs better)\n{}",
            table.render(screen)
        );
        self.rest(&mut out, self.arenas.len(), None);
        out
    }
}

/// `main.handleSessions: long-lived 448-byte objects pin 610.0 MiB`
fn sentence(tenant: &Tenant) -> String {
    let lived = if tenant.age.is_some_and(|age| age > LONG_LIVED_SECONDS) { "long-lived " } else { "" };
    let first = tenant.classes.first();
    let (size, waste) = first.map_or((0, 0), |stay| (stay.size, stay.waste));
    format!("{}: {lived}{size}-byte objects pin {}", tenant.name, human(waste.into()))
}

fn age(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds.max(0.0).round()).map_or_else(|_| "n/a".to_owned(), duration::human)
}

fn named_numbers(parts: &Fragmentation, screen: &Screen) -> String {
    let mut table = Table::new().name("").number("bytes").number("").name("");
    let mut row = |name: &str, bytes: Option<i128>, meaning: &str| {
        table.row([name, &bytes_or_na(bytes), &size_or_na(bytes), meaning].map(Cell::from));
    };
    row("allocated", parts.allocated.map(i128::from), "asked for and not freed, thread caches included");
    row("active", parts.active.map(i128::from), "pages that hold them; index = 1 - allocated/active");
    row(
        "slab waste",
        parts.slab_waste.map(i128::from),
        "free regions between live objects; only code changes it: lifetimes, pools, fewer size classes",
    );
    row(
        "large padding",
        parts.large_padding.map(i128::from),
        "large allocations rounded up to pages; MALLOC_CONF=cache_oblivious:false saves a page each",
    );
    row(
        "cached",
        parts.cached.map(i128::from),
        "freed, kept by thread caches; fewer threads, or MALLOC_CONF=tcache_max:4096",
    );
    row(
        "unreturned",
        parts.unreturned.map(i128::from),
        "unused dirty and muzzy pages; `offheap purge`, shorter decay times, background_thread:true",
    );
    row("metadata", parts.metadata.map(i128::from), "the allocator's own; grows with arenas (narenas) and extents");
    row("retained", parts.retained.map(i128::from), "address space only: no memory, part of no index");
    row("outside", parts.outside.map(i128::from), "RSS - resident: Go, libraries, stacks, mmap; see `offheap ledger`");
    table.render(screen)
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::analysis::fragmentation::{Limits, assess, classes};
    use crate::analysis::tenants::{Stay, Tenant};
    use crate::view::screen::Screen;
    use offheap_wire::{BinStats, Stats};

    #[test]
    fn it_reads_as_a_sentence() {
        let bins = vec![BinStats {
            size: 448,
            nregs: 64,
            slab_size: 28672,
            curregs: 1000,
            curslabs: 1000,
            ..BinStats::default()
        }];
        let stats = Stats { allocated: Some(448_000), active: Some(28_672_000), bins, ..Stats::default() };
        let waste = 28_224_000;
        let tenant = |name: &str, waste, objects, age| Tenant {
            name: name.into(),
            waste,
            objects,
            age,
            classes: vec![Stay { size: 448, waste, objects }],
        };
        let tenants =
            [tenant("main.handleSessions", waste - 5, 990, Some(7300.0)), tenant("main.handleCache", 5, 10, None)];
        let text = Report {
            parts: &assess(&stats, Limits::default()),
            classes: &classes(&stats.bins),
            large: &[],
            arenas: &[],
            tenants: Some(&tenants),
            shown: 1,
        }
        .render(&Screen::default());
        assert!(text.contains("main.handleSessions: long-lived 448-byte objects pin 26.9 MiB\n"), "{text}");
        assert!(text.contains("2 h 1 min"), "{text}");
        assert!(text.contains("an estimate"), "{text}");
        assert!(text.contains("and 1 more with 5 B\n"), "{text}");
        assert!(text.starts_with("fragmentation index 0.984: fragmented\n"), "{text}");
        assert!(!text.contains("Arenas"), "{text}");
    }
}
