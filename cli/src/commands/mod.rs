//! One file a command: its arguments and what it does.

pub(crate) mod attach;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod flame;
pub(crate) mod frag;
pub(crate) mod ledger;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod peek;
pub(crate) mod profile;
pub(crate) mod ps;
pub(crate) mod purge;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod top;
pub(crate) mod tree;
pub(crate) mod trigger;
