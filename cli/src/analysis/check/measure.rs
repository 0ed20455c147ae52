//! One reading, compared with the thresholds.

use super::thresholds::{HYSTERESIS, Thresholds};
use crate::analysis::fragmentation::{self, Fragmentation, Limits};
use crate::words::size::human;
use offheap_wire::Stats;

/// The heap of C is fragmented, in a process that is large.
pub(crate) const HIGH_FRAGMENTATION: &str = "HighMemoryFragmentation";
/// RSS is a multiple of what Go accounts for, in a process that is large.
pub(crate) const GO_MISMATCH: &str = "GoHeapToRssMismatch";

/// What is judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) stats: Stats,
    /// Bytes of Go heap in use, or why they are not known; `None` when nobody asked for them.
    pub(crate) go_in_use: Option<Result<u64, String>>,
    /// Working set of the control group, shown beside RSS.
    pub(crate) working_set: Option<u64>,
}

/// Where a reading stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Every part of the condition is met.
    Above,
    /// Not met, by so little that a condition that held goes on.
    Between,
    Below,
    /// It could not be measured.
    Unknown,
}

/// One condition of one reading.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observation {
    pub(super) level: Level,
    pub(super) value: Option<f64>,
    /// The numbers that decided.
    pub(super) reason: String,
}

impl Sample {
    /// RSS; a saved report does not have it, and what is resident of the allocator is the part of it that matters.
    pub(super) fn rss(&self) -> Option<(u64, &'static str)> {
        let rss = self.stats.rss.map(|rss| (rss, "RSS"));
        rss.or_else(|| self.stats.resident.map(|resident| (resident, "resident (the report has no RSS)")))
    }

    pub(super) fn index(&self) -> Option<f64> {
        fragmentation::index(self.stats.allocated, self.stats.active)
    }

    pub(super) fn go_ratio(&self) -> Option<f64> {
        let heap = self.go_in_use.as_ref()?.as_ref().ok().filter(|heap| **heap > 0)?;
        Some(self.stats.rss? as f64 / *heap as f64)
    }

    /// Index and RSS above their thresholds.
    pub(super) fn fragmentation(&self, thresholds: &Thresholds) -> Observation {
        let limits = Limits { index: thresholds.index, min_waste: thresholds.min_waste };
        let found = fragmentation::assess(&self.stats, limits);
        let unknown = |reason: String| Observation { level: Level::Unknown, value: found.index, reason };
        if !found.is_measured() {
            return unknown(found.reasons.join("; "));
        }
        let Some(index) = found.index else { return unknown("there is no index".into()) };
        let Some((rss, what)) = self.rss() else { return unknown("RSS is not known".into()) };
        let held = |part: f64| {
            index > thresholds.index * part
                && rss as f64 > thresholds.min_rss as f64 * part
                && lost(&found) as f64 >= thresholds.min_waste as f64 * part
        };
        Observation { level: level(held), value: Some(index), reason: self.why(thresholds, &found, index, rss, what) }
    }

    fn why(&self, thresholds: &Thresholds, found: &Fragmentation, index: f64, rss: u64, what: &str) -> String {
        let index_is = if index > thresholds.index { "above" } else { "not above" };
        let mut reason = format!("index {index:.3} {index_is} {}", thresholds.index);
        if index > thresholds.index {
            let is = if rss > thresholds.min_rss { "above" } else { "not above" };
            let (rss, least) = (human(rss.into()), human(thresholds.min_rss.into()));
            reason.push_str(&format!(", {what} {rss} {is} {least}"));
            if lost(found) < thresholds.min_waste {
                reason.push_str(&format!(", of a heap that loses only {} by it", human(lost(found).into())));
            }
        }
        reason
    }

    /// RSS ÷ Go heap and RSS above their thresholds; `None` when nobody asked.
    pub(super) fn go_mismatch(&self, thresholds: &Thresholds) -> Option<Observation> {
        let unknown = |reason: String| Some(Observation { level: Level::Unknown, value: None, reason });
        let heap = match self.go_in_use.as_ref()? {
            Ok(heap) => *heap,
            Err(error) => return unknown(format!("the Go heap could not be read: {error}")),
        };
        let Some(rss) = self.stats.rss else { return unknown("RSS is not known".into()) };
        if heap == 0 {
            return unknown("the Go heap in use is 0: not a measurement of a running Go program".into());
        }
        let ratio = rss as f64 / heap as f64;
        let held = |part: f64| ratio > thresholds.go_ratio * part && rss as f64 > thresholds.go_min_rss as f64 * part;
        let is = if ratio > thresholds.go_ratio { "above" } else { "not above" };
        let mut reason = format!(
            "RSS {} is {ratio:.2} times the Go heap in use ({}), {is} {}",
            human(rss.into()),
            human(heap.into()),
            thresholds.go_ratio
        );
        if ratio > thresholds.go_ratio {
            let is = if rss > thresholds.go_min_rss { "above" } else { "not above" };
            reason.push_str(&format!(", RSS {is} {}", human(thresholds.go_min_rss.into())));
        }
        Some(Observation { level: level(held), value: Some(ratio), reason })
    }
}

fn level(held: impl Fn(f64) -> bool) -> Level {
    if held(1.0) {
        Level::Above
    } else if held(HYSTERESIS) {
        Level::Between
    } else {
        Level::Below
    }
}

fn lost(found: &Fragmentation) -> u64 {
    found.active.zip(found.allocated).map_or(0, |(active, allocated)| active.saturating_sub(allocated))
}

#[cfg(test)]
mod tests {
    use super::{Level, Sample};
    use crate::analysis::check::Thresholds;
    use offheap_wire::Stats;

    const GB: u64 = 1_000_000_000;

    fn sample(allocated: u64, active: u64, rss: Option<u64>) -> Sample {
        let stats = Stats { allocated: Some(allocated), active: Some(active), rss, ..Stats::default() };
        Sample { stats, ..Sample::default() }
    }

    #[test]
    fn fragmentation_needs_index_size_and_waste() {
        for (label, sample, level) in [
            ("both above", sample(GB, 2 * GB, Some(3 * GB)), Level::Above),
            ("index at the threshold", sample(65 * GB / 100, GB, Some(3 * GB)), Level::Between),
            ("index a little below", sample(66 * GB / 100, GB, Some(3 * GB)), Level::Between),
            ("index well below", sample(70 * GB / 100, GB, Some(3 * GB)), Level::Below),
            ("RSS at the threshold", sample(GB / 2, GB, Some(3 * GB / 2)), Level::Between),
            ("RSS small", sample(GB / 2, GB, Some(GB)), Level::Below),
            ("tiny heap in a large process", sample(1 << 20, 4 << 20, Some(9 * GB)), Level::Below),
            ("nothing known", Sample::default(), Level::Unknown),
            ("no size known", sample(GB, 2 * GB, None), Level::Unknown),
            ("allocated above active", sample(2 * GB, GB, Some(3 * GB)), Level::Unknown),
            ("underflowed", sample(u64::MAX - 9, GB, Some(3 * GB)), Level::Unknown),
            ("active far above RSS", sample(GB, 9 * GB, Some(2 * GB)), Level::Unknown),
            ("all zero", sample(0, 0, Some(2 * GB)), Level::Unknown),
        ] {
            let found = sample.fragmentation(&Thresholds::default());
            assert_eq!(found.level, level, "{label}: {}", found.reason);
            assert!(!found.reason.is_empty(), "{label}");
        }
    }

    #[test]
    fn what_is_resident_stands_in_for_rss_of_saved_reports() {
        let mut saved = sample(GB, 2 * GB, None);
        saved.stats.resident = Some(3 * GB);
        let found = saved.fragmentation(&Thresholds::default());
        assert_eq!(found.level, Level::Above);
        assert!(found.reason.contains("no RSS"), "{}", found.reason);
        saved.go_in_use = Some(Ok(GB));
        assert_eq!(saved.go_mismatch(&Thresholds::default()).unwrap().level, Level::Unknown);
    }

    #[test]
    fn the_go_heap_is_compared_only_when_asked_for() {
        let with = |heap, rss| Sample { go_in_use: heap, ..sample(1, 1, Some(rss)) };
        assert_eq!(with(None, 9 * GB).go_mismatch(&Thresholds::default()), None);
        for (label, sample, level) in [
            ("both above", with(Some(Ok(GB)), 4 * GB), Level::Above),
            ("ratio at the threshold", with(Some(Ok(GB)), 3 * GB), Level::Between),
            ("ratio below", with(Some(Ok(2 * GB)), 4 * GB), Level::Below),
            ("RSS small", with(Some(Ok(GB / 10)), GB), Level::Below),
            ("zero", with(Some(Ok(0)), 4 * GB), Level::Unknown),
            ("unread", with(Some(Err("refused".into())), 4 * GB), Level::Unknown),
        ] {
            assert_eq!(sample.go_mismatch(&Thresholds::default()).unwrap().level, level, "{label}");
        }
    }
}
