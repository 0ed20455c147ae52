use serde::{Deserialize, Serialize};

/// Body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What went wrong, what was expected, and what to do next.
    pub error: String,
}
