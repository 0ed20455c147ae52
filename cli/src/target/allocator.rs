//! Which allocator answers `malloc` in a process, as far as its mappings tell.

use offheap_wire::AGENT_FILE_NAME;

/// The allocator that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Allocator {
    /// The agent's jemalloc.
    Offheap,
    /// Another preloaded or linked library; its path.
    Jemalloc(String),
    /// tcmalloc, mimalloc, …; its path.
    Other(String),
    /// The C library's.
    Glibc,
    /// The C library's, which is musl.
    Musl,
    /// No C library is mapped.
    None,
}

impl Allocator {
    /// From the text of `/proc/PID/maps`:
    ///
    /// ```text
    /// 7f1c8a600000-7f1c8a628000 r--p 00000000 08:01 396   /usr/lib/x86_64-linux-gnu/libjemalloc.so.2
    /// ```
    pub(crate) fn from_maps(maps: &str) -> Self {
        let paths =
            || maps.lines().filter_map(|line| line.find('/').map(|at| line[at..].trim_end_matches(" (deleted)")));
        let find = |names: &[&str]| {
            paths()
                .find(|path| {
                    let file = path.rsplit('/').next().unwrap_or_default();
                    names.iter().any(|name| file.starts_with(name))
                })
                .map(str::to_owned)
        };
        if find(&[AGENT_FILE_NAME]).is_some() {
            Self::Offheap
        } else if let Some(path) = find(&["libjemalloc"]) {
            Self::Jemalloc(path)
        } else if let Some(path) = find(&["libtcmalloc", "libmimalloc", "libhoard"]) {
            Self::Other(path)
        } else if find(&["ld-musl", "libc.musl"]).is_some() {
            Self::Musl
        } else if find(&["libc.so.6", "libc-2."]).is_some() {
            Self::Glibc
        } else {
            Self::None
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Offheap => "offheap",
            Self::Jemalloc(_) => "jemalloc",
            Self::Other(path) if path.contains("tcmalloc") => "tcmalloc",
            Self::Other(path) if path.contains("mimalloc") => "mimalloc",
            Self::Other(_) => "other",
            Self::Glibc => "glibc",
            Self::Musl => "musl",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Allocator;

    #[test]
    fn the_most_specific_library_wins() {
        let line = |path: &str| format!("7f1c8a600000-7f1c8a628000 r--p 00000000 08:01 396   {path}\n");
        let libc = line("/usr/lib/x86_64-linux-gnu/libc.so.6");
        for (maps, expected) in [
            (libc.clone(), Allocator::Glibc),
            (line("/opt/liboffheap_agent.so (deleted)") + &libc, Allocator::Offheap),
            (libc.clone() + &line("/lib/libjemalloc.so.2"), Allocator::Jemalloc("/lib/libjemalloc.so.2".into())),
            (libc + &line("/lib/libtcmalloc.so.4"), Allocator::Other("/lib/libtcmalloc.so.4".into())),
            (line("/lib/ld-musl-x86_64.so.1"), Allocator::Musl),
            (line("/home/libjemalloc.so.2/server") + "7ff-800 rw-p 0 00:00 0 [stack]\n", Allocator::None),
        ] {
            assert_eq!(Allocator::from_maps(&maps), expected, "{maps}");
        }
    }
}
