//! jemalloc's controls, its reports and its messages behind safe functions: what is unsafe about them stays in here.

#[allow(unsafe_code)]
mod call;
mod error;
#[allow(unsafe_code)]
mod extents;
#[allow(unsafe_code)]
mod mib;
#[allow(unsafe_code)]
mod profiling;
mod switches;
#[allow(unsafe_code)]
mod table;
#[allow(unsafe_code)]
mod text;

pub(super) use call::read;
pub(super) use error::MallctlError;
pub(super) use extents::Extents;
pub(super) use mib::Mib;
pub(crate) use profiling::prof_active;
pub(super) use profiling::{
    dump_to, install_hooks, lg_sample, opt_prof, opt_prof_unbias, pass_bytes, reset_prof, set_prof_active,
    set_prof_active_here,
};
pub(super) use switches::{ALL_ARENAS, advance_epoch, purge, set_background_thread, version};
pub(super) use table::{Control, Kind, Value};
pub(super) use text::{stats_print, tell_messages_to};
