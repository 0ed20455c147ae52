//! Progress of long work: on standard error, only when it is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// How long work may take before the bar appears; what is over sooner would only flicker.
const TICK: Duration = Duration::from_millis(120);

/// A spinner with a message; it is erased when the value is dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Show that work has begun. `indicatif` itself stays silent when standard error is no terminal.
    pub(crate) fn start(message: impl Into<String>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::default_spinner());
        bar.set_message(message.into());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Say what is being done now.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.0.set_message(message.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
