//! Starting and stopping the recording of allocations.

use super::mallctl::{self, MallctlError};
use super::process;
use crate::hot::{self, BACKTRACE, ModuleTable, POOL, SAMPLE, SAMPLE_FREE, StartupImages};
use offheap_wire::ProfileState;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Guards: the loader's lock, so that the host never forks while an agent thread holds it (the child could then never
/// throw an exception). Taken around each `dl_iterate_phdr` of the agent, and by the host around `fork`.
static FORK_GATE: Mutex<()> = Mutex::new(());

/// Holds the fork gate; see [`FORK_GATE`].
pub(crate) fn fork_gate() -> MutexGuard<'static, ()> {
    FORK_GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same for a thread of the host, which does not wait longer than this.
pub(crate) fn fork_gate_within(patience: Duration) -> Option<MutexGuard<'static, ()>> {
    let begin = Instant::now();
    loop {
        match FORK_GATE.try_lock() {
            Ok(gate) => return Some(gate),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if begin.elapsed() > patience => return None,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

/// Owner of the profiling state.
pub(crate) struct Profiler {
    startup_images: StartupImages,
    /// Guards: the recording state, and thereby the order of the mallctls that change it. Taken before [`FORK_GATE`].
    recording: Mutex<Recording>,
}

#[derive(Default)]
struct Recording {
    since: Option<f64>,
    hook_installed: bool,
}

/// Why a recording could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartError {
    /// `opt.prof` is false.
    Unavailable,
    /// The rate is out of range.
    LgSample(u64),
    Mallctl(MallctlError),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unavailable => f.write_str(
                "profiling is not available: the process was started with prof:false in MALLOC_CONF; \
                 remove that and restart it",
            ),
            Self::LgSample(lg) => {
                write!(f, "lg_sample {lg} is out of range: give the base-2 logarithm of bytes, 0 to {LG_SAMPLE_MAX}")
            }
            Self::Mallctl(error) => error.fmt(f),
        }
    }
}

impl From<MallctlError> for StartError {
    fn from(error: MallctlError) -> Self {
        Self::Mallctl(error)
    }
}

/// Above, nothing is ever sampled.
const LG_SAMPLE_MAX: u64 = 47;

impl Profiler {
    /// Must be called before `main`.
    pub(crate) fn new() -> Self {
        Self { startup_images: StartupImages::read(), recording: Mutex::new(Recording::default()) }
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A recording that the configuration began (`prof_active:true`) goes on with this agent's unwinder.
    pub(crate) fn adopt(&self) -> Result<(), StartError> {
        let mut recording = self.recording();
        recording.since = Some(process::now());
        hot::reset_samples(mallctl::lg_sample() as u32);
        self.install_hook(&mut recording)
    }

    /// Begins a recording. One that is running with the same rate goes on; otherwise what was recorded is forgotten,
    /// since samples of two rates cannot be added.
    pub(crate) fn start(&self, lg_sample: Option<u64>) -> Result<ProfileState, StartError> {
        if !mallctl::opt_prof() {
            return Err(StartError::Unavailable);
        }
        if let Some(lg) = lg_sample.filter(|&lg| lg > LG_SAMPLE_MAX) {
            return Err(StartError::LgSample(lg));
        }
        let mut recording = self.recording();
        self.install_hook(&mut recording)?;
        let now = mallctl::lg_sample();
        let wanted = lg_sample.unwrap_or(now);
        if !mallctl::prof_active() || wanted != now {
            reset(Some(wanted))?;
            recording.since = Some(process::now());
        }
        mallctl::set_prof_active(true)?;
        drop(recording);
        Ok(self.state())
    }

    /// [`Self::start`] before the host has begun, for the thread that will run its `main`.
    ///
    /// jemalloc draws how far a thread's next sample is when the thread starts and after each sample. This thread's was
    /// drawn at the configured rate; unless it draws again, it misses that many bytes of the host's first allocations.
    /// (Threads that already run when the rate changes later keep their old distance once: nobody else can move it.)
    pub(crate) fn start_on_main_thread(&self, lg_sample: Option<u64>) -> Result<ProfileState, StartError> {
        let drawn_at = mallctl::lg_sample();
        if let Some(wanted) = lg_sample.filter(|&lg| lg != drawn_at && lg <= LG_SAMPLE_MAX && mallctl::opt_prof()) {
            reset(Some(wanted))?;
            pass_next_sample(drawn_at);
        }
        self.start(lg_sample)
    }

    /// Ends the recording; what was recorded stays.
    pub(crate) fn stop(&self) -> Result<ProfileState, StartError> {
        if !mallctl::opt_prof() {
            return Err(StartError::Unavailable);
        }
        let recording = self.recording();
        mallctl::set_prof_active(false)?;
        drop(recording);
        Ok(self.state())
    }

    /// Forgets what was recorded.
    pub(crate) fn reset(&self) -> Result<ProfileState, StartError> {
        if !mallctl::opt_prof() {
            return Err(StartError::Unavailable);
        }
        let mut recording = self.recording();
        reset(None)?;
        recording.since = mallctl::prof_active().then(process::now);
        drop(recording);
        Ok(self.state())
    }

    /// The state now.
    pub(crate) fn state(&self) -> ProfileState {
        let recording = self.recording();
        ProfileState {
            available: mallctl::opt_prof(),
            active: mallctl::prof_active(),
            lg_sample: mallctl::lg_sample() as u32,
            recording_since: recording.since,
            prof_unbias: mallctl::opt_prof_unbias(),
        }
    }

    /// Reads the loaded images again if some came or went. Called now and then by the agent thread while recording.
    pub(crate) fn refresh(&self) {
        if !self.recording().hook_installed {
            return;
        }
        let gate = fork_gate();
        let now = hot::loader_generation();
        if hot::with_table(|table| table.generation) != Some(now) {
            let table = hot::with_table(|known| ModuleTable::read(Some(known), &self.startup_images));
            if let Some(table) = table {
                hot::publish(table);
            }
        }
        drop(gate);
    }

    fn install_hook(&self, recording: &mut Recording) -> Result<(), StartError> {
        if recording.hook_installed {
            return Ok(());
        }
        POOL.fill();
        let gate = fork_gate();
        hot::publish(ModuleTable::read(None, &self.startup_images));
        drop(gate);
        mallctl::install_hooks(BACKTRACE, SAMPLE, SAMPLE_FREE)?;
        recording.hook_installed = true;
        Ok(())
    }
}

/// Allocates and frees until the calling thread's distance to its next sample, drawn at 2^`drawn_at`, is used up. Nothing
/// is recorded, since profiling is off.
fn pass_next_sample(drawn_at: u64) {
    // A distance has mean R and exceeds 32 R with probability e^-32. At most 4 GiB, for absurd rates.
    mallctl::pass_bytes((32_u64 << drawn_at.min(40)).min(4 << 30));
}

fn reset(lg_sample: Option<u64>) -> Result<(), MallctlError> {
    mallctl::reset_prof(lg_sample)?;
    hot::reset_samples(mallctl::lg_sample() as u32);
    Ok(())
}
