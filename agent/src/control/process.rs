//! Facts about the host from `/proc`.
//!
//! Where the host's first thread has ended, what `self` says of memory is empty; `thread-self` goes on.

use crate::kernel;
use std::fs;

/// RSS in bytes.
pub(crate) fn rss() -> Option<u64> {
    rss_in(&fs::read_to_string("/proc/thread-self/statm").ok()?, kernel::page_size())
}

/// `size resident shared text lib data dt`, in pages.
fn rss_in(statm: &str, page_size: u64) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(page_size)
}

/// Path of the executable.
pub(crate) fn exe() -> Option<String> {
    Some(fs::read_link("/proc/thread-self/exe").ok()?.to_string_lossy().into_owned())
}

/// Name of the machine or container.
pub(crate) fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim_end().to_owned())
}

/// Start time, Unix seconds.
pub(crate) fn started_at() -> Option<f64> {
    let ticks_per_second = kernel::clock_ticks();
    let since_boot = start_ticks(&fs::read_to_string("/proc/self/stat").ok()?)? as f64 / ticks_per_second;
    Some(boot_time(&fs::read_to_string("/proc/stat").ok()?)? + since_boot)
}

/// Field 22 of `/proc/PID/stat`; field 2 is the name in parentheses and may hold anything.
///
/// ```text
/// 42 (a b) c) S 1 42 …
/// ```
fn start_ticks(stat: &str) -> Option<u64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// `btime 1732980000` in `/proc/stat`.
fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Now, Unix seconds.
pub(crate) fn now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statm_is_in_pages() {
        assert_eq!(rss_in("100 25 3 1 0 9 0\n", 65536), Some(25 * 65536));
        assert_eq!(rss_in("100", 4096), None);
    }

    #[test]
    fn start_time_survives_a_hostile_name() {
        let fields = (3..=52).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(start_ticks(&format!("7 (a) (b c) {fields}")), Some(22));
    }

    #[test]
    fn this_process_started_before_now() {
        let started = started_at().unwrap();
        assert!(started > 1e9 && started <= now() + 1.0);
        assert!(rss().unwrap() > 0);
    }
}
