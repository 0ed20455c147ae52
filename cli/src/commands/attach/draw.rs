//! State in, cells out.

use super::lines::signed;
use super::state::State;
use crate::analysis::fragmentation::{Verdict, classes};
use crate::observe::Observation;
use crate::view::amount::{percent_or_na, size_or_na};
use crate::words::duration::moment;
use crate::words::size::human;
use crate::words::text::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table};

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Below this width, panels do not stand side by side: what is in them would be cut off.
const SIDE_BY_SIDE: u16 = 60;
/// Below this height there is no room for the charts, and below that only for one row of panels.
const WITH_CHARTS: u16 = 20;
const WITH_LOWER_PANELS: u16 = 14;

/// Draw everything that there is room for: who holds the memory comes first.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let whole = frame.area();
    let [head, verdict, charts, upper, lower, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(if whole.height >= WITH_CHARTS { 5 } else { 0 }),
        Constraint::Fill(1),
        if whole.height >= WITH_LOWER_PANELS { Constraint::Fill(1) } else { Constraint::Length(0) },
        Constraint::Length(1),
    ])
    .areas(whole);
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]);
    frame.render_widget(heading(state), head);
    frame.render_widget(why(state), verdict);
    let [left, right] = halves.areas(charts);
    chart(frame, left, "RSS", state, Observation::rss);
    chart(frame, right, "allocated", state, |observation| observation.stats.allocated);
    if whole.width >= SIDE_BY_SIDE {
        let [left, right] = halves.areas(upper);
        ledger(frame, left, state);
        fragmentation(frame, right, state);
        let [left, right] = halves.areas(lower);
        size_classes(frame, left, state);
        sites(frame, right, state);
    } else {
        ledger(frame, upper, state);
        sites(frame, lower, state);
    }
    frame.render_widget(footing(state, whole.width), foot);
}

fn heading(state: &State) -> Line<'static> {
    let subject = &state.subject;
    let recording = match state.history.last().and_then(|last| last.profile.as_ref()) {
        Some(profile) if profile.active => Span::styled("recording", Style::new().fg(Color::Red)),
        Some(profile) if profile.recording_since.is_some() => Span::raw("recording stopped"),
        _ => Span::styled("not recording", FAINT),
    };
    let at = state.history.last().map_or_else(String::new, |last| moment(last.taken_at));
    Line::from(vec![
        Span::styled(printable(&subject.name).into_owned(), STRONG),
        Span::raw(format!(" pid {}  jemalloc {}  ", subject.pid, printable(&subject.jemalloc))),
        recording,
        Span::styled(format!("  {at}"), FAINT),
    ])
}

/// Why RSS is what it is, in one line.
fn why(state: &State) -> Line<'static> {
    let Some(verdict) = state.history.last().and_then(|last| last.verdict.as_ref()) else { return Line::default() };
    let growing = if verdict.growing == Some(true) { ", growing" } else { "" };
    Line::from(vec![
        Span::styled(format!("{}{growing}: ", verdict.cause), STRONG),
        Span::raw(printable(&verdict.reasons.join("; ")).into_owned()),
    ])
}

fn footing(state: &State, width: u16) -> Line<'static> {
    if !state.message.is_empty() {
        return Line::styled(printable(&state.message).into_owned(), STRONG);
    }
    let keys = match width {
        64.. => "p profile on/off  s sites now  d dump  u purge  r reset  q quit",
        _ => "q quit p profile s sites d dump u purge",
    };
    Line::styled(keys, FAINT)
}

fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    state: &State,
    figure: impl Fn(&Observation) -> Option<u64> + Copy,
) {
    let series = state.history.series(figure);
    let growth = state.history.growth(figure).map_or_else(String::new, |g| format!("  {}/min", signed(g * 60.0)));
    let now = size_or_na(series.last().copied());
    let block = Block::bordered().title(format!(" {name} {now}{growth} "));
    // The newest at the right edge; from zero, so that a flat line looks flat.
    let room = usize::from(block.inner(area).width);
    let shown: Vec<u64> = series[series.len().saturating_sub(room)..].to_vec();
    frame.render_widget(Sparkline::default().block(block).data(shown).style(Style::new().fg(Color::Cyan)), area);
}

fn ledger(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let block = Block::bordered().title(" RSS by owner ");
    let Some(now) = state.history.last().filter(|now| !now.ledger.is_empty()) else {
        let text = "the mappings of the process cannot be read";
        frame.render_widget(Paragraph::new(if state.readings == 0 { "" } else { text }).block(block), area);
        return;
    };
    let rss = now.rss().unwrap_or_default().max(1);
    let mut rows: Vec<_> = now.ledger.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    let rows = rows.into_iter().map(|row| {
        let of_owner = |observation: &Observation| {
            observation.ledger.iter().find(|other| other.owner == row.owner).map_or(Some(0), |other| Some(other.bytes))
        };
        let growth = state.history.growth(of_owner).filter(|growth| growth.abs() * 60.0 >= 1024.0);
        let share = row.bytes as f64 / rss as f64;
        vec![
            human(row.bytes.into()),
            percent_or_na(Some(share)),
            bar(share, 8),
            growth.map_or_else(String::new, |growth| format!("{}/min", signed(growth * 60.0))),
            row.owner.clone(),
        ]
    });
    columns(frame, area, block, rows, &[(10, 0), (6, 0), (8, 64), (14, 52)]);
}

/// A table whose last column is a name and has the room that the others leave: each of these has a width, and the width
/// of the panel from which it is shown.
fn columns(
    frame: &mut Frame<'_>,
    area: Rect,
    block: Block<'_>,
    rows: impl Iterator<Item = Vec<String>>,
    before_name: &[(u16, u16)],
) {
    let room = block.inner(area).width;
    let shown = |column: usize| before_name.get(column).is_none_or(|(_, from)| room >= *from);
    let rows = rows.map(|cells| {
        let cells = cells.into_iter().enumerate().filter(|(column, _)| shown(*column));
        Row::new(cells.map(|(_, text)| Cell::new(text)))
    });
    let widths = before_name.iter().filter(|(_, from)| room >= *from).map(|(width, _)| Constraint::Length(*width));
    let widths = widths.chain([Constraint::Fill(1)]);
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

fn fragmentation(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let block = Block::bordered().title(" Fragmentation ");
    let Some(now) = state.history.last() else { return frame.render_widget(block, area) };
    let parts = now.fragmentation();
    let colour = match parts.verdict {
        Verdict::Ok => Color::Green,
        Verdict::Fragmented => Color::Red,
        Verdict::Unreliable | Verdict::Unknown => Color::Yellow,
    };
    let index = parts.index.map_or_else(|| "n/a".to_owned(), |index| format!("{index:.3}"));
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("index {index} "), STRONG),
        Span::styled(bar(parts.index.unwrap_or_default(), 20), Style::new().fg(colour)),
        Span::styled(format!(" {}", parts.verdict.name()), Style::new().fg(colour)),
    ])];
    let mut figure = |name: &str, bytes: Option<i128>, meaning: &'static str| {
        lines.push(Line::from(vec![
            Span::raw(format!("{name:<13} {:>10}  ", size_or_na(bytes))),
            Span::styled(meaning, FAINT),
        ]));
    };
    figure("slab waste", parts.slab_waste.map(i128::from), "free regions between live objects");
    figure("cached", parts.cached.map(i128::from), "freed, in thread caches");
    figure("unreturned", parts.unreturned.map(i128::from), "unused pages; u gives them back");
    figure("metadata", parts.metadata.map(i128::from), "of the allocator");
    figure("outside", parts.outside.map(i128::from), "RSS - resident: Go, libraries, mmap");
    figure("retained", parts.retained.map(i128::from), "address space only");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn size_classes(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let block = Block::bordered().title(" Size classes by waste ");
    let rows = state.history.last().map(|now| classes(&now.stats.bins)).unwrap_or_default();
    let rows = rows.into_iter().map(|class| {
        vec![
            human(class.waste.into()),
            percent_or_na(class.share),
            class.size.to_string(),
            format!("{} used", percent_or_na(class.utilization)),
            format!("{} regions in {} slabs", class.curregs, class.curslabs),
        ]
    });
    columns(frame, area, block, rows, &[(10, 0), (6, 50), (8, 0), (11, 0)]);
}

fn sites(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let block = Block::bordered().title(" Live off-heap bytes by function ");
    if state.sites.is_empty() {
        let text = if state.is_recorded() { "taking a profile …" } else { "press p to record allocations" };
        frame.render_widget(Paragraph::new(text).style(FAINT).block(block), area);
        return;
    }
    let rows = state.sites.iter().map(|site| {
        let change = site.before.map(|before| site.bytes - before).filter(|change| *change != 0);
        vec![
            human(site.bytes.into()),
            change.map_or_else(String::new, |change| signed(change as f64)),
            printable(&site.name).into_owned(),
        ]
    });
    columns(frame, area, block, rows, &[(10, 0), (11, 50)]);
}

/// A bar of at most `width` cells, in eighths.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::super::state::{Event, State, Subject};
    use super::{bar, draw};
    use crate::observe::{Observation, OwnerBytes, SiteBytes, VerdictLine};
    use offheap_wire::{BinStats, Stats};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn shown(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_that_is_known_is_on_the_screen() {
        let mut state = State {
            subject: Subject { name: "rocks\x1bdb".into(), pid: 17, jemalloc: "5.3.1".into() },
            ..State::default()
        };
        let empty = shown(&state, 120, 40);
        assert!(empty.contains("not recording") && empty.contains("q quit"), "{empty}");
        let bin = BinStats { size: 448, nregs: 64, slab_size: 28672, curregs: 6, curslabs: 3, ..BinStats::default() };
        for second in [0, 3, 6] {
            state.apply(Event::Observed(Box::new(Observation {
                taken_at: f64::from(second),
                stats: Stats {
                    allocated: Some((100 + second as u64 / 3) << 20),
                    active: Some(400 << 20),
                    bins: vec![bin.clone()],
                    ..Stats::default()
                },
                ledger: vec![OwnerBytes { owner: "jemalloc live".into(), bytes: 300 << 20 }],
                verdict: Some(VerdictLine {
                    cause: "fragmentation".into(),
                    growing: Some(true),
                    reasons: vec!["half is holes".into()],
                }),
                ..Observation::default()
            })));
        }
        state.apply(Event::Sites(vec![SiteBytes { name: "main.handleExport".into(), bytes: 5 << 20 }]));
        let full = shown(&state, 140, 40);
        for part in [
            "rocks\\u{1b}db pid 17",
            "RSS 300.0 MiB",
            "allocated 102.0 MiB  +20.0 MiB/min",
            "100.0% ████████",
            "jemalloc live",
            "fragmentation, growing: half is holes",
            "index 0.745",
            "fragmented",
            "3.1% used",
            "main.handleExport",
        ] {
            assert!(full.contains(part), "`{part}` is missing in\n{full}");
        }
    }

    #[test]
    fn names_are_the_last_thing_that_a_small_terminal_loses() {
        let mut state = State::default();
        state.apply(Event::Observed(Box::new(Observation {
            ledger: vec![OwnerBytes { owner: "jemalloc unreturned".into(), bytes: 300 << 20 }],
            ..Observation::default()
        })));
        state.apply(Event::Sites(vec![SiteBytes { name: "main.handleExport".into(), bytes: 5 << 20 }]));
        for (width, height, parts) in [
            (80, 24, &["300.0 MiB", "jemalloc unreturned", "main.handleExport", "index", "q quit"][..]),
            (40, 16, &["300.0 MiB", "jemalloc unreturned", "main.handleExport", "q quit"]),
            (40, 10, &["300.0 MiB", "jemalloc unreturned", "q quit"]),
        ] {
            let text = shown(&state, width, height);
            for part in parts {
                assert!(text.contains(part), "`{part}` is missing at {width} x {height} in\n{text}");
            }
        }
    }

    #[test]
    fn a_tiny_terminal_is_no_fault() {
        for (width, height) in [(1, 1), (20, 5), (300, 3)] {
            shown(&State::default(), width, height);
        }
    }

    #[test]
    fn bars() {
        for (share, expected) in
            [(0.0, ""), (1.0, "████"), (0.5, "██"), (1.0 / 32.0, "▏"), (2.0, "████"), (-1.0, ""), (f64::NAN, "")]
        {
            assert_eq!(bar(share, 4), expected, "{share}");
        }
    }
}
