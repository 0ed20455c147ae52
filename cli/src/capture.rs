//! A named profile of a live host.

use crate::client::{Agent, Capture};
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
    let options = SymbolizeOptions { pid: options.pid.or(agent.pid().ok()), ..options };
    symbolize(&mut parsed.profile, &options);
    Ok(parsed)
}
