//! Options of all commands that read profiles.

use crate::target::living_thread;
use anyhow::bail;
use offheap_symbolizer::SymbolizeOptions;
use offheap_symbolizer::formats::ParseOptions;
use std::io::ErrorKind;
use std::path::PathBuf;

/// How profiles are read and where names are looked for.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Options {
    /// Main executable of the process, wherever its copy stands now
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
    /// Directory with images or debug files; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,
    /// Root under which recorded paths are looked up
    #[arg(long, value_name = "DIR")]
    pub(crate) sysroot: Option<PathBuf>,
    /// `/proc/PID/maps` of the process, for dumps without a map section
    #[arg(long, value_name = "FILE")]
    pub(crate) maps: Option<PathBuf>,
    /// Keep the allocator's own frames at the leaf
    #[arg(long)]
    pub(crate) raw_frames: bool,
    /// Exit with 0 when the input is damaged and a part of it was read
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Report per image what was named, what was not, and why
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// What a command asks of the readers beyond what can be typed everywhere.
    #[arg(skip)]
    pub(crate) parse: ParseOptions,
}

impl Options {
    /// Refuse places that do not exist: they are typing mistakes, and nothing would be named.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let named = self.binary.iter().map(|path| ("--binary", path));
        let named = named.chain(self.symbols.iter().map(|path| ("--symbols", path)));
        for (option, path) in named.chain(self.sysroot.iter().map(|path| ("--sysroot", path))) {
            if let Err(error) = std::fs::metadata(path) {
                let why = match error.kind() {
                    ErrorKind::NotFound => "no such file or directory; check it for typing mistakes".to_owned(),
                    _ => error.to_string(),
                };
                bail!("{option} {}: {why}", path.display());
            }
        }
        if let Some(root) = self.sysroot.as_ref().filter(|root| !root.is_dir()) {
            bail!("--sysroot {}: not a directory; a single image is named with --binary or --symbols", root.display());
        }
        Ok(())
    }

    /// The part that the symbolizer asks for.
    pub(super) fn symbolize(&self, pid: Option<u32>) -> SymbolizeOptions {
        SymbolizeOptions {
            pid: pid.map(living_thread),
            binary: self.binary.clone(),
            symbols: self.symbols.clone(),
            sysroot: self.sysroot.clone(),
        }
    }
}
