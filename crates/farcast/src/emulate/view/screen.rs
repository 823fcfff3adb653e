//! Terminal in which the view is shown.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farcast_core::Span;
use farcast_emu::control::{Control, ControlError, Request};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::draw::draw;
use super::keys::{Action, press};
use super::state::View;
use crate::{Failure, output};

/// Interval between two snapshots.
const EVERY: Span = Span::from_millis(500);
/// Longest time that a key waits for the screen, and that news wait while no key comes.
const TICK: Duration = Duration::from_millis(50);
/// Most lines that are taken before a key is read.
const BATCH: usize = 64;

/// Restores the terminal when the view ends, in whichever way. A panic's message comes after that, by the hook of the
/// library.
struct Screen;

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the emulation until it ends or the user leaves.
pub(super) fn show(mut control: Control) -> Result<u8, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut view = View::default();
    ask(&mut control, &mut view, String::new(), &Request::Describe)?;
    ask(&mut control, &mut view, String::new(), &Request::Watch { every: EVERY })?;
    let screen = Screen;
    let shown = ratatui::try_init()
        .map_err(Failure::from)
        .and_then(|mut terminal| drive(&mut terminal, &mut control, &mut view, &interrupted));
    drop(screen);
    if shown? {
        output::Output::for_people().line("the emulation has ended");
    }
    Ok(0)
}

fn ask(control: &mut Control, view: &mut View, what: String, request: &Request) -> Result<(), ControlError> {
    control.send(request)?;
    view.ask(what);
    Ok(())
}

/// Draws the view and does what keys ask for. Returns `true` if the emulation ended, `false` if the user left.
fn drive(
    terminal: &mut DefaultTerminal,
    control: &mut Control,
    view: &mut View,
    interrupted: &AtomicBool,
) -> Result<bool, Failure> {
    loop {
        terminal.draw(|frame| draw(frame, view))?;
        let go_on = step(control, view);
        match go_on {
            Ok(true) if !interrupted.load(Ordering::Relaxed) => {}
            Ok(_) => return Ok(false),
            Err(Stop::Ended) => return Ok(true),
            Err(Stop::Failed(failure)) => return Err(failure),
        }
    }
}

/// Reason for which the view cannot go on.
enum Stop {
    Ended,
    Failed(Failure),
}

impl From<ControlError> for Stop {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Ended => Self::Ended,
            error => Self::Failed(error.into()),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Takes lines from the emulation and a key from the user. Returns `false` if the user leaves.
fn step(control: &mut Control, view: &mut View) -> Result<bool, Stop> {
    for _ in 0..BATCH {
        let Some(line) = control.next(Span::ZERO)? else { break };
        view.hear(line);
    }
    if !event::poll(TICK)? {
        return Ok(true);
    }
    let Event::Key(key) = event::read()? else { return Ok(true) };
    if key.kind == KeyEventKind::Release {
        return Ok(true);
    }
    match press(view, key) {
        Action::Draw => Ok(true),
        Action::Quit => Ok(false),
        Action::Ask(questions) => {
            for (what, request) in questions {
                ask(control, view, what, &request)?;
            }
            Ok(true)
        }
    }
}
