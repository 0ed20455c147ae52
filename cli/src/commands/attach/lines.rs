//! One line a reading, for logs and pipes.

use super::state::History;
use crate::exit::Outcome;
use crate::interrupt::Interrupt;
use crate::observe::{Observation, Observer};
use crate::output;
use crate::view::amount::size_or_na;
use crate::view::json;
use crate::words::duration::moment;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Print until the host ends, the count is reached, or a signal comes.
pub(super) fn run(observer: &Observer, every: Duration, count: Option<u64>, json: bool) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::hold();
    let mut history = History::default();
    let mut next = Instant::now();
    for number in 0.. {
        if count.is_some_and(|count| number >= count) {
            break;
        }
        let observation = match observer.observe() {
            Ok(observation) => observation,
            Err(error) if number == 0 => return Err(error),
            Err(error) => {
                output::note(&format!("{error:#}"));
                break;
            }
        };
        history.push(observation);
        if let Some(last) = history.last() {
            output::print(&if json { json::line("attach", last)? } else { line(last, &history) })?;
        }
        next += every;
        let is_last = count.is_some_and(|count| number + 1 >= count);
        if !is_last && interrupt.wait(next.saturating_duration_since(Instant::now())) {
            break;
        }
    }
    Ok(Outcome::Done)
}

fn line(now: &Observation, history: &History) -> String {
    let parts = now.fragmentation();
    let mut line = format!("{} rss {}", moment(now.taken_at), size_or_na(now.rss()));
    if let Some(growth) = history.growth(Observation::rss) {
        let _ = write!(line, " ({}/min)", signed(growth * 60.0));
    }
    let _ = write!(line, "  allocated {}", size_or_na(now.stats.allocated));
    if let Some(growth) = history.growth(|observation| observation.stats.allocated) {
        let _ = write!(line, " ({}/min)", signed(growth * 60.0));
    }
    let index = parts.index.map_or_else(|| "n/a".to_owned(), |index| format!("{index:.3}"));
    let _ = write!(
        line,
        "  active {}  index {index}  slab waste {}  unreturned {}  outside {}",
        size_or_na(now.stats.active),
        size_or_na(parts.slab_waste),
        size_or_na(parts.unreturned),
        size_or_na(parts.outside)
    );
    if let Some(verdict) = &now.verdict {
        let _ = write!(line, "  verdict: {}", verdict.cause);
    }
    if now.profile.as_ref().is_some_and(|profile| profile.active) {
        line.push_str("  recording");
    }
    line.push('\n');
    line
}

/// A size with its sign.
pub(super) fn signed(bytes: f64) -> String {
    let bytes = bytes as i128;
    let sign = if bytes >= 0 { "+" } else { "" };
    format!("{sign}{}", crate::words::size::human(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::state::History;
    use super::line;
    use crate::observe::Observation;
    use offheap_wire::Stats;

    #[test]
    fn the_second_line_tells_the_growth() {
        let observation = |taken_at, rss| Observation {
            taken_at,
            stats: Stats { rss: Some(rss), allocated: Some(3 << 20), active: Some(4 << 20), ..Stats::default() },
            ..Observation::default()
        };
        let mut history = History::default();
        history.push(observation(0.0, 1 << 30));
        assert_eq!(
            line(history.last().unwrap(), &history),
            "1970-01-01T00:00:00Z rss 1.00 GiB  allocated 3.00 MiB  active 4.00 MiB  index 0.250  slab waste n/a  \
             unreturned n/a  outside n/a\n"
        );
        history.push(observation(30.0, (1 << 30) + (5 << 20)));
        assert!(
            line(history.last().unwrap(), &history)
                .contains("rss 1.00 GiB (+10.0 MiB/min)  allocated 3.00 MiB (+0 B/min)")
        );
    }
}
