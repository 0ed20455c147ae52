use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Worth knowing.
    Info,
    /// Costs memory or time, or will under load.
    Warning,
    /// Ends in a kill, a stall, or in no measurement at all.
    Critical,
}

impl Severity {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Stable name of the rule.
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    /// What was read, and where.
    pub(crate) evidence: String,
    /// Why it matters.
    pub(crate) why: String,
    /// The change to make.
    pub(crate) remedy: String,
}
