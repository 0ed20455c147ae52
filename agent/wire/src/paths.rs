//! Paths of the endpoints and of the default socket.

/// `GET`: [`Info`](crate::Info).
pub const INFO: &str = "/v1/info";
/// `GET`: [`Stats`](crate::Stats).
pub const STATS: &str = "/v1/stats";
/// `GET`: the JSON of `malloc_stats_print`, as jemalloc writes it.
pub const STATS_JEMALLOC: &str = "/v1/stats/jemalloc";
/// `GET`: Prometheus text.
pub const METRICS: &str = "/metrics";
/// `GET`/`PUT`: prefix of a mallctl by name.
pub const MALLCTL_PREFIX: &str = "/v1/mallctl/";
/// `POST`, `?lg_sample=N`: [`ProfileState`](crate::ProfileState) after.
pub const PROFILE_START: &str = "/v1/profile/start";
/// `POST`: [`ProfileState`](crate::ProfileState) after.
pub const PROFILE_STOP: &str = "/v1/profile/stop";
/// `POST`: [`ProfileState`](crate::ProfileState) after.
pub const PROFILE_RESET: &str = "/v1/profile/reset";
/// `GET`: the `heap_v2` dump.
pub const PROFILE_HEAP: &str = "/v1/profile/heap";
/// `GET`: [`SampleTable`](crate::SampleTable).
pub const PROFILE_SAMPLES: &str = "/v1/profile/samples";
/// `GET`: [`Triggers`](crate::Triggers). `POST` with rules as text: the same, with the new ones. `DELETE` of this path
/// followed by `/ID`: the same, without it.
pub const TRIGGERS: &str = "/v1/triggers";
/// `GET`: [`HeapMap`](crate::HeapMap).
pub const HEAP_MAP: &str = "/v1/heap_map";
/// `POST`: [`Purge`](crate::Purge).
pub const PURGE: &str = "/v1/purge";
/// `POST` or `GET`: published alias of [`PROFILE_START`].
pub const PPROF_START: &str = "/debug/pprof/jemalloc/start";
/// `POST` or `GET`: published alias of [`PROFILE_STOP`].
pub const PPROF_STOP: &str = "/debug/pprof/jemalloc/stop";
/// `GET`: published alias of [`PROFILE_HEAP`].
pub const PPROF_DUMP: &str = "/debug/pprof/jemalloc/dump";

/// Directory of the default socket: this prefix followed by the effective uid.
pub const SOCKET_DIR_PREFIX: &str = "/tmp/offheap-";
/// The default socket is `<pid>` followed by this.
pub const SOCKET_SUFFIX: &str = ".sock";
/// Longest path a Unix socket address holds, in bytes, without the terminating NUL.
pub const SOCKET_PATH_MAX: usize = 107;
/// File name of the agent, by which a preloaded process is recognised in its mappings.
pub const AGENT_FILE_NAME: &str = "liboffheap_agent.so";
