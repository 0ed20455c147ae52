//! The threads that ask the agent, so that the screen never waits for a host.

use super::state::{Ask, Event};
use crate::capture::capture;
use crate::observe::Observer;
use crate::words::size::human;
use offheap_symbolizer::{SymbolizeOptions, formats};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Sites that are shown at most.
const SITES: usize = 60;

/// Read at each interval, until the screen is gone or the host is.
pub(super) fn read(observer: &Observer, every: Duration, stop: &Receiver<()>, events: &Sender<Event>) {
    let mut next = Instant::now();
    loop {
        let event = match observer.observe() {
            Ok(observation) => Event::Observed(Box::new(observation)),
            Err(error) => Event::Ended(format!("{error:#}")),
        };
        let ended = matches!(event, Event::Ended(_));
        if events.send(event).is_err() || ended {
            return;
        }
        // A slow host must not be asked again for what was missed.
        next = (next + every).max(Instant::now());
        match stop.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Do what is asked for, one after the other.
pub(super) fn work(observer: &Arc<Observer>, asks: &Receiver<Ask>, events: &Sender<Event>) {
    for ask in asks {
        let event = match done(observer, ask) {
            Ok(event) => event,
            Err(error) => Event::Message(format!("{error:#}")),
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

fn done(observer: &Observer, ask: Ask) -> anyhow::Result<Event> {
    let agent = observer.agent();
    let message = match ask {
        Ask::Sites => return observer.sites(SITES).map(Event::Sites),
        Ask::StartOrStop if agent.info()?.profile.active => {
            agent.profile_stop()?;
            "recording stopped; what was recorded can still be dumped".to_owned()
        }
        Ask::StartOrStop => {
            let state = agent.profile_start(None)?;
            format!("recording, one sample in {} on average", human(1_i128 << state.lg_sample.min(60)))
        }
        Ask::Reset => {
            agent.profile_reset()?;
            "forgot what was recorded".to_owned()
        }
        Ask::Purge => {
            let purge = agent.purge()?;
            let gain = i128::from(purge.resident_before) - i128::from(purge.resident_after);
            format!("purged: {} given back to the system", human(gain))
        }
        Ask::Dump => {
            let path = free_path(agent.pid().unwrap_or_default());
            let profile = capture(agent, SymbolizeOptions::default())?.profile;
            crate::output::write(&path, &formats::pprof::encode(&profile))?;
            format!("wrote {}", path.display())
        }
    };
    Ok(Event::Message(message))
}

/// A file name that is not taken: `offheap.1234.1.pb.gz`.
fn free_path(pid: u32) -> PathBuf {
    let name = |number: u32| PathBuf::from(format!("offheap.{pid}.{number}.pb.gz"));
    (1..u32::MAX).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}
