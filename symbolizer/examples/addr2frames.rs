//! Names for image addresses: `addr2frames IMAGE < addresses` prints, for each hexadecimal address, its frames innermost
//! first as `function at file:line`, like `addr2line -a -f -i`. For comparisons with other tools.

use offheap_symbolizer::address::ImageAddress;
use offheap_symbolizer::image::{Elf, ImageFile, ImageFiles, Sources};
use std::error::Error;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: addr2frames IMAGE < addresses")?;
    let file = ImageFile::open(Path::new(&path))?;
    let elf = Elf::parse(file.bytes())?;
    let sources = Sources::new(ImageFiles::only(&elf));
    let worker = sources.worker();
    let mut out = BufWriter::new(io::stdout().lock());
    let mut frames = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let address = ImageAddress(u64::from_str_radix(line.trim().trim_start_matches("0x"), 16)?);
        frames.clear();
        match worker.frames(address, &mut frames) {
            Ok(source) => writeln!(out, "{address} {source}")?,
            Err(why) => writeln!(out, "{address} {why}")?,
        }
        for frame in &frames {
            let (file, line) = (frame.file.as_deref().unwrap_or("??"), frame.line.unwrap_or(0));
            writeln!(out, "  {} at {file}:{line}", frame.function)?;
        }
    }
    Ok(out.flush()?)
}
