use super::mallctl::{self, MallctlError};
use super::{process, stats};
use offheap_wire::Purge;

/// Gives the unused pages of all arenas back to the kernel.
pub(crate) fn purge_all() -> Result<Purge, MallctlError> {
    let resident = || {
        mallctl::advance_epoch()?;
        Ok::<_, MallctlError>(stats::size("stats.resident").unwrap_or(0))
    };
    let (resident_before, rss_before) = (resident()?, process::rss());
    mallctl::purge()?;
    Ok(Purge { resident_before, resident_after: resident()?, rss_before, rss_after: process::rss() })
}
