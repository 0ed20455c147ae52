//! Where results go: standard output, files, and remarks on standard error.

use crate::view::screen::Screen;
use anyhow::Context;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// What standard output is. Colour only on a terminal that is not `dumb`, and never with `NO_COLOR`.
pub(crate) fn screen() -> Screen {
    if !io::stdout().is_terminal() {
        return Screen::default();
    }
    let width =
        crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns)).filter(|&columns| columns > 0);
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    Screen { width, colour: !refused && !dumb }
}

/// Write text to standard output.
///
/// # Errors
/// When it cannot be written; a reader that went away is told apart in [`crate::exit`].
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Tell the user something that is not the result.
pub(crate) fn note(text: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr().lock(), "offheap: {}", crate::view::text::printable(text));
}

/// Write a file, or standard output for `-`. The file is written beside its place and renamed, so that it is complete
/// or absent; what is not a regular file (a pipe, `/dev/stdout`) is written in place.
///
/// # Errors
/// When the file cannot be written, naming it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        return Ok(());
    }
    let result = match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => write_in_place(path, bytes),
        _ => write_aside(path, bytes),
    };
    result.with_context(|| format!("{}: cannot be written", path.display()))
}

fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes)
}

fn write_aside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link is followed, so that the file it names is replaced and not the link.
    let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut aside = OsString::from(".");
    aside.push(place.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    aside.push(format!(".{}", std::process::id()));
    let aside = place.with_file_name(aside);
    let written = std::fs::write(&aside, bytes).and_then(|()| std::fs::rename(&aside, &place));
    if written.is_err() {
        // The partial file is ours; when it cannot be removed either, the first error says more.
        let _ = std::fs::remove_file(&aside);
    }
    written
}
