//! Run the command among the inputs of `testdata/field` and compare what it says, whole.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the command did.
pub(crate) struct Run {
    shown: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Run the command with these words as arguments, in the folder of the field inputs, so that messages have short paths.
#[track_caller]
pub(crate) fn offheap(arguments: &[&str]) -> Run {
    run(command().args(arguments))
}

/// The command, to be completed.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offheap"));
    command.current_dir(field()).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Run any command.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    Run {
        shown: format!("{command:?}"),
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}

impl Run {
    /// Demand an exit code.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{}\n--- stdout\n{}--- stderr\n{}", self.shown, self.stdout, self.stderr);
        self
    }

    /// Demand the whole standard output.
    #[track_caller]
    pub(crate) fn prints(self, expected: &str) -> Self {
        assert!(self.stdout == expected, "{}\n--- expected\n{expected}--- printed\n{}", self.shown, self.stdout);
        self
    }

    /// Demand the whole standard error.
    #[track_caller]
    pub(crate) fn says(self, expected: &str) -> Self {
        assert!(self.stderr == expected, "{}\n--- expected\n{expected}--- said\n{}", self.shown, self.stderr);
        self
    }

    /// Demand parts of standard error.
    #[track_caller]
    pub(crate) fn mentions(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{}\nsays nothing of `{part}`:\n{}", self.shown, self.stderr);
        }
        self
    }

    /// Compare standard output with `testdata/golden/NAME`. `OFFHEAP_BLESS=1` writes the file instead.
    #[track_caller]
    pub(crate) fn golden(self, name: &str) -> Self {
        golden(name, &self.stdout);
        self
    }
}

/// Compare a text with `testdata/golden/NAME`. `OFFHEAP_BLESS=1` writes the file instead.
#[track_caller]
pub(crate) fn golden(name: &str, actual: &str) {
    let path = repository().join("testdata/golden").join(name);
    if std::env::var_os("OFFHEAP_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, actual).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; OFFHEAP_BLESS=1 writes it", path.display()));
    assert!(expected == actual, "{} differs; OFFHEAP_BLESS=1 accepts:\n{actual}", path.display());
}

/// Folder of the inputs seen in the field.
pub(crate) fn field() -> PathBuf {
    repository().join("testdata/field")
}

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the command's crate stands in the workspace")
}

/// A file of the field folder.
pub(crate) fn read(name: &str) -> Vec<u8> {
    std::fs::read(field().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A directory for the files of one test.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

/// The path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}
