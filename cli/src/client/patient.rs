//! A connection that waits for a busy host, and not for one that cannot answer.

use crate::target::is_stopped;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How often a silent host is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Looks in a row that must find it stopped: a debugger that takes a core holds a process for a moment only.
const LOOKS: u32 = 3;

/// A connection to a host. A host that is stopped (SIGSTOP, a debugger) accepts connections, because the kernel does,
/// and is silent: a whole timeout of a busy one would pass, two minutes for every command of an alarmed user.
#[derive(Debug)]
pub(super) struct Patient {
    stream: UnixStream,
    host: Option<u32>,
    patience: Duration,
}

impl Patient {
    pub(super) fn new(stream: UnixStream, host: Option<u32>, patience: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(LOOK.min(patience)))?;
        Ok(Self { stream, host, patience })
    }

    fn reason(&self, what: &str) -> String {
        match self.host {
            Some(pid) => format!("process {pid} {what}; once it runs (`kill -CONT {pid}`), ask again"),
            None => format!("the host {what}; once it runs, ask again"),
        }
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let asked = Instant::now();
        let mut stopped = 0;
        loop {
            match self.stream.read(buffer) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                other => return other,
            }
            stopped = if self.host.is_some_and(is_stopped) { stopped + 1 } else { 0 };
            if stopped >= LOOKS {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    self.reason("is stopped (a signal or a debugger holds it)"),
                ));
            }
            if asked.elapsed() >= self.patience {
                let silent =
                    format!("gave no answer within {} seconds: starved of CPU, or frozen", self.patience.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, self.reason(&silent)));
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::Patient;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn a_stopped_host_is_named_and_not_waited_for() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // SAFETY: the child was not waited for, so that the pid is still its own.
        assert_eq!(unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGSTOP) }, 0);
        let (ours, _theirs) = UnixStream::pair().unwrap();
        // Longer than any test run may take.
        let mut patient = Patient::new(ours, Some(child.id()), Duration::from_secs(86_400)).unwrap();
        let error = patient.read(&mut [0; 8]).unwrap_err().to_string();
        assert!(error.contains(&format!("process {} is stopped", child.id())), "{error}");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_silent_host_is_given_up_with_a_sentence() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut patient = Patient::new(ours, None, Duration::from_millis(10)).unwrap();
        let error = patient.read(&mut [0; 8]).unwrap_err().to_string();
        assert!(error.contains("the host gave no answer within"), "{error}");
    }
}
