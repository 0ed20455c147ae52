use crate::elf::{self, Executable};
use anyhow::Context;
use goblin::elf::header::machine_to_str;
use std::ffi::CString;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who starts the program.
#[derive(Clone, Copy, Debug)]
struct Ids {
    uid: u32,
    gid: u32,
}

/// Privileges that a file gives to who starts it.
#[derive(Clone, Copy, Debug, Default)]
struct Privileges {
    setuid: Option<u32>,
    setgid: Option<u32>,
    capabilities: bool,
}

/// Why the loader would not take the agent into this binary; `None` when it will.
pub(crate) fn refusal(binary: &Path, agent: &Path) -> anyhow::Result<Option<String>> {
    let agent_facts = File::open(agent)
        .and_then(|file| elf::read(&file))
        .with_context(|| format!("reading {}", agent.display()))?
        .with_context(|| format!("{} is not an ELF file", agent.display()))?;
    // A program may be executable and not readable; then nothing is known and the loader decides.
    let Ok(file) = File::open(binary) else { return Ok(None) };
    let Some(facts) = elf::read(&file).with_context(|| format!("reading {}", binary.display()))? else {
        return Ok(None);
    };
    let privileges = privileges(binary, &file.metadata()?);
    // SAFETY: getuid and getgid have no preconditions and cannot fail.
    let ids = unsafe { Ids { uid: libc::getuid(), gid: libc::getgid() } };
    Ok(judge(&facts, &agent_facts, privileges, ids).map(|why| format!("{}: {why}", binary.display())))
}

fn judge(program: &Executable, agent: &Executable, privileges: Privileges, ids: Ids) -> Option<String> {
    if (program.machine, program.is_64) != (agent.machine, agent.is_64) {
        return Some(format!(
            "is built for {}, the agent for {}; use the agent of that architecture",
            architecture(program),
            architecture(agent)
        ));
    }
    let Some(interpreter) = &program.interpreter else {
        return Some(if program.is_go {
            "is a static Go binary (CGO_ENABLED=0, or linked with -static): no loader runs, so LD_PRELOAD cannot work, \
             and without cgo there is no C memory to look for; build it with CGO_ENABLED=1, or use Go's own pprof"
                .to_owned()
        } else {
            "is a static binary: no loader runs, so LD_PRELOAD cannot work; link it dynamically, or build jemalloc into it \
             and read its dumps with `offheap convert`"
                .to_owned()
        });
    };
    if interpreter.contains("musl") {
        return Some(format!(
            "uses musl's loader ({interpreter}); the agent is built for glibc and cannot be loaded there; use a \
             glibc-based image"
        ));
    }
    if !interpreter.contains("/ld-linux") && !interpreter.contains("/ld64.so") {
        return Some(format!("uses the loader {interpreter}, which is not glibc's; the agent is built for glibc"));
    }
    // ld.so ignores LD_PRELOAD when the kernel says AT_SECURE: real and effective ids differ, or capabilities were
    // gained. Root gains none and keeps its ids with a file of its own.
    let changed = privileges.setuid.filter(|uid| *uid != ids.uid).map(|uid| format!("setuid to uid {uid}"));
    let changed = changed.or(privileges.setgid.filter(|gid| *gid != ids.gid).map(|gid| format!("setgid to gid {gid}")));
    let changed = changed.or((privileges.capabilities && ids.uid != 0).then(|| "given file capabilities".to_owned()));
    changed.map(|what| {
        format!("is {what}: the loader ignores LD_PRELOAD for privileged programs; start it as the user it changes to")
    })
}

fn architecture(facts: &Executable) -> String {
    let name = machine_to_str(facts.machine).trim_start_matches("EM_").to_lowercase();
    format!("{name} ({} bit)", if facts.is_64 { 64 } else { 32 })
}

fn privileges(path: &Path, meta: &Metadata) -> Privileges {
    let mode = meta.mode();
    Privileges {
        setuid: (mode & libc::S_ISUID != 0).then_some(meta.uid()),
        // Without the group's execute bit it is a mark for mandatory locks.
        setgid: (mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0).then_some(meta.gid()),
        capabilities: has_capabilities(path),
    }
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings end with NUL and live through the call; a size of 0 asks for the length alone, so the null
    // buffer is never written.
    let length = unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    length > 0
}

#[cfg(test)]
mod tests {
    use super::{Ids, Privileges, judge};
    use crate::elf::Executable;

    fn program(interpreter: Option<&str>) -> Executable {
        Executable { machine: 62, is_64: true, interpreter: interpreter.map(str::to_owned), ..Executable::default() }
    }

    #[test]
    fn what_the_loader_would_not_take_is_refused_with_the_reason() {
        let glibc = Some("/lib64/ld-linux-x86-64.so.2");
        let none = Privileges::default();
        let user = Ids { uid: 1000, gid: 1000 };
        let root = Ids { uid: 0, gid: 0 };
        let setuid_root = Privileges { setuid: Some(0), ..none };
        let setgid = Privileges { setgid: Some(8), ..none };
        let capable = Privileges { capabilities: true, ..none };
        for (label, program, privileges, ids, expected) in [
            ("dynamic", program(glibc), none, user, None),
            ("static", program(None), none, user, Some("is a static binary")),
            ("static Go", Executable { is_go: true, ..program(None) }, none, user, Some("CGO_ENABLED=0")),
            ("musl", program(Some("/lib/ld-musl-x86_64.so.1")), none, user, Some("musl's loader")),
            ("android", program(Some("/system/bin/linker64")), none, user, Some("not glibc's")),
            ("arm", Executable { machine: 183, ..program(glibc) }, none, user, Some("aarch64 (64 bit)")),
            ("i386", Executable { machine: 3, is_64: false, ..program(glibc) }, none, user, Some("386 (32 bit)")),
            ("setuid root", program(glibc), setuid_root, user, Some("setuid to uid 0")),
            ("setuid root by root", program(glibc), setuid_root, root, None),
            ("setgid", program(glibc), setgid, root, Some("setgid to gid 8")),
            ("capabilities", program(glibc), capable, user, Some("file capabilities")),
            ("capabilities by root", program(glibc), capable, root, None),
        ] {
            let agent = Executable { machine: 62, is_64: true, ..Executable::default() };
            let verdict = judge(&program, &agent, privileges, ids);
            match (verdict, expected) {
                (None, None) => {}
                (Some(why), Some(part)) => assert!(why.contains(part), "{label}: {why}"),
                (verdict, _) => panic!("{label}: {verdict:?}"),
            }
        }
    }
}
