//! Files and standard input that a command line names, read whole.

use crate::exit::WrongUsage;
use crate::output;
use anyhow::{Context, anyhow, bail};
use offheap_symbolizer::formats::{ParseOptions, Unpacked, unpack};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Largest input taken from a pipe, which may have no end.
const STREAM_LIMIT: u64 = 1 << 30;

/// Standard input was read to its end.
static STDIN_TAKEN: AtomicBool = AtomicBool::new(false);

/// What is to be read, for the words in which something else is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A PROFILE.
    Profile,
    /// A TARGET or the saved statistics of one.
    Statistics,
    /// A copy of `/proc/PID/maps`.
    Maps,
    /// A recording, a PROFILE or a TARGET.
    Report,
}

impl Purpose {
    /// What would have been right.
    fn expected(self) -> &'static str {
        match self {
            Self::Profile => "a PROFILE is a file, `-`, a URL, or `pid:N` for a process with the agent",
            Self::Statistics => {
                "expected a pid, a socket, a process name, or a file with what malloc_stats_print writes"
            }
            Self::Maps => "expected a copy of /proc/PID/maps",
            Self::Report => "expected a recording, a profile, a pid, a socket or a process name",
        }
    }

    /// What to do about a directory.
    fn in_a_directory(self) -> &'static str {
        match self {
            Self::Profile => "name the dump in it, or several of one process in order",
            Self::Statistics | Self::Maps | Self::Report => "name the file in it",
        }
    }
}

/// Read standard input whole, once.
///
/// # Errors
/// When it is a terminal, was read before, or cannot be read.
pub(crate) fn read_stdin(purpose: Purpose) -> anyhow::Result<Vec<u8>> {
    let mut stdin = io::stdin().lock();
    if STDIN_TAKEN.swap(true, Ordering::Relaxed) {
        bail!(WrongUsage(
            "standard input can be read once, and `-` was given twice; save one of the two as a file".into()
        ));
    }
    if stdin.is_terminal() {
        bail!("standard input is a terminal: {}; or write it into a pipe", purpose.expected());
    }
    read_bounded(&mut stdin, "standard input")
}

/// Read what has no size, and may have no end.
fn read_bounded(from: &mut dyn Read, shown: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(STREAM_LIMIT + 1).read_to_end(&mut bytes).with_context(|| format!("{shown}: cannot be read"))?;
    if bytes.len() as u64 > STREAM_LIMIT {
        bail!("{shown}: no end after {} MiB; save it as a file first if that is right", STREAM_LIMIT >> 20);
    }
    Ok(bytes)
}

/// Read a file whole.
///
/// # Errors
/// When it is no file, or cannot be read; the message says what was expected.
pub(crate) fn read_file(path: &Path, purpose: Purpose) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            bail!("{shown}: a socket; a process with the agent is named by pid:N")
        }
        Ok(metadata) if metadata.file_type().is_char_device() || metadata.file_type().is_block_device() => {
            bail!("{shown}: a device, which may have no end; expected a file, a pipe, or `-`")
        }
        Ok(metadata) if metadata.file_type().is_fifo() => {
            let mut file = File::open(path).with_context(|| format!("{shown}: cannot be opened"))?;
            return read_bounded(&mut file, &shown.to_string());
        }
        _ => {}
    }
    std::fs::read(path).map_err(|error| explain(path, error, purpose))
}

/// What is inside of an input that may be compressed by gzip, and whether that is all of it; where it is not, that is
/// said.
///
/// # Errors
/// When it unpacks to more than its size lets expect.
pub(crate) fn unpacked<'a>(bytes: &'a [u8], shown: &str) -> anyhow::Result<(Cow<'a, [u8]>, bool)> {
    let limit = ParseOptions::default_limit(bytes.len() as u64);
    let Unpacked { content, cut } = unpack(bytes, limit).with_context(|| shown.to_owned())?;
    if let Some(cut) = &cut {
        output::note(&format!("{shown}: {cut}"));
    }
    Ok((content, cut.is_none()))
}

/// Why a path cannot be read, in words.
pub(crate) fn explain(path: &Path, error: io::Error, purpose: Purpose) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("{shown}: no such file; {}", purpose.expected()),
        io::ErrorKind::IsADirectory => anyhow!("{shown}: a directory; {}", purpose.in_a_directory()),
        io::ErrorKind::NotADirectory => anyhow!("{shown}: no such file: a part of the path is a file itself"),
        io::ErrorKind::PermissionDenied => {
            anyhow!("{shown}: not readable for uid {}; run as its owner, or copy it", uid())
        }
        _ => anyhow!(error).context(format!("{shown}: cannot be read")),
    }
}

fn uid() -> u32 {
    // SAFETY: no arguments, no memory, never fails.
    unsafe { libc::geteuid() }
}
