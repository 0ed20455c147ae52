//! Names for image addresses: `addr2frames [--parallel] IMAGE < addresses` prints, for each hexadecimal address, its frames
//! innermost first as `function at file:line`, like `addr2line -a -f -i`. For comparisons with other tools.
//!
//! With `--parallel` the addresses are split over all cores as `symbolize` does it.

use offheap_symbolizer::address::ImageAddress;
use offheap_symbolizer::frame::{Frame, NameSource, NoName};
use offheap_symbolizer::image::{Elf, ImageFile, ImageFiles, Sources};
use rayon::prelude::*;
use std::error::Error;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

type Found = (ImageAddress, Result<NameSource, NoName>, Vec<Frame>);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let parallel = arguments.first().is_some_and(|first| first == "--parallel");
    arguments.drain(..usize::from(parallel));
    let [path] = &arguments[..] else { return Err("usage: addr2frames [--parallel] IMAGE < addresses".into()) };

    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let parse = |line: &str| u64::from_str_radix(line.trim().trim_start_matches("0x"), 16).map(ImageAddress);
    let addresses = input.lines().map(parse).collect::<Result<Vec<_>, _>>()?;

    let file = ImageFile::open(Path::new(path))?;
    let elf = Elf::parse(file.bytes())?;
    let sources = Sources::new(ImageFiles::only(&elf));
    let threads = if parallel { rayon::current_num_threads() } else { 1 };
    let chunk = addresses.len().div_ceil(threads).max(1);
    let found: Vec<Vec<Found>> = addresses.par_chunks(chunk).map(|chunk| look_up(&sources, chunk)).collect();

    let mut out = BufWriter::new(io::stdout().lock());
    found.iter().flatten().try_for_each(|found| print(&mut out, found))?;
    Ok(out.flush()?)
}

fn look_up(sources: &Sources<'_>, addresses: &[ImageAddress]) -> Vec<Found> {
    let worker = sources.worker();
    let one = |address: &ImageAddress| {
        let mut frames = Vec::new();
        let source = worker.frames(*address, &mut frames);
        (*address, source, frames)
    };
    addresses.iter().map(one).collect()
}

fn print(out: &mut impl Write, (address, source, frames): &Found) -> io::Result<()> {
    match source {
        Ok(source) => writeln!(out, "{address} {source}")?,
        Err(why) => writeln!(out, "{address} {why}")?,
    }
    for frame in frames {
        let (file, line) = (frame.file.as_deref().unwrap_or("??"), frame.line.unwrap_or(0));
        writeln!(out, "  {} at {file}:{line}", frame.function)?;
    }
    Ok(())
}
