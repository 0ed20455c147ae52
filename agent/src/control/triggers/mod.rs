//! Files that exist when the pod has died: rules that make the agent write its sample table by itself.

mod cgroup;
mod file;
mod keeper;
mod rule;

pub(crate) use keeper::{Keeper, LOOK_INTERVAL};
pub(crate) use rule::{RuleError, parse};
