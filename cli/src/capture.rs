//! A named profile of a live host.

use crate::client::{Agent, Capture};
use crate::target::{Host, living_thread};
use anyhow::Context;
use offheap_symbolizer::formats::{self, Parsed};
use offheap_symbolizer::{SymbolizeOptions, symbolize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Take a dump and name its frames from the files of the process itself. The allocator's own frames are cut off the
/// leaves.
pub(crate) fn capture(agent: &Agent, options: SymbolizeOptions) -> anyhow::Result<Parsed> {
    let mut parsed = capture_raw_frames(agent, options)?;
    parsed.profile.prune_allocator();
    Ok(parsed)
}

/// The same with the allocator's frames.
pub(crate) fn capture_raw_frames(agent: &Agent, options: SymbolizeOptions) -> anyhow::Result<Parsed> {
    let info = agent.info()?;
    let Capture { bytes: dump, note } = agent.profile()?;
    let taken = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut parsed = formats::parse(&dump).context("the dump of the agent")?;
    drop(dump);
    parsed.notes.extend(note);

    let profile = &mut parsed.profile;
    if profile.time_nanos == 0 {
        profile.time_nanos = i64::try_from(taken.as_nanos()).unwrap_or_default();
    }
    if let Some(since) = info.profile.recording_since
        && profile.duration_nanos == 0
    {
        profile.duration_nanos = ((taken.as_secs_f64() - since).max(0.0) * 1e9) as i64;
    }
    let exe = info.exe.as_deref().unwrap_or("unknown");
    profile.comments.push(format!("offheap agent {}, pid {}, exe {exe}", info.agent_version, info.pid).into());

    // A process of another pid namespace has no files that we could read: addresses stay, and the report says so.
    let options = SymbolizeOptions { pid: options.pid.or(agent.pid().ok()).map(living_thread), ..options };
    if let Some(pid) = options.pid {
        place_in_host(&mut parsed, pid);
    }
    symbolize(&mut parsed.profile, &options);
    Ok(parsed)
}

/// Give a profile that came without mappings those of its process. The agent has none where its host has no `/proc`
/// (a bare chroot), and from outside they are there.
pub(crate) fn place_in_host(parsed: &mut Parsed, pid: u32) {
    if parsed.profile.mappings.is_empty()
        && !parsed.profile.samples.is_empty()
        && let Ok(maps) = Host::of(pid).and_then(|host| host.maps())
    {
        parsed.use_maps(maps.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::place_in_host;
    use offheap_symbolizer::formats;
    use offheap_symbolizer::{SymbolizeOptions, symbolize};

    #[inline(never)]
    fn landmark() -> usize {
        std::hint::black_box(landmark as fn() -> usize as usize)
    }

    #[test]
    fn a_dump_of_a_host_without_proc_is_named_from_outside() {
        let address = landmark() + 1;
        let dump = format!("heap_v2/1\n  t*: 1: 64 [0: 0]\n@ {address:#x}\n  t*: 1: 64 [0: 0]\n\nMAPPED_LIBRARIES:\n");
        let mut parsed = formats::parse(dump.as_bytes()).unwrap();
        assert!(parsed.profile.mappings.is_empty());
        place_in_host(&mut parsed, std::process::id());
        symbolize(&mut parsed.profile, &SymbolizeOptions { pid: Some(std::process::id()), ..Default::default() });
        let names: Vec<String> =
            parsed.profile.functions.iter().map(|function| format!("{:?}", function.name)).collect();
        assert!(names.iter().any(|name| name.contains("landmark")), "{names:?}");
    }
}
