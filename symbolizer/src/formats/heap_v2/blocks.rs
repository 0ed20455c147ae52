//! The form of jemalloc 4 and 5: a block of lines a stack.

use super::record::{Counts, Who, addresses, thread_line};
use super::sink::{Estimates, HeapSink, Part};
use crate::error::DamageLog;
use crate::formats::ParseOptions;
use crate::formats::text::{Cursor, Lines, SECOND_PROFILE, TextLine, begins_profile, excerpt, lossy};
use crate::profile::hash::FastMap;
use crate::profile::{Label, LocationId};
use crate::sampling::SamplingPeriod;
use std::sync::Arc;

const MAPS: &[u8] = b"MAPPED_LIBRARIES:";

/// What stands after the stacks.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The map section and the number of the line before it.
    pub(crate) maps: Option<(usize, u64)>,
}

/// Read the lines after the header up to the map section. `first_line` is the number of the header line.
pub(crate) fn read(
    text: &[u8],
    first_line: u64,
    period: SamplingPeriod,
    options: &ParseOptions,
    sink: &mut HeapSink,
    damage: &mut DamageLog,
) -> Ending {
    let mut reader = Reader {
        period,
        by_thread: options.by_thread,
        sink,
        damage,
        names: FastMap::default(),
        labels: FastMap::default(),
        header: Counts::default(),
        printed: Printed::default(),
        block: None,
        addresses: Vec::new(),
    };
    let mut ending = Ending::default();
    for line in Lines::new(text) {
        let end = line.text.as_ptr() as usize - text.as_ptr() as usize + line.text.len();
        let line = TextLine { number: first_line + line.number, ..line };
        if line.text.trim_ascii_start().starts_with(MAPS) {
            let after = text[end..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| end + n + 1);
            ending.maps = Some((after, line.number));
            break;
        }
        if begins_profile(line.text) {
            reader.damage.at_line(line.number, SECOND_PROFILE);
            break;
        }
        reader.line(line);
    }
    reader.end_block();
    if ending.maps.is_none() {
        reader.check_sum();
    }
    ending
}

struct Reader<'a> {
    period: SamplingPeriod,
    by_thread: bool,
    sink: &'a mut HeapSink,
    damage: &'a mut DamageLog,
    /// Names of threads, from the lines before the first stack.
    names: FastMap<u64, String>,
    labels: FastMap<u64, Label>,
    /// The header's line for all threads.
    header: Counts,
    printed: Printed,
    block: Option<Block>,
    addresses: Vec<LocationId>,
}

/// Sums over the stacks, to compare with the header's.
#[derive(Default)]
struct Printed {
    live_bytes: i128,
    corrected_live_bytes: f64,
}

/// A stack whose lines are being read. Its addresses stand in [`Reader::addresses`].
struct Block {
    line: u64,
    all: Option<(u64, Counts)>,
    threads: Vec<(u64, u64, Counts)>,
    broken: bool,
}

impl Reader<'_> {
    fn line(&mut self, line: TextLine<'_>) {
        match line.text.trim_ascii_start().first() {
            None if line.ended => {}
            Some(b'@') => self.begin_block(line),
            Some(b't') => self.counts(line),
            _ => self.foreign(line),
        }
    }

    fn begin_block(&mut self, line: TextLine<'_>) {
        self.end_block();
        self.addresses.clear();
        let Self { sink, addresses: stack, .. } = self;
        let text = &line.text.trim_ascii_start()[1..];
        let whole = addresses(Cursor(text), |address| stack.push(sink.builder.location_at(address.of_call())));
        // The last digits of an address that ends where the file ends may be missing.
        let broken = whole.is_none() || !line.ended;
        if broken {
            self.addresses.clear();
        }
        self.block = Some(Block { line: line.number, all: None, threads: Vec::new(), broken });
    }

    fn counts(&mut self, line: TextLine<'_>) {
        let Some(read) = thread_line(line.text) else { return self.foreign(line) };
        match (&mut self.block, read.who) {
            (None, Who::AllThreads) => self.header = read.counts,
            (None, Who::Thread(id)) => {
                if !read.name.is_empty() {
                    self.names.insert(id, lossy(read.name).into_owned());
                }
            }
            (Some(block), Who::AllThreads) => {
                block.broken |= block.all.replace((line.number, read.counts)).is_some();
            }
            (Some(block), Who::Thread(id)) => block.threads.push((line.number, id, read.counts)),
        }
    }

    /// A line that does not belong here. One that looks like the beginning of a line of counts breaks its stack.
    fn foreign(&mut self, line: TextLine<'_>) {
        let cut = !line.ended;
        // The beginning of the next section says that the stack before it is whole.
        let in_heading = MAPS.starts_with(line.text.trim_ascii_start());
        if let Some(block) = &mut self.block
            && !in_heading
            && (cut || line.text.trim_ascii_start().starts_with(b"t"))
        {
            block.broken = true;
        }
        let what = if cut { "the dump is cut here" } else { "not part of a dump, left out" };
        self.damage.at_line(line.number, format!("{what}: `{}`", excerpt(line.text)));
    }

    fn end_block(&mut self) {
        let Some(block) = self.block.take() else { return };
        if block.broken || (block.all.is_none() && block.threads.is_empty()) {
            let what = if block.broken { "is not whole" } else { "has no counts" };
            self.damage.at_line(block.line, format!("this stack {what} and is left out"));
            return;
        }
        self.count(&block);
        let threads_picked = block.threads.iter().map(|(.., counts)| counts.picked());
        let picked = threads_picked.clone().reduce(u64::saturating_add);
        if self.by_thread && !block.threads.is_empty() {
            self.by_thread(&block);
            return;
        }
        let mut estimates = Estimates::default();
        match block.all {
            Some((line, counts)) => {
                self.sink.check(line, counts);
                estimates = counts.correct(self.period);
            }
            None => block.threads.iter().for_each(|&(line, _, counts)| {
                self.sink.check(line, counts);
                estimates += counts.correct(self.period);
            }),
        }
        // The sum over the threads is nearer to the truth: one line over several sizes is compensated upwards.
        let picked = picked.or(block.all.map(|(_, counts)| counts.picked()));
        self.sink.sample(self.addresses.clone(), estimates, picked, None);
    }

    /// One sample a thread, which add up to the sample that the stack is otherwise.
    fn by_thread(&mut self, block: &Block) {
        let mut sum = Estimates::default();
        let mut parts = Vec::with_capacity(block.threads.len());
        for &(line, id, counts) in &block.threads {
            self.sink.check(line, counts);
            let estimates = counts.correct(self.period);
            sum += estimates;
            parts.push(Part { estimates, picked: Some(counts.picked()), label: Some(self.label(id)) });
        }
        let whole = block.all.map_or(sum, |(_, all)| all.correct(self.period));
        self.sink.parts(&self.addresses, whole, parts);
    }

    fn count(&mut self, block: &Block) {
        let threads = block.threads.iter().map(|&(.., counts)| counts).filter(|_| block.all.is_none());
        for counts in block.all.map(|(_, counts)| counts).into_iter().chain(threads) {
            self.printed.live_bytes += i128::from(counts.live_bytes);
            self.printed.corrected_live_bytes += counts.correct(self.period).live.bytes;
        }
    }

    /// A dump that ends without its map section may have been cut between two stacks, which no line shows.
    ///
    /// The header's counts are the sum of all stacks: as printed before jemalloc 5.3, and corrected since. Rounding of
    /// the prints leaves a few per mille; a missing stack that matters leaves more.
    fn check_sum(&mut self) {
        const ROUNDING: f64 = 0.95;
        let expected = self.header.correct(self.period).live.bytes;
        let plain = self.printed.live_bytes >= i128::from(self.header.live_bytes);
        if !plain && self.printed.corrected_live_bytes < expected * ROUNDING {
            self.damage.whole(format!(
                "the stacks hold {:.0} of the {expected:.0} bytes that the header states: the dump is cut",
                self.printed.corrected_live_bytes,
            ));
        }
    }

    /// `worker (t7)`, or `t7` for a thread without a name.
    fn label(&mut self, id: u64) -> Label {
        let names = &self.names;
        let make = || {
            let text: Arc<str> = match names.get(&id) {
                Some(name) => format!("{name} (t{id})").into(),
                None => format!("t{id}").into(),
            };
            Label::text("thread", text)
        };
        self.labels.entry(id).or_insert_with(make).clone()
    }
}
