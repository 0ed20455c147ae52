use serde::{Deserialize, Serialize};

/// The rules by which the agent writes a sample table to a directory by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Triggers {
    /// Always `offheap.triggers/1`.
    pub schema: String,
    /// The rules, oldest first.
    pub triggers: Vec<Trigger>,
}

/// One rule and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trigger {
    /// Number by which it is removed.
    pub id: u64,
    /// The condition as text: `rss>1500000000`, `allocated>N`, `cgroup>80%`, `rss+50%`, `index>0.35`.
    pub when: String,
    /// Least time between two files, seconds.
    pub every: f64,
    /// Where the files go.
    pub directory: String,
    /// Most files kept in the directory.
    pub keep_files: u64,
    /// Most bytes of files kept in the directory; the newest file is kept in any case.
    pub keep_bytes: u64,
    /// Last value read, in the condition's own unit (bytes, or a ratio); `None` when it could not be read.
    pub value: Option<f64>,
    /// Value at which the condition holds.
    pub threshold: f64,
    /// Files written.
    pub fired: u64,
    /// Unix time of the last file.
    pub last_fired_at: Option<f64>,
    /// Path of the last file.
    pub last_file: Option<String>,
    /// Why the last attempt left no file.
    pub last_error: Option<String>,
}
