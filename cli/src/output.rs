//! Where results go: standard output, files, and remarks on standard error.

use crate::view::screen::Screen;
use anyhow::anyhow;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

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
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(explain_stdout)
}

/// Tell the user something that is not the result.
pub(crate) fn note(text: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr().lock(), "offheap: {}", crate::words::text::printable(text));
}

/// Tell the user something long that was asked for and is not the result; it ends with its own line feed.
pub(crate) fn report(text: &str) {
    // A closed standard error is no reason to fail.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Write a file, or standard output for `-`. The file is written beside its place and renamed, so that it is complete
/// or absent; what is not a regular file (a pipe, `/dev/stdout`) is written in place.
///
/// # Errors
/// When the file cannot be written, naming it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_with(path, |to| to.write_all(bytes))
}

/// As [`write()`], for what is better not kept in memory as a whole.
///
/// # Errors
/// When the file cannot be written, naming it.
pub(crate) fn write_with(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return fill_buffered(io::stdout().lock(), fill).map_err(explain_stdout);
    }
    let result = match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            std::fs::OpenOptions::new().write(true).open(path).and_then(|file| fill_buffered(file, fill))
        }
        _ => write_aside(path, fill),
    };
    result.map_err(|error| explain(path, error))
}

fn fill_buffered(to: impl Write, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 16, to);
    fill(&mut buffered)?;
    buffered.flush()
}

fn write_aside(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let place = behind_links(path);
    let mut aside = OsString::from(".");
    aside.push(place.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    aside.push(format!(".{}", std::process::id()));
    let aside = place.with_file_name(aside);
    let written = File::create(&aside)
        .and_then(|file| {
            // What others may not read must not become readable by being written again.
            if let Ok(replaced) = std::fs::metadata(&place) {
                file.set_permissions(replaced.permissions())?;
            }
            fill_buffered(file, fill)
        })
        .and_then(|()| std::fs::rename(&aside, &place));
    if written.is_err() {
        // The partial file is ours; when it cannot be removed either, the first error says more.
        let _ = std::fs::remove_file(&aside);
    }
    written
}

/// The file that a path names: a link is followed, also to a file that is still to be made, so that what it points to is
/// replaced and not the link.
fn behind_links(path: &Path) -> PathBuf {
    if let Ok(place) = std::fs::canonicalize(path) {
        return place;
    }
    match std::fs::read_link(path) {
        // A second link that leads nowhere is an error of its own, when the directory is not found.
        Ok(target) => path.parent().map_or_else(|| target.clone(), |parent| parent.join(&target)),
        Err(_) => path.to_owned(),
    }
}

fn explain_stdout(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::StorageFull => anyhow!("standard output: the disk is full, and what was written is cut"),
        // A broken pipe must stay recognisable.
        _ => anyhow::Error::new(error).context("standard output: cannot be written"),
    }
}

/// The sentence for a file that could not be written as a whole.
pub(crate) fn explain(path: &Path, error: io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("{shown}: cannot be written: its directory does not exist; create it first"),
        io::ErrorKind::IsADirectory => anyhow!("{shown}: a directory; give the name of a file in it"),
        io::ErrorKind::PermissionDenied => {
            anyhow!("{shown}: may not be written by this user; choose another place with -o")
        }
        io::ErrorKind::NotADirectory => anyhow!("{shown}: cannot be written: a part of the path is a file itself"),
        io::ErrorKind::ReadOnlyFilesystem => {
            anyhow!("{shown}: cannot be written: the file system is read-only; choose another place with -o")
        }
        io::ErrorKind::StorageFull => anyhow!("{shown}: the disk is full; nothing was left behind"),
        // A broken pipe must stay recognisable.
        _ => anyhow::Error::new(error).context(format!("{shown}: cannot be written")),
    }
}
