//! Controls of the whole allocator that the agent sets.

use super::error::MallctlError;
use super::table::{Control, Value};
use tikv_jemalloc_ctl as ctl;

/// Version as jemalloc tells it.
pub(crate) fn version() -> Option<String> {
    ctl::version::read().ok().map(str::to_owned)
}

/// Makes jemalloc compute its statistics anew; they stand still otherwise.
pub(crate) fn advance_epoch() -> Result<(), MallctlError> {
    set("epoch", &Value::U64(1))
}

/// jemalloc gives unused pages back on a thread of its own. Switched on here and not by the configuration, which would
/// start it in the middle of the host's first allocation and aborts hosts that are not ready for that.
pub(crate) fn set_background_thread(on: bool) -> Result<(), MallctlError> {
    set("max_background_threads", &Value::Size(1))?;
    set("background_thread", &Value::Bool(on))
}

/// Gives the unused pages of all arenas back to the kernel.
pub(crate) fn purge() -> Result<(), MallctlError> {
    set(&format!("arena.{ALL_ARENAS}.purge"), &Value::Act)
}

/// Index under which jemalloc adds up all arenas, and acts on them (`MALLCTL_ARENAS_ALL`).
pub(crate) const ALL_ARENAS: usize = 4096;

fn set(name: &str, value: &Value) -> Result<(), MallctlError> {
    let unknown = || MallctlError { name: name.to_owned(), errno: libc::ENOENT };
    Control::find(name).ok_or_else(unknown)?.set(value)
}
