use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Scripts whose interpreters are scripts: the kernel follows this many.
const MAX_SCRIPTS: usize = 5;

/// A command that was found, with the executable that the kernel will start for it.
#[derive(Debug)]
pub(crate) struct Program {
    /// What is given to `exec`.
    pub(crate) path: PathBuf,
    /// The binary behind it: itself, or the interpreter of the script.
    pub(crate) binary: PathBuf,
}

/// Why a command cannot be started at all, with the exit codes of shells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotStartable {
    /// 127
    NotFound(String),
    /// 126
    NotExecutable(String),
}

impl Program {
    /// Find the command as `execvp` does, and what it runs.
    pub(crate) fn find(command: &OsStr) -> Result<Self, NotStartable> {
        let path = in_path(command)?;
        let mut binary = path.clone();
        for _ in 0..MAX_SCRIPTS {
            match interpreter(&binary)? {
                Some(next) => binary = next,
                None => return Ok(Self { path, binary }),
            }
        }
        Err(NotStartable::NotExecutable(format!("{}: its interpreters are scripts without end", path.display())))
    }
}

fn in_path(command: &OsStr) -> Result<PathBuf, NotStartable> {
    if command.as_bytes().contains(&b'/') {
        let path = PathBuf::from(command);
        return executable(&path).map(|()| path);
    }
    let variable = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut refused = None;
    for folder in std::env::split_paths(&variable) {
        let path = folder.join(command);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(NotStartable::NotFound(_)) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused
        .unwrap_or_else(|| NotStartable::NotFound(format!("{}: command not found in PATH", command.to_string_lossy()))))
}

fn executable(path: &Path) -> Result<(), NotStartable> {
    let name = path.display();
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(NotStartable::NotExecutable(format!("{name}: is a folder"))),
        Ok(meta) if !meta.is_file() || meta.mode() & 0o111 == 0 => {
            Err(NotStartable::NotExecutable(format!("{name}: is not executable")))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(NotStartable::NotExecutable(format!("{name}: permission denied")))
        }
        Err(_) => Err(NotStartable::NotFound(format!("{name}: no such file"))),
    }
}

/// Interpreter of a script, `None` for a binary (or a file that may be executed and not read).
///
/// ```text
/// #!/bin/sh -e
/// #!/usr/bin/env -S python3 -u
/// ```
fn interpreter(path: &Path) -> Result<Option<PathBuf>, NotStartable> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut start));
    if read.is_err() || start.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let first_line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(line) = first_line.strip_prefix(b"#!") else {
        if first_line.contains(&0) {
            return Err(NotStartable::NotExecutable(format!(
                "{}: is neither an ELF file nor a script",
                path.display()
            )));
        }
        // No `#!`: execvp hands the file to the shell.
        return Ok(Some(PathBuf::from("/bin/sh")));
    };
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()).map(word);
    let Some(interpreter) = words.next().map(PathBuf::from) else {
        return Err(NotStartable::NotExecutable(format!("{}: its #! line names no interpreter", path.display())));
    };
    if interpreter.file_name() == Some(OsStr::new("env")) {
        // env starts a second program, which is the one that matters.
        let named = words.find(|word| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'='));
        if let Some(named) = named {
            return in_path(&named).map(Some);
        }
    }
    executable(&interpreter).map_err(|error| {
        let (NotStartable::NotFound(why) | NotStartable::NotExecutable(why)) = error;
        NotStartable::NotExecutable(format!("{}: bad interpreter: {why}", path.display()))
    })?;
    Ok(Some(interpreter))
}

fn word(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{NotStartable, Program};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_script_leads_to_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let inner = script("inner", "#! /bin/sh -e\n");
        for (label, text, expected) in [
            ("plain", "#!/bin/sh\necho\n", "/bin/sh"),
            ("space and option", "#! /bin/sh -e\n", "/bin/sh"),
            ("env", "#!/usr/bin/env sh\n", "sh"),
            ("env -S with assignment", "#!/usr/bin/env -S A=b sh -u\n", "sh"),
            ("no line at all", "echo hello\n", "/bin/sh"),
            ("script of a script", &format!("#!{}\n", inner.display()), "/bin/sh"),
        ] {
            let path = script("s", text);
            let program = Program::find(path.as_os_str()).unwrap();
            assert!(program.binary.ends_with(expected), "{label}: {}", program.binary.display());
            assert_eq!(program.path, path);
        }
        let looped = folder.path().join("loop");
        let looped = script("loop", &format!("#!{}\n", looped.display()));
        assert!(matches!(Program::find(looped.as_os_str()), Err(NotStartable::NotExecutable(_))));
        let bad = script("bad", "#!/no/such/interpreter\n");
        let Err(NotStartable::NotExecutable(why)) = Program::find(bad.as_os_str()) else { panic!("started") };
        assert!(why.contains("bad interpreter: /no/such/interpreter"), "{why}");
    }

    #[test]
    fn what_cannot_be_started_is_told_as_shells_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(Program::find(file.path().as_os_str()), Err(NotStartable::NotExecutable(_))));
        assert!(matches!(Program::find(OsStr::new("/tmp")), Err(NotStartable::NotExecutable(_))));
        assert!(matches!(Program::find(OsStr::new("/no/such")), Err(NotStartable::NotFound(_))));
        assert!(matches!(Program::find(OsStr::new("no-such-command-anywhere")), Err(NotStartable::NotFound(_))));
        assert!(Program::find(OsStr::new("sh")).is_ok());
    }
}
