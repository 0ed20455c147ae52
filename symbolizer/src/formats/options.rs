//! What a reader is asked to do.

use std::time::Duration;

/// Options of [`parse_with`](super::parse_with).
#[derive(Clone, Debug, Default)]
pub struct ParseOptions {
    /// Keep threads apart: a sample for each stack and thread, with a `thread` label.
    pub by_thread: bool,
    /// Keep size classes apart: a sample for each stack and class, whose `bytes` label is the class and whose `age` label
    /// is the mean age in seconds. Only the sample table knows them; wins over `by_thread`.
    pub by_size: bool,
    /// Live allocations younger than this are left out. Only the sample table knows ages.
    pub min_age: Option<Duration>,
    /// Live allocations older than this are left out. Only the sample table knows ages.
    pub max_age: Option<Duration>,
    /// The name of the input says that it is folded stacks: then they may all be one frame deep, or none.
    pub folded_by_name: bool,
    /// Most bytes that a compressed input may decompress to; `None` for [`Self::default_limit`].
    pub max_inflated_bytes: Option<u64>,
}

impl ParseOptions {
    /// The limit of a compressed input of this size: 32 MiB, or 200 times its size when that is more.
    ///
    /// Real dumps compress to a fifth or a tenth. The most repetitive input in the tests, one folded stack of 40,000
    /// frames, reaches 1:168, and a gzip bomb 1:1000. What is parsed takes up to some fifty times its bytes in memory, so
    /// the limit is not generous.
    #[must_use]
    pub fn default_limit(compressed_bytes: u64) -> u64 {
        const FLOOR: u64 = 32 << 20;
        const RATIO: u64 = 200;
        compressed_bytes.saturating_mul(RATIO).max(FLOOR)
    }
}
