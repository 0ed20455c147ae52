use serde::{Deserialize, Serialize};

/// State of allocation profiling in the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileState {
    /// jemalloc was built and configured with profiling (`opt.prof`); without it nothing can be recorded.
    pub available: bool,
    /// Allocations are being sampled now (`prof.active`).
    pub active: bool,
    /// Base-2 logarithm of the mean number of bytes between samples.
    pub lg_sample: u32,
    /// Unix time at which recording began; `None` when nothing was ever recorded or after a reset while stopped.
    pub recording_since: Option<f64>,
    /// jemalloc writes dumps whose printed values are pre-compensated for per-stack unbiasing (`opt.prof_unbias`).
    pub prof_unbias: bool,
}
