use crate::ProfileState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who is serving the socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Always `offheap.info/1`.
    pub schema: String,
    /// Version of the agent.
    pub agent_version: String,
    /// Version string of the jemalloc inside.
    pub jemalloc_version: String,
    /// Process id of the host, in its own pid namespace.
    pub pid: u32,
    /// Path of the host's executable, if `/proc/self/exe` could be read.
    pub exe: Option<String>,
    /// Start time of the host, Unix seconds.
    pub started_at: Option<f64>,
    /// Path of the socket that this answer came through.
    pub socket: String,
    /// Which allocator answers the host's `malloc`: `true` when it is the agent's jemalloc.
    pub malloc_is_ours: bool,
    /// `config.*` and `opt.*` of jemalloc.
    pub jemalloc: JemallocConfig,
    /// Profiling state.
    pub profile: ProfileState,
    /// Counters of the agent itself.
    pub agent: AgentCounters,
}

/// jemalloc's `config.*` and `opt.*` as text, keyed by the name after the dot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JemallocConfig {
    /// Build-time configuration.
    pub config: BTreeMap<String, String>,
    /// Run-time options.
    pub opt: BTreeMap<String, String>,
}

/// What the agent did and what it had to leave out. Cumulative counts unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCounters {
    /// Bytes that the agent itself holds in its own arena.
    pub own_bytes: u64,
    /// Stacks recorded by the hook.
    pub stacks: u64,
    /// Stacks that crossed from C into Go.
    pub stacks_with_go: u64,
    /// Stacks that ended early, by reason.
    pub stack_ends: BTreeMap<String, u64>,
    /// Live samples that did not fit into the sample table.
    pub samples_dropped: u64,
    /// Live samples in the table now.
    pub samples_live: u64,
    /// Requests answered.
    pub requests: u64,
    /// Connections refused: wrong peer, too many, malformed or too slow.
    pub rejected: u64,
    /// Dumps made.
    pub dumps: u64,
    /// Other keys, for counters that a newer agent adds.
    #[serde(flatten)]
    pub more: BTreeMap<String, u64>,
}
