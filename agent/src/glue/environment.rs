//! What the environment says, and taking the agent out of it.

use crate::control::SocketPath;
use std::ffi::{CStr, c_char};

/// The variables `OFFHEAP_*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Environment {
    /// `OFFHEAP=off`: be the allocator and nothing else.
    pub(super) off: bool,
    /// `OFFHEAP_LOG`: write to standard error.
    pub(super) log: bool,
    /// `OFFHEAP_CHILDREN=1`: programs that the host starts get the agent too.
    pub(super) children: bool,
    /// `OFFHEAP_PROFILE`: start profiling at once, at this rate or the configured one.
    pub(super) profile: Option<Option<u64>>,
    pub(super) socket: SocketPath,
    /// `OFFHEAP_TRIGGER`: rules for files that the agent writes by itself.
    pub(super) triggers: Option<String>,
    /// A value that was not understood, for the log.
    pub(super) complaint: Option<String>,
}

impl Environment {
    /// Reads `NAME=value` strings.
    pub(super) fn read<'a>(variables: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut found = Self {
            off: false,
            log: false,
            children: false,
            profile: None,
            socket: SocketPath::Default,
            triggers: None,
            complaint: None,
        };
        for variable in variables {
            let Ok(variable) = std::str::from_utf8(variable) else { continue };
            let Some((name, value)) = variable.split_once('=') else { continue };
            match name {
                "OFFHEAP" => found.off = matches!(value, "off" | "0" | "no" | "false"),
                "OFFHEAP_LOG" => found.log = is_yes(value),
                "OFFHEAP_CHILDREN" => found.children = is_yes(value),
                "OFFHEAP_SOCKET" if !value.is_empty() => found.socket = SocketPath::Given(value.to_owned()),
                "OFFHEAP_TRIGGER" if !value.is_empty() => found.triggers = Some(value.to_owned()),
                "OFFHEAP_PROFILE" => match parse_profile(value) {
                    Ok(profile) => found.profile = profile,
                    Err(()) => {
                        found.complaint =
                            Some(format!("OFFHEAP_PROFILE={value:?} is neither 1 nor a base-2 logarithm such as 19"));
                    }
                },
                _ => {}
            }
        }
        found
    }
}

fn is_yes(value: &str) -> bool {
    !matches!(value, "" | "0" | "off" | "no" | "false")
}

/// `1` is a yes, not a rate of two bytes.
fn parse_profile(value: &str) -> Result<Option<Option<u64>>, ()> {
    match value {
        "" | "0" | "off" | "no" | "false" => Ok(None),
        "1" | "on" | "yes" | "true" => Ok(Some(None)),
        lg => lg.parse().map(|lg| Some(Some(lg))).map_err(|_| ()),
    }
}

/// Removes the agent from `LD_PRELOAD`, in place, and leaves other preloads there.
///
/// In place, and not by `unsetenv`: Go reads the strings where the kernel put them, at the bottom of the stack, and not
/// through libc's `environ`. A list that becomes empty takes its variable with it: the entries after it move up by one.
/// (A reader that looks for the auxiliary vector behind the list finds a zero there, which is an empty vector. Go then
/// takes it from /proc/self/auxv.)
///
/// # Safety
/// `envp` is the null-terminated list of writable strings that the process was started with, and no other thread runs.
pub(super) unsafe fn leave_preload(envp: *mut *mut c_char, is_agent: impl Fn(&[u8]) -> bool) {
    let mut entry = envp;
    // SAFETY: stays within the list up to its null, by the contract.
    unsafe {
        while !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            let Some(list) = text.strip_prefix(b"LD_PRELOAD=") else {
                entry = entry.add(1);
                continue;
            };
            let rest = without(list, &is_agent);
            if rest.is_empty() {
                let mut from = entry;
                while !(*from).is_null() {
                    *from = *from.add(1);
                    from = from.add(1);
                }
                continue;
            }
            // Never longer than before: parts were only taken out.
            let target = (*entry).add(b"LD_PRELOAD=".len());
            std::ptr::copy_nonoverlapping(rest.as_ptr().cast(), target, rest.len());
            *target.add(rest.len()) = 0;
            entry = entry.add(1);
        }
    }
}

/// `LD_PRELOAD` is separated by colons or blanks.
fn without(list: &[u8], is_agent: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    list.split(|&byte| byte == b':' || byte == b' ')
        .filter(|part| !part.is_empty() && !is_agent(part))
        .collect::<Vec<_>>()
        .join(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[&str]) -> Environment {
        Environment::read(variables.iter().map(|variable| variable.as_bytes()))
    }

    #[test]
    fn variables_mean_what_they_say() {
        let none = read(&["HOME=/", "OFFHEAP_PROFILE=", "OFFHEAP_SOCKET="]);
        assert_eq!(none, read(&[]));
        assert!(read(&["OFFHEAP=off"]).off && !read(&["OFFHEAP=on"]).off);
        assert_eq!(read(&["OFFHEAP_PROFILE=1"]).profile, Some(None));
        assert_eq!(read(&["OFFHEAP_PROFILE=12"]).profile, Some(Some(12)));
        assert!(read(&["OFFHEAP_PROFILE=512k"]).complaint.unwrap().contains("512k"));
        assert_eq!(read(&["OFFHEAP_SOCKET=/a/%p"]).socket, SocketPath::Given("/a/%p".into()));
        assert!(read(&["OFFHEAP_CHILDREN=1", "OFFHEAP_LOG=1"]).children);
    }

    fn after_leaving(variables: &[&str]) -> Vec<String> {
        let mut strings: Vec<Vec<u8>> = variables.iter().map(|text| [text.as_bytes(), b"\0"].concat()).collect();
        let mut list: Vec<*mut c_char> = strings.iter_mut().map(|text| text.as_mut_ptr().cast()).collect();
        list.push(std::ptr::null_mut());
        // SAFETY: a list as asked for, of live buffers.
        unsafe { leave_preload(list.as_mut_ptr(), |part| part.ends_with(b"liboffheap_agent.so")) };
        list.iter()
            .take_while(|text| !text.is_null())
            // SAFETY: entries are the buffers above.
            .map(|&text| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_agent_leaves_and_others_stay() {
        assert_eq!(after_leaving(&["A=1", "LD_PRELOAD=/x/liboffheap_agent.so", "B=2"]), ["A=1", "B=2"]);
        assert_eq!(
            after_leaving(&["LD_PRELOAD=/a.so:/x/liboffheap_agent.so /b.so", "B=2"]),
            ["LD_PRELOAD=/a.so:/b.so", "B=2"]
        );
        assert_eq!(after_leaving(&["LD_PRELOAD=/a.so"]), ["LD_PRELOAD=/a.so"]);
        assert_eq!(after_leaving(&["LD_PRELOAD_X=liboffheap_agent.so"]), ["LD_PRELOAD_X=liboffheap_agent.so"]);
        assert!(after_leaving(&[]).is_empty());
    }
}
