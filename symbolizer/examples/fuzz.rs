//! Feeds changed inputs to a reader for some seconds and prints what it did.
//!
//! `cargo run --release -p offheap-symbolizer --example fuzz -- heap_v2 600 [SEED]`
//!
//! It runs on stable Rust, without instrumentation: inputs that are read to a new shape (format, numbers of samples,
//! locations, damage …) are kept and changed further, which is a poor man's coverage. An input that breaks something is
//! written to `fuzz-READER-crash` in the current folder. The allocator counts: memory out of proportion to the input
//! is a failure as well.
#![expect(clippy::print_stdout, reason = "a program that prints its figures")]

#[path = "../tests/support/clock.rs"]
mod clock;
#[path = "../tests/support/invariants.rs"]
mod invariants;

use clock::Clock;
use offheap_symbolizer::error::ReadError;
use offheap_symbolizer::formats::{ParseOptions, Parsed, parse, parse_with, pprof};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts what is allocated now and the most since the last reset.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator as it came; the counters do not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`; the block came from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Inputs larger than this are not changed further.
const LARGEST: usize = 16 << 10;
/// What a reader may take besides a multiple of its input.
const FREE_BYTES: usize = 1 << 20;
/// Largest multiple of the input, as decompressed, that a reader may take. An empty message in a protobuf is two bytes
/// there and a hundred in memory; a bare stack of a dump is two bytes and two hundred.
const MULTIPLE: usize = 400;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let reader = arguments.first().map_or("any", String::as_str);
    let seconds = arguments.get(1).map_or(10, |s| s.parse().expect("a number of seconds"));
    let mut random = Random(arguments.get(2).map_or(1, |s| s.parse().expect("a number")));
    let mut corpus = seeds(reader);
    println!("{reader}: {} seeds", corpus.len());
    let mut shapes = HashSet::new();
    let (mut executions, mut read, mut slowest, mut largest) = (0_u64, 0_u64, (Duration::ZERO, 0), 0);
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..1 + random.below(6) {
            change(&mut input, &corpus, &mut random);
        }
        let crash = CrashFile::new(reader, &input);
        let start = Clock::start();
        let (result, taken) = measured(&input);
        largest = largest.max(taken);
        slowest = slowest.max((Duration::from_secs_f64(start.seconds()), input.len()));
        read += u64::from(result.is_ok());
        executions += 1;
        // What commands do with a profile costs far more than reading it: each shape is taken through it once.
        if shapes.insert(shape(&result)) {
            invariants::check(&input);
            if input.len() < LARGEST && corpus.len() < 20_000 {
                corpus.push(input);
            }
        }
        crash.disarm();
    }
    println!(
        "{reader}: {executions} executions, {read} read, {} shapes, slowest {:.1} ms for {} bytes, largest {} KiB, 0 crashes",
        shapes.len(),
        slowest.0.as_secs_f64() * 1e3,
        slowest.1,
        largest >> 10
    );
}

/// Read, and see that it took memory in proportion to the input; how much that was.
fn measured(input: &[u8]) -> (Result<Parsed, ReadError>, usize) {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    // A name may promise folded stacks of anything; nothing else depends on it.
    let options = ParseOptions { folded_by_name: input.len().is_multiple_of(2), ..ParseOptions::default() };
    let result = parse_with(input, &options);
    let taken = MOST.load(Ordering::Relaxed).saturating_sub(before);
    // A gzip file may grow by a thousand before it is parsed.
    let size = if input.starts_with(&[0x1f, 0x8b]) { inflated_size(input) } else { input.len() };
    assert!(taken <= FREE_BYTES + MULTIPLE * size, "{taken} bytes taken for {} bytes of input", input.len());
    (result, taken)
}

fn inflated_size(input: &[u8]) -> usize {
    let mut out = Vec::new();
    let _ = std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(input), &mut out);
    out.len().max(input.len())
}

/// What an input was read to, coarsely: format or refusal, first damage, and sizes by their number of bits.
fn shape(result: &Result<Parsed, ReadError>) -> (String, [u32; 4]) {
    let bits = |n: usize| usize::BITS - n.leading_zeros();
    match result {
        Ok(parsed) => {
            let p = &parsed.profile;
            let sizes = [p.samples.len(), p.locations.len(), p.mappings.len(), parsed.damage.len()].map(bits);
            let damage = parsed.damage.first().map_or_else(String::new, |d| words(&d.what));
            (parsed.format.to_owned() + &damage, sizes)
        }
        Err(error) => (words(&error.to_string()), [0; 4]),
    }
}

/// A message without what it quotes from the input.
fn words(message: &str) -> String {
    message.split('`').next().unwrap_or_default().chars().filter(|c| c.is_alphabetic()).take(60).collect()
}

/// The input under test stays on disk when the process dies.
struct CrashFile {
    path: PathBuf,
    input: Option<Vec<u8>>,
}

impl CrashFile {
    fn new(reader: &str, input: &[u8]) -> Self {
        Self { path: format!("fuzz-{reader}-crash").into(), input: Some(input.to_vec()) }
    }

    fn disarm(mut self) {
        self.input = None;
    }
}

impl Drop for CrashFile {
    fn drop(&mut self) {
        if let Some(input) = self.input.take() {
            let _ = std::fs::write(&self.path, input);
        }
    }
}

fn seeds(reader: &str) -> Vec<Vec<u8>> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let all: Vec<(String, Vec<u8>)> = ["field", "profiles"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(testdata.join(folder)).expect("test data"))
        .map(|entry| entry.expect("test data").path())
        .map(|path| {
            (
                path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                std::fs::read(&path).expect("test data"),
            )
        })
        .filter(|(_, bytes)| bytes.len() < LARGEST)
        .collect();
    let named =
        |test: &dyn Fn(&str) -> bool| all.iter().filter(|(n, _)| test(n)).map(|(_, b)| b.clone()).collect::<Vec<_>>();
    let dump = |name: &str| (name.starts_with('h') || name.starts_with("r01")) && !name.contains("gzip");
    match reader {
        "heap_v2" => named(&|n| dump(n) && !n.contains("legacy")),
        "legacy" => named(&|n| n.contains("legacy")),
        "symbols" => named(&|n| n.contains("symbolized")),
        "go-text" => named(&|n| n.contains("debug1")),
        "folded" => named(&|n| n.ends_with(".folded") && n.starts_with("f0")),
        // Uncompressed, so that changes reach the message and not only the checksum.
        "pprof" => {
            let read = all.iter().filter_map(|(_, bytes)| parse(bytes).ok());
            read.map(|parsed| prost::Message::encode_to_vec(&pprof::to_message(&parsed.profile)))
                .filter(|b| b.len() < LARGEST)
                .collect()
        }
        "gzip" => named(&|n| n.contains("gz")),
        "samples" => vec![SAMPLES.to_vec()],
        "any" => named(&|_| true),
        other => panic!("no reader `{other}`; heap_v2 legacy symbols go-text folded pprof gzip samples any"),
    }
}

const SAMPLES: &[u8] = br#"{"schema":"offheap.samples/1","taken_at":1700000100.5,"recording_since":1700000000.5,"pid":4711,
"exe":"/srv/app","lg_sample":19,"dropped":3,"maps":"1000-2000 r-xp 00000000 fd:01 1 /lib/libz.so.1.2\n5000-6000 r-xp 00001000 fd:01 2 /srv/app\n",
"modules":[{"path":"/lib/libz.so.1","start":4096,"end":8192,"build_id":"ab12"}],"threads":{"12":"writer"},
"sites":[{"stack":[4112,20496],"end":"root","alloc_objects":100000.4,"alloc_bytes":1600006.0,"alloc_samples":3,
"live":[{"size":10,"usable":16,"age":5.0,"thread":12},{"size":8388608,"usable":8388608,"age":700.0,"thread":12}]}]}"#;

/// One change: bytes, numbers, lines, pieces of other inputs.
fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    const WORDS: [&[u8]; 20] = [
        b"18446744073709551615",
        b"9223372036854775808",
        b"-1",
        b"0",
        b"1e308",
        b"@",
        b"\n",
        b"\r\n",
        b"  t*: 1: 1 [1: 1]\n",
        b"\nMAPPED_LIBRARIES:\n",
        b"heap_v2/",
        b"\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\xff\xff\xff\xff\x0f",
        b";",
        b"0x",
        b"ffffffffffffffff",
        b"[",
        b"]",
        b"--",
    ];
    let length = input.len();
    let at = random.below(length + 1);
    let end = (at + 1 + random.below(64)).min(length);
    match random.below(9) {
        0 if at < length => input[at] ^= 1 << random.below(8),
        1 if at < length => input[at] = random.next() as u8,
        2 => drop(input.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied())),
        3 if at < end => drop(input.drain(at..end)),
        4 if at < end => {
            let chunk = input[at..end].to_vec();
            drop(input.splice(at..at, chunk));
        }
        5 => input.truncate(at),
        6 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let chunk = other[from..(from + random.below(200)).min(other.len())].to_vec();
            drop(input.splice(at..at, chunk));
        }
        7 => {
            // A number becomes another number.
            if let Some(start) = input[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) {
                let digits = input[start..].iter().take_while(|b| b.is_ascii_digit()).count();
                let number = (random.next() >> random.below(64)).to_string();
                drop(input.splice(start..start + digits, number.into_bytes()));
            }
        }
        _ => {
            // A line moves to another place.
            let line_end = input[at..].iter().position(|&b| b == b'\n').map_or(length, |n| at + n + 1);
            let line: Vec<u8> = input.drain(at..line_end).collect();
            let to = random.below(input.len() + 1);
            drop(input.splice(to..to, line));
        }
    }
    input.truncate(4 * LARGEST);
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }
}
