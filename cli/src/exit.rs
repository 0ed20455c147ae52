//! Exit codes and broken pipes, in one place.

use crate::words::text::printable;
use std::io;
use std::process::ExitCode;

/// How a command ended when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was done.
    Done,
    /// Valid input, nothing to show.
    Nothing,
    /// Damaged input, partial result.
    Partial,
    /// A code with a meaning of its own: a monitoring state, or the exit code of a started command.
    Code(u8),
}

/// The words of the command line do not go together, in a way that only the command can tell.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(pub(crate) String);

/// Map the end of a command to the exit code of the process; print the error of one that failed.
pub(crate) fn code(result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(3),
        Ok(Outcome::Partial) => ExitCode::from(4),
        Ok(Outcome::Code(code)) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the one place where errors are printed")]
            {
                // File names stand in it, and whatever they hold must not reach the terminal.
                let lines =
                    format!("{error:#}").split('\n').map(|line| printable(line).into_owned()).collect::<Vec<_>>();
                eprintln!("offheap: {}", lines.join("\n"));
            }
            if error.is::<WrongUsage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Print what clap has to say: help and version are success, wrong usage is 2, and UNKNOWN for a monitoring plugin.
pub(crate) fn usage(error: &clap::Error, is_plugin: bool) -> ExitCode {
    // A reader that went away while help was printed is no failure.
    let _ = error.print();
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if is_plugin => ExitCode::from(3),
        code => ExitCode::from(u8::try_from(code).unwrap_or(2)),
    }
}

/// The reader of our output went away, which is success: `offheap top … | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
