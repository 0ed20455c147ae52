//! The live screen: keys in, state out.

use super::draw::draw;
use super::state::{Ask, Event, State, Subject};
use super::worker;
use crate::exit::Outcome;
use crate::interrupt::Interrupt;
use crate::observe::Observer;
use crate::output;
use anyhow::Context;
use crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often keys and news are looked for.
const TICK: Duration = Duration::from_millis(100);
/// Time between two profiles while recording; each one makes the host dump.
const PROFILE_EVERY: Duration = Duration::from_secs(10);

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Quit,
    Ask(Ask),
    Nothing,
}

/// Show the screen until the user leaves or the count is reached.
pub(super) fn run(observer: Observer, every: Duration, count: Option<u64>) -> anyhow::Result<Outcome> {
    let mut state = State { subject: subject(&observer)?, ..State::default() };
    // Held back so that a SIGTERM ends the loop below, which gives the terminal back.
    let interrupt = Interrupt::hold();
    let observer = Arc::new(observer);
    let (events_in, events) = mpsc::channel();
    let (asks, asks_out) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let reader = (Arc::clone(&observer), events_in.clone());
    // Both end with the channels, at the latest when the host answers; the process does not wait for them.
    thread::spawn(move || worker::read(&reader.0, every, &stopped, &reader.1));
    let busy = Arc::clone(&observer);
    thread::spawn(move || worker::work(&busy, &asks_out, &events_in));

    let mut terminal = ratatui::try_init().context("the terminal cannot be taken over; try --plain")?;
    let shown = show(&mut terminal, &mut state, &interrupt, &events, &asks, count);
    ratatui::restore();
    drop(stop);
    shown?;
    if state.ended {
        output::note(&state.message);
    } else if observer.agent().info().is_ok_and(|info| info.profile.active) {
        output::note(&format!("profiling goes on; stop it with `offheap profile stop {}`", state.subject.pid));
    }
    Ok(Outcome::Done)
}

fn subject(observer: &Observer) -> anyhow::Result<Subject> {
    let info = observer.agent().info()?;
    let file_name = |exe: &str| Path::new(exe).file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Subject {
        name: info.exe.as_deref().and_then(file_name).unwrap_or_else(|| "process".into()),
        pid: observer.agent().pid().unwrap_or(info.pid),
        // `5.3.1-0-g81034ce1f…`: the commit says nothing more here.
        jemalloc: info.jemalloc_version.split('-').next().unwrap_or_default().to_owned(),
    })
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    interrupt: &Interrupt,
    events: &Receiver<Event>,
    asks: &Sender<Ask>,
    count: Option<u64>,
) -> anyhow::Result<()> {
    let mut profiled: Option<Instant> = None;
    loop {
        terminal.draw(|frame| draw(frame, state))?;
        if interrupt.wait(Duration::ZERO) || count.is_some_and(|count| state.readings >= count) {
            return Ok(());
        }
        if is_hung_up(TICK) {
            return Ok(());
        }
        if event::poll(Duration::ZERO)? {
            match event::read()? {
                event::Event::Key(key) if key.kind != KeyEventKind::Release => match meaning(key) {
                    Key::Quit => return Ok(()),
                    Key::Ask(ask) => {
                        state.say(said(ask).to_owned());
                        // The worker ends with this side of the channel.
                        let _ = asks.send(ask);
                    }
                    Key::Nothing => {}
                },
                _ => {}
            }
        }
        events.try_iter().for_each(|event| state.apply(event));
        let is_due = profiled.is_none_or(|last| last.elapsed() >= PROFILE_EVERY);
        if state.is_recorded() && is_due && !state.ended {
            let _ = asks.send(Ask::Sites);
            profiled = Some(Instant::now());
        }
    }
}

/// Wait for a key, and tell whether the terminal is gone. crossterm, which would wait as well, reads a terminal that is
/// gone again and again and never returns.
fn is_hung_up(patience: Duration) -> bool {
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: one initialised structure, which lives through the call.
    unsafe { libc::poll(&raw mut input, 1, i32::try_from(patience.as_millis()).unwrap_or(i32::MAX)) };
    input.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

fn meaning(key: KeyEvent) -> Key {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Char('p') => Key::Ask(Ask::StartOrStop),
        KeyCode::Char('r') => Key::Ask(Ask::Reset),
        KeyCode::Char('d') => Key::Ask(Ask::Dump),
        KeyCode::Char('u') => Key::Ask(Ask::Purge),
        KeyCode::Char('s') => Key::Ask(Ask::Sites),
        _ => Key::Nothing,
    }
}

fn said(ask: Ask) -> &'static str {
    match ask {
        Ask::StartOrStop => "switching profiling …",
        Ask::Reset => "forgetting what was recorded …",
        Ask::Dump => "dumping …",
        Ask::Purge => "purging …",
        Ask::Sites => "taking a profile …",
    }
}

#[cfg(test)]
mod tests {
    use super::{Ask, Key, meaning};
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    #[test]
    fn keys() {
        for (code, modifiers, expected) in [
            (KeyCode::Char('q'), KeyModifiers::NONE, Key::Quit),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, Key::Quit),
            (KeyCode::Char('c'), KeyModifiers::NONE, Key::Nothing),
            (KeyCode::Char('p'), KeyModifiers::NONE, Key::Ask(Ask::StartOrStop)),
            (KeyCode::Char('u'), KeyModifiers::NONE, Key::Ask(Ask::Purge)),
            (KeyCode::F(1), KeyModifiers::NONE, Key::Nothing),
        ] {
            assert_eq!(meaning(KeyEvent::new(code, modifiers)), expected, "{code:?}");
        }
    }
}
