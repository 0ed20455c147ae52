//! Asking the agents.

use super::exposition::Exposition;
use crate::analysis::fragmentation::classes;
use crate::capture::capture;
use crate::client::Agent;
use crate::go_endpoint::GoEndpoint;
use offheap_symbolizer::{SymbolizeOptions, formats};
use offheap_wire::Stats;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, mpsc};
use std::time::{Duration, Instant};

/// A host that does not answer within this time is down for this scrape; Prometheus itself waits for ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// A reading this young is handed out again.
const FRESH: Duration = Duration::from_millis(500);

/// One target, under the name that was typed.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) name: String,
    go: Option<GoEndpoint>,
    /// A reading is under way: a host that hangs is not asked again and again.
    busy: AtomicBool,
    /// Guards: the last reading.
    last: Mutex<Option<(Instant, Reading)>>,
    /// Guards: that one profile is taken at a time.
    profiling: Mutex<()>,
}

/// What one scrape learnt.
#[derive(Clone, Debug)]
struct Reading {
    page: String,
    stats: Stats,
    pid: Option<u32>,
    go_in_use: Option<u64>,
}

/// Why there is no profile.
#[derive(Debug)]
pub(super) enum NoProfile {
    /// Another one is being taken.
    Busy,
    Failed(String),
}

impl Served {
    /// A target, and where its Go heap is read when it is to be served too.
    pub(crate) fn new(name: &str, go: Option<GoEndpoint>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            go,
            busy: AtomicBool::new(false),
            last: Mutex::default(),
            profiling: Mutex::default(),
        })
    }

    fn reading(self: &Arc<Self>) -> Result<Reading, String> {
        if let Some((at, reading)) = &*self.last.lock().unwrap_or_else(PoisonError::into_inner)
            && at.elapsed() < FRESH
        {
            return Ok(reading.clone());
        }
        if self.busy.swap(true, Ordering::Acquire) {
            return Err("the reading before has not been answered yet".into());
        }
        let (sender, answer) = mpsc::channel();
        let served = Arc::clone(self);
        // The thread may outlive the scrape; the client's own timeouts end it.
        std::thread::spawn(move || {
            let read = served.read().map_err(|error| format!("{error:#}"));
            *served.last.lock().unwrap_or_else(PoisonError::into_inner) =
                read.as_ref().ok().map(|reading| (Instant::now(), reading.clone()));
            served.busy.store(false, Ordering::Release);
            // The scrape may have given up.
            let _ = sender.send(read);
        });
        answer.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
    }

    fn read(&self) -> anyhow::Result<Reading> {
        let agent = Agent::of(&self.name)?;
        let (page, stats, pid) = (agent.metrics()?, agent.stats()?, agent.pid().ok());
        // A service whose Go heap cannot be read now is not down: that series alone is missing.
        let go = self.go.as_ref().zip(pid).and_then(|(go, pid)| go.read(pid).ok());
        Ok(Reading { page, stats, pid, go_in_use: go.map(|answer| answer.memory.heap_inuse) })
    }

    /// A profile with names, as pprof.
    pub(super) fn profile(&self) -> Result<Vec<u8>, NoProfile> {
        let _one = match self.profiling.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(NoProfile::Busy),
        };
        let take = || capture(&Agent::of(&self.name)?, SymbolizeOptions::default());
        let parsed = take().map_err(|error: anyhow::Error| NoProfile::Failed(format!("{error:#}")))?;
        Ok(formats::pprof::encode(&parsed.profile))
    }
}

/// The metrics of all targets, asked at once.
pub(crate) fn metrics(targets: &[Arc<Served>]) -> String {
    let readings: Vec<Result<Reading, String>> = std::thread::scope(|scope| {
        let asked: Vec<_> = targets.iter().map(|target| scope.spawn(|| target.reading())).collect();
        asked.into_iter().map(|asked| asked.join().unwrap_or_else(|_| Err("the reading failed".into()))).collect()
    });
    let mut page = Exposition::default();
    for (target, reading) in targets.iter().zip(&readings) {
        let label = ("target", target.name.as_str());
        let up = f64::from(u8::from(reading.is_ok()));
        page.gauge("offheap_up", "1 when the agent of the target answered", &[label], up);
        if let Ok(reading) = reading {
            add(&mut page, label, reading);
        }
    }
    page.render()
}

fn add(page: &mut Exposition, label: (&str, &str), reading: &Reading) {
    page.add_page(&reading.page, label.1);
    if let Some(pid) = reading.pid {
        page.gauge("offheap_target_info", "The process behind a target", &[label, ("pid", &pid.to_string())], 1.0);
    }
    if let Some(bytes) = reading.go_in_use {
        // Under the name that Go's own client uses, so that one rule fits both.
        page.gauge("go_memstats_heap_inuse_bytes", "Bytes of Go heap spans in use", &[label], bytes as f64);
    }
    let classes = classes(&reading.stats.bins);
    if reading.stats.bins.is_empty() {
        return;
    }
    let total: i64 = classes.iter().map(|class| class.waste).fold(0, i64::saturating_add);
    page.gauge("offheap_slab_waste_bytes", "Bytes in free regions of slabs", &[label], total as f64);
    for class in classes {
        let size = class.size.to_string();
        let labels = [label, ("size", size.as_str())];
        page.gauge("offheap_class_waste_bytes", "Slab waste by size class", &labels, class.waste as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::{Served, metrics};
    use crate::client::test_server::TestServer;

    fn host() -> TestServer {
        TestServer::start(|_, path| match path {
            "/metrics" => (200, "# TYPE jemalloc_active_bytes gauge\njemalloc_active_bytes 4096\n".into()),
            "/v1/stats" => (
                200,
                r#"{"active":4096,"bins":[{"size":64,"nregs":64,"slab_size":4096,"curregs":1,"curslabs":1}]}"#.into(),
            ),
            _ => (404, "{}".into()),
        })
    }

    #[test]
    fn one_page_for_all_and_who_is_gone_is_down() {
        let (a, b) = (host(), host());
        let (name_a, name_b) = (a.path(), b.path());
        std::fs::remove_file(&name_b).unwrap();
        let targets = [Served::new(&name_a, None), Served::new(&name_b, None)];
        let page = metrics(&targets);
        for line in [
            format!("offheap_up{{target=\"{name_a}\"}} 1"),
            format!("offheap_up{{target=\"{name_b}\"}} 0"),
            format!("jemalloc_active_bytes{{target=\"{name_a}\"}} 4096"),
            format!("offheap_slab_waste_bytes{{target=\"{name_a}\"}} 4032"),
            format!("offheap_class_waste_bytes{{target=\"{name_a}\",size=\"64\"}} 4032"),
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
        assert!(!page.contains(&format!("jemalloc_active_bytes{{target=\"{name_b}\"}}")), "{page}");
    }
}
