//! `offheap trigger TARGET`

use crate::client::Agent;
use crate::exit::{Outcome, WrongUsage};
use crate::output;
use crate::view::amount::percent_or_na;
use crate::view::json;
use crate::view::screen::Screen;
use crate::view::table::{Cell, Table};
use crate::words::{duration, size};
use anyhow::Context;
use offheap_wire::{Trigger, Triggers};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `trigger`.
///
/// A rule is kept by the agent, inside the process: it writes its file when nobody watches, and before the kernel kills.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, or a process name
    target: OsString,
    /// Dump when RSS is above this size
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    rss: Option<u64>,
    /// Dump when the program has allocated more than this
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    allocated: Option<u64>,
    /// Dump when the control group's working set is above this share of its limit
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    cgroup: Option<f64>,
    /// Dump when RSS has grown by this share
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    grown: Option<f64>,
    /// Dump when the fragmentation index is above this
    #[arg(long, value_name = "RATIO")]
    index: Option<f64>,
    /// Least time between two files of a rule [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    every: Option<Duration>,
    /// Folder for the files, in the file system of the process
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Files to keep there [default: 5]
    #[arg(long, value_name = "COUNT")]
    keep: Option<u64>,
    /// Bytes to keep there [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    keep_bytes: Option<u64>,
    /// Take back the rule with this number; may be repeated
    #[arg(long, value_name = "ID")]
    remove: Vec<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    triggers: &'a [Trigger],
}

/// Add rules, take rules back, and show what is in force.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let rules = rules(args)?;
    let agent = Agent::of(&args.target)?;
    if !args.remove.is_empty() {
        // All or none: a mistyped number must not leave the half of it done.
        let in_force: Vec<u64> = agent.triggers()?.triggers.iter().map(|trigger| trigger.id).collect();
        if let Some(unknown) = args.remove.iter().find(|id| !in_force.contains(id)) {
            anyhow::bail!("--remove {unknown}: no rule has this number; {}", numbers(&in_force));
        }
    }
    // A number given twice is one rule.
    let once: BTreeSet<u64> = args.remove.iter().copied().collect();
    for id in once {
        agent.trigger_remove(id)?;
    }
    let triggers = if rules.is_empty() { agent.triggers()? } else { agent.trigger_add(&rules)? };
    if args.json {
        output::print(&json::document("trigger", &Document { triggers: &triggers.triggers })?)?;
    } else if triggers.triggers.is_empty() {
        output::note("no rule is in force; for example: --cgroup 80% --dir /var/tmp");
    } else {
        output::print(&text(&triggers, &output::screen()))?;
    }
    // Having taken the last one back is what was asked for.
    let nothing = triggers.triggers.is_empty() && args.remove.is_empty();
    Ok(if nothing { Outcome::Nothing } else { Outcome::Done })
}

/// Which rules there are to take back.
fn numbers(in_force: &[u64]) -> String {
    match in_force {
        [] => "none is in force".to_owned(),
        [one] => format!("{one} is the only one in force"),
        several => {
            let several: Vec<String> = several.iter().map(u64::to_string).collect();
            format!("{} are in force, `offheap trigger TARGET` shows them", several.join(", "))
        }
    }
}

/// The rules in the words of the agent: `rss>1500000000,every=600,dir=/var/tmp;index>0.35,…`
fn rules(args: &Args) -> anyhow::Result<String> {
    let percentage = |share: f64| format!("{}%", share * 100.0);
    let conditions: Vec<String> = [
        args.rss.map(|bytes| format!("rss>{bytes}")),
        args.allocated.map(|bytes| format!("allocated>{bytes}")),
        args.cgroup.map(|share| format!("cgroup>{}", percentage(share))),
        args.grown.map(|share| format!("rss+{}", percentage(share))),
        args.index.map(|index| format!("index>{index}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut options = String::new();
    if let Some(every) = args.every {
        options.push_str(&format!(",every={}", every.as_secs_f64()));
    }
    if let Some(dir) = &args.dir {
        options.push_str(&format!(",dir={}", directory(dir)?));
    }
    if let Some(keep) = args.keep {
        options.push_str(&format!(",keep={keep}"));
    }
    if let Some(bytes) = args.keep_bytes {
        options.push_str(&format!(",keep-bytes={bytes}"));
    }
    if conditions.is_empty() && !options.is_empty() {
        anyhow::bail!(WrongUsage(
            "when to dump is missing: give one of --rss, --allocated, --cgroup, --grown, --index".into()
        ));
    }
    Ok(conditions.into_iter().map(|condition| condition + &options).collect::<Vec<_>>().join(";"))
}

/// An absolute path that the text of a rule can carry.
fn directory(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("--dir {}", path.display()))?;
    let text = path.to_str().with_context(|| format!("--dir {}: is not UTF-8", path.display()))?;
    if text.contains([',', ';', '\n']) {
        anyhow::bail!(WrongUsage(format!("--dir {text}: a comma or semicolon would end the rule; use another folder")));
    }
    Ok(text.to_owned())
}

/// `80%` or `80`, as a ratio.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>();
    match number {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number / 100.0),
        _ => Err(format!("`{text}` is not a percentage; write for example 80%")),
    }
}

fn text(triggers: &Triggers, screen: &Screen) -> String {
    let mut table = Table::new()
        .number("id")
        .name("when")
        .number("now")
        .number("threshold")
        .number("at most every")
        .number("files")
        .name("last file, or why there is none");
    for trigger in &triggers.triggers {
        let every = Duration::try_from_secs_f64(trigger.every).unwrap_or_default();
        let last = trigger.last_error.as_ref().or(trigger.last_file.as_ref()).unwrap_or(&trigger.directory);
        table.row(
            [
                &trigger.id.to_string(),
                &trigger.when,
                &trigger.value.map_or_else(|| "n/a".to_owned(), |value| amount(trigger, value)),
                // The agent has not looked yet: growth, for one, has no threshold before the first look.
                &if trigger.threshold > 0.0 { amount(trigger, trigger.threshold) } else { "n/a".to_owned() },
                &duration::human(every),
                &trigger.fired.to_string(),
                last,
            ]
            .map(Cell::from),
        );
    }
    table.render(screen)
}

/// A value in the unit of the rule's condition.
fn amount(trigger: &Trigger, value: f64) -> String {
    if trigger.when.starts_with("index") {
        format!("{value:.3}")
    } else if trigger.when.starts_with("cgroup") {
        percent_or_na(Some(value))
    } else {
        size::human(value as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, percent, rules, text};
    use crate::view::screen::Screen;
    use clap::Parser;
    use offheap_wire::{Trigger, Triggers};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn written(words: &[&str]) -> anyhow::Result<String> {
        rules(&Line::parse_from(["trigger", "app"].iter().chain(words)).args)
    }

    #[test]
    fn rules_in_the_words_of_the_agent() {
        for (words, expected) in [
            (&[][..], ""),
            (&["--rss", "1.5GB"], "rss>1500000000"),
            (&["--allocated", "1MiB", "--every", "10m"], "allocated>1048576,every=600"),
            (
                &["--cgroup", "80%", "--index", "0.35", "--dir", "/var/tmp", "--keep", "3", "--keep-bytes", "1GiB"],
                "cgroup>80%,dir=/var/tmp,keep=3,keep-bytes=1073741824;index>0.35,dir=/var/tmp,keep=3,keep-bytes=1073741824",
            ),
            (&["--grown", "50"], "rss+50%"),
        ] {
            assert_eq!(written(words).unwrap(), expected, "{words:?}");
        }
        for words in [&["--dir", "/tmp"][..], &["--rss", "1GB", "--dir", "/a,b"]] {
            assert!(written(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(percent("80%"), Ok(0.8));
        assert_eq!(percent("12.5"), Ok(0.125));
        for text in ["", "%", "-5%", "nan", "half"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_stand_in_the_unit_of_their_condition() {
        let trigger = |when: &str, value, threshold| Trigger {
            when: when.into(),
            value,
            threshold,
            directory: "/d".into(),
            every: 300.0,
            ..Trigger::default()
        };
        let triggers = Triggers {
            triggers: vec![
                trigger("rss>1500000000", Some(1048576.0), 1.5e9),
                trigger("cgroup>80%", None, 0.8),
                trigger("index>0.35", Some(0.1), 0.35),
            ],
            ..Triggers::default()
        };
        let shown = text(&triggers, &Screen::default());
        for part in ["1.00 MiB   1.40 GiB", "n/a      80.0%", "0.100      0.350", "5 min"] {
            assert!(shown.contains(part), "`{part}` is missing in\n{shown}");
        }
    }
}
