//! Fuzz the image readers on stable: `fuzz_image SECONDS SEED IMAGE…` mutates the images and does everything that is done
//! with one, until the time is up. It watches for panics, for executions that take long, and for memory out of proportion
//! to the input; such inputs are written to the current directory. Ends with 1 when there were any.

#[path = "../tests/support/clock.rs"]
mod clock;
#[path = "../tests/images/mutate.rs"]
mod mutate;

use clock::Clock;
use mutate::{Dice, Seed, exercise};
use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The system's allocator with a high-water mark.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to `System` unchanged; the counters do not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` above, hence from `System`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An execution may take this long. A sound image of the same size takes milliseconds.
const SLOW: Duration = Duration::from_secs(2);

/// Memory that an input of this size may take: an eighth of a gigabyte, or 200 bytes for each of its own.
fn memory_max(input: usize) -> usize {
    (128 << 20).max(200 * input)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [seconds, seed, images @ ..] = &arguments[..] else {
        return Err("usage: fuzz_image SECONDS SEED IMAGE…".into());
    };
    let (until, mut dice) = (Instant::now() + Duration::from_secs(seconds.parse()?), Dice::new(seed.parse()?));
    let seeds = images.iter().map(|path| std::fs::read(path).map(Seed::new)).collect::<Result<Vec<_>, _>>()?;
    if seeds.is_empty() {
        return Err("no image to start from".into());
    }
    std::panic::set_hook(Box::new(|panic| {
        // Nothing can be done about a closed output here.
        let _ = writeln!(io::stdout(), "{panic}");
    }));

    let (mut executions, mut named, mut faults) = (0u64, 0u64, 0u32);
    let (mut slowest, mut largest) = (Duration::ZERO, 0);
    while Instant::now() < until {
        let bytes = seeds[dice.below(seeds.len())].mutated(&mut dice);
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let started = Clock::start();
        let outcome = catch_unwind(AssertUnwindSafe(|| exercise(&bytes, &mut dice)));
        let (took, took_memory) = (Duration::from_secs_f64(started.seconds()), PEAK.load(Ordering::Relaxed) - before);
        executions += 1;
        (slowest, largest) = (slowest.max(took), largest.max(took_memory));
        named += *outcome.as_ref().unwrap_or(&0) as u64;
        let fault = match outcome {
            Err(_) => "panic",
            Ok(_) if took > SLOW => "slow",
            Ok(_) if took_memory > memory_max(bytes.len()) => "memory",
            Ok(_) => continue,
        };
        faults += 1;
        let file = format!("{fault}-{seed}-{executions}.elf");
        std::fs::write(&file, &bytes)?;
        writeln!(io::stdout(), "{fault}: {file} ({took:?}, {took_memory} bytes)")?;
    }
    writeln!(
        io::stdout(),
        "{executions} executions, {named} addresses named, {faults} faults; slowest {slowest:?}, largest {} KiB",
        largest >> 10
    )?;
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
