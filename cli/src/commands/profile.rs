//! `offheap profile start|stop|reset|status TARGET`

use crate::client::Agent;
use crate::exit::{Outcome, WrongUsage};
use crate::output;
use crate::view::json;
use crate::words::duration::{human, moment};
use crate::words::size;
use offheap_wire::ProfileState;
use std::ffi::OsString;
use std::time::{Duration, SystemTime};

/// Arguments of `profile`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do
    action: Action,
    /// A pid, a socket, or a process name
    target: OsString,
    /// With start: mean bytes between samples, as a power of two (19 is 512 KiB)
    #[arg(long, value_name = "LG", value_parser = clap::value_parser!(u32).range(0..=40))]
    lg_sample: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    /// Sample allocations from now on
    Start,
    /// Sample no more; what was recorded stays
    Stop,
    /// Forget what was recorded
    Reset,
    /// Say what is being done
    Status,
}

/// Control profiling, and print the state after.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.lg_sample.is_some() && args.action != Action::Start {
        anyhow::bail!(WrongUsage(
            "--lg-sample belongs to `profile start`; the rate cannot change while recording".into()
        ));
    }
    let agent = Agent::of(&args.target)?;
    let state = match args.action {
        Action::Start => agent.profile_start(args.lg_sample)?,
        Action::Stop => agent.profile_stop()?,
        Action::Reset => agent.profile_reset()?,
        Action::Status => agent.info()?.profile,
    };
    if args.json {
        output::print(&json::document("profile", &state)?)?;
    } else {
        output::print(&sentence(&state, SystemTime::now()))?;
    }
    Ok(Outcome::Done)
}

fn sentence(state: &ProfileState, now: SystemTime) -> String {
    if !state.available {
        return "profiling is impossible: jemalloc runs with prof:false; start the process with MALLOC_CONF=prof:true\n"
            .into();
    }
    let since = state.recording_since.map(|since| {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let ago = human(Duration::try_from_secs_f64((now - since).max(0.0).floor()).unwrap_or_default());
        format!("{}, {ago} ago", moment(since))
    });
    let rate = 1_u64.checked_shl(state.lg_sample).map_or_else(|| "?".into(), |bytes| size::human(bytes.into()));
    match (state.active, since) {
        (true, Some(since)) => format!("recording since {since}, one sample in {rate} on average\n"),
        (true, None) => format!("recording, one sample in {rate} on average\n"),
        (false, Some(since)) => {
            format!("stopped; what was recorded since {since} can be dumped, frees of it are still followed\n")
        }
        (false, None) => {
            format!("not recording; `offheap profile start` samples one allocation in {rate} on average\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use offheap_wire::ProfileState;
    use std::time::{Duration, SystemTime};

    #[test]
    fn each_state_has_its_sentence() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(3600);
        let state = |available, active, recording_since| ProfileState {
            available,
            active,
            lg_sample: 19,
            recording_since,
            prof_unbias: false,
        };
        for (state, expected) in [
            (state(false, false, None), "profiling is impossible"),
            (
                state(true, true, Some(60.5)),
                "recording since 1970-01-01T00:01:00Z, 58 min 59 s ago, one sample in 512.0 KiB",
            ),
            (state(true, false, Some(60.5)), "stopped; what was recorded since 1970-01-01T00:01:00Z"),
            (state(true, false, None), "not recording; `offheap profile start`"),
        ] {
            let text = sentence(&state, now);
            assert!(text.starts_with(expected) && text.ends_with('\n'), "{text}");
        }
    }
}
