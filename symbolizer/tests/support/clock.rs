//! Time that a busy machine does not lengthen.

use std::time::Instant;

/// Processor time of this thread; the time of day where the kernel does not tell it.
pub(crate) struct Clock {
    processor: Option<f64>,
    wall: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { processor: processor_seconds(), wall: Instant::now() }
    }

    pub(crate) fn seconds(&self) -> f64 {
        let processor = self.processor.zip(processor_seconds()).map(|(start, end)| end - start);
        processor.unwrap_or_else(|| self.wall.elapsed().as_secs_f64())
    }
}

/// The first number of `schedstat`: nanoseconds on a processor.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}
