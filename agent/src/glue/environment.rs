//! What the environment says.

use crate::control::SocketPath;

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
}
