//! Names for image addresses: `addr2frames [--parallel] IMAGE < addresses` prints, for each hexadecimal address, its frames
//! innermost first as `function at file:line`, like `addr2line -a -f -i`. For comparisons with other tools.
//!
//! With `--parallel` on all cores, as `symbolize` does it.

use offheap_symbolizer::address::ImageAddress;
use offheap_symbolizer::image::{Elf, Found, ImageFile, ImageFiles, LookUps, Sources};
use rayon::ThreadPoolBuilder;
use std::error::Error;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

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
    // 0 threads are as many as there are cores.
    let threads = ThreadPoolBuilder::new().num_threads(usize::from(!parallel)).build()?;
    let found = threads.install(|| LookUps::new(&sources).all(&addresses));

    let mut out = BufWriter::new(io::stdout().lock());
    addresses.iter().zip(&found).try_for_each(|(address, found)| print(&mut out, *address, found))?;
    Ok(out.flush()?)
}

fn print(out: &mut impl Write, address: ImageAddress, found: &Found) -> io::Result<()> {
    let (source, frames) = match found {
        Ok(found) => found,
        Err(why) => return writeln!(out, "{address} {why}"),
    };
    writeln!(out, "{address} {source}")?;
    for frame in frames {
        let (file, line) = (frame.file.as_deref().unwrap_or("??"), frame.line.unwrap_or(0));
        writeln!(out, "  {} at {file}:{line}", frame.function)?;
    }
    Ok(())
}
