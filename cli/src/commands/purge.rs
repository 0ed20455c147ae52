//! `offheap purge TARGET`

use crate::client::Agent;
use crate::exit::Outcome;
use crate::output;
use crate::view::amount::size_or_na;
use crate::view::json;
use crate::view::screen::Screen;
use crate::view::table::{Cell, Table};
use offheap_wire::Purge;
use std::ffi::OsString;

/// Arguments of `purge`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, or a process name
    target: OsString,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Give unused pages back to the system now, and say what it brought.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let purge = Agent::of(&args.target)?.purge()?;
    if args.json {
        output::print(&json::document("purge", &purge)?)?;
    } else {
        output::print(&text(&purge, &output::screen()))?;
    }
    Ok(Outcome::Done)
}

fn text(purge: &Purge, screen: &Screen) -> String {
    let mut table = Table::new().name("").number("before").number("after").number("given back");
    for (name, before, after) in [
        ("resident", Some(purge.resident_before), Some(purge.resident_after)),
        ("rss", purge.rss_before, purge.rss_after),
    ] {
        let gain = before.zip(after).map(|(before, after)| i128::from(before) - i128::from(after));
        table.row([name, &size_or_na(before), &size_or_na(after), &size_or_na(gain)].map(Cell::from));
    }
    table.render(screen)
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::view::screen::Screen;
    use offheap_wire::Purge;

    #[test]
    fn what_grew_meanwhile_is_negative() {
        let purge =
            Purge { resident_before: 4096, resident_after: 1024, rss_before: Some(1024), rss_after: Some(2048) };
        assert_eq!(
            text(&purge, &Screen::default()),
            "            before     after  given back\n\
             resident  4.00 KiB  1.00 KiB    3.00 KiB\n\
             rss       1.00 KiB  2.00 KiB   -1.00 KiB\n"
        );
    }
}
