//! The loop over the sources of names.

use crate::profile::Profile;
use std::path::PathBuf;

/// Where images and their debug files may be looked for.
#[derive(Clone, Debug, Default)]
pub struct SymbolizeOptions {
    /// The live process that the profile was taken from: its files are read through `/proc/PID/root` and
    /// `/proc/PID/map_files`.
    pub pid: Option<u32>,
    /// The main executable, named by the user.
    pub binary: Option<PathBuf>,
    /// Directories with debug files or images, named by the user.
    pub symbols: Vec<PathBuf>,
    /// Root under which recorded paths are looked up, named by the user.
    pub sysroot: Option<PathBuf>,
    /// Keep the allocator's own frames at the leaf.
    pub raw_frames: bool,
}

/// What was resolved, image by image, and why not.
#[derive(Clone, Debug, Default)]
pub struct Report {}

/// Fill in the lines of every location that has none.
pub fn symbolize(profile: &mut Profile, options: &SymbolizeOptions) -> Report {
    let _ = (profile, options);
    Report::default()
}
