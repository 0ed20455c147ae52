//! Measures parsing: a synthetic dump of N stacks of M frames, bytes to parsed profile.
//!
//! `cargo run --release -p offheap-symbolizer --example parse_throughput -- 100000 30 [DUMP]` writes the dump to a file, too,
//! for other tools. Times are those of the processor, so that a busy machine shows less.
#![expect(clippy::print_stdout, reason = "a program that prints its measurement")]

#[path = "../tests/support/clock.rs"]
mod clock;

use clock::Clock;
use offheap_symbolizer::formats::{parse, pprof};
use std::fmt::Write;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual| arguments.get(at).map_or(usual, |a| a.parse::<usize>().expect("a number"));
    let (stacks, frames) = (number(0, 100_000), number(1, 30));
    let dump = dump(stacks, frames);
    if let Some(path) = arguments.get(2) {
        std::fs::write(path, &dump).expect("the dump can be written");
    }
    let megabytes = dump.len() as f64 / 1e6;
    let rounds = (0..5).map(|_| {
        let start = Clock::start();
        let parsed = parse(dump.as_bytes()).expect("valid");
        let seconds = start.seconds();
        assert_eq!(parsed.profile.samples.len(), stacks);
        (seconds, parsed)
    });
    let (seconds, parsed) = rounds.min_by(|a, b| a.0.total_cmp(&b.0)).expect("rounds");
    println!("parse_mb {megabytes:.1}");
    println!("parse_mb_per_s {:.0}", megabytes / seconds);
    let start = Clock::start();
    let encoded = pprof::encode(&parsed.profile);
    println!("encode_ms {:.0}", start.seconds() * 1e3);
    let start = Clock::start();
    let again = parse(&encoded).expect("valid");
    println!("decode_ms {:.0}", start.seconds() * 1e3);
    assert_eq!(again.profile.samples.len(), stacks);
    let start = Clock::start();
    let table = parsed.profile.rank(3, Default::default());
    println!("rank_ms {:.0} rows {}", start.seconds() * 1e3, table.rows.len());
}

/// Stacks that share their outer frames more than their inner ones, as real ones do.
fn dump(stacks: usize, frames: usize) -> String {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = String::from("heap_v2/524288\n");
    let mut total = (0, 0);
    let mut body = String::new();
    for _ in 0..stacks {
        body.push('@');
        for frame in 0..frames {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let choices = 1 + 40_000 / (frame as u64 + 1).pow(2);
            let address = 0x7f10_c001_0000 + (frame as u64) * 0x4000 + (random >> 33) % choices * 7;
            write!(body, " {address:#x}").expect("writing to memory");
        }
        let (count, bytes) = (1 + random % 9, 64 + (random >> 40) % 100_000);
        total = (total.0 + count, total.1 + bytes);
        writeln!(body, "\n  t*: {count}: {bytes} [0: 0]\n  t0: {count}: {bytes} [0: 0]").expect("writing to memory");
    }
    writeln!(text, "  t*: {}: {} [0: 0]\n{body}", total.0, total.1).expect("writing to memory");
    text.push_str(
        "MAPPED_LIBRARIES:\n7f10c0010000-7f10c0190000 r-xp 00010000 fd:01 9001 /usr/lib/libpebblestore.so.3\n",
    );
    text
}
