//! Keys of the view and their effects.

use farcast_core::{BitRate, Probability, Span};
use farcast_emu::control::{Change, DirectionState, LinkDirection, Request};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::state::View;

/// List of the keys, for the last line of the screen.
pub(super) const KEYS: &str =
    "q quit  o outage 1 s  +- rate  dD delay  lL loss  Tab way  \u{2191}\u{2193} scroll  s stop";

/// Highest rate in bit/s that a key sets: 1000 Gbit/s.
const FASTEST_BPS: u64 = 1_000_000_000_000;
/// Longest delay that a key sets. It is well below the longest delay that can be represented.
const LONGEST_DELAY: Span = Span::from_secs(1_000_000);
/// Smallest change by `d` and `D`.
const SMALLEST_STEP: Span = Span::from_millis(1);
/// First loss probability above zero. A key that raises a loss of zero sets it.
const FIRST_PER: f64 = 0.001;
const LEAST_PER: f64 = 1e-6;

/// Action that a key asks for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Action {
    /// Only draw again.
    Draw,
    /// Leave the view.
    Quit,
    /// Send these requests, each with its name for messages.
    Ask(Vec<(String, Request)>),
}

/// Returns the action for a key.
pub(super) fn press(view: &mut View, key: KeyEvent) -> Action {
    let confirmed = std::mem::take(&mut view.stops);
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Action::Quit } else { Action::Draw };
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
        KeyCode::Char('o') => return outage(view),
        KeyCode::Char('+' | '=') => return change(view, "rate", |way| rate(way, true)),
        KeyCode::Char('-') => return change(view, "rate", |way| rate(way, false)),
        KeyCode::Char('D') => return change(view, "delay", |way| delay(way, true)),
        KeyCode::Char('d') => return change(view, "delay", |way| delay(way, false)),
        KeyCode::Char('L') => return change(view, "loss", |way| loss(way, true)),
        KeyCode::Char('l') => return change(view, "loss", |way| loss(way, false)),
        KeyCode::Char('s') if confirmed => return Action::Ask(vec![("stop".into(), Request::Stop)]),
        KeyCode::Char('s') => {
            view.stops = true;
            view.message = "press s again to end the emulation".into();
        }
        KeyCode::Tab => {
            view.way = match view.way {
                None => Some(LinkDirection::Forward),
                Some(LinkDirection::Forward) => Some(LinkDirection::Return),
                Some(LinkDirection::Return) => None,
            }
        }
        code => scroll(view, code),
    }
    Action::Draw
}

fn scroll(view: &mut View, code: KeyCode) {
    let terminals = view.latest.as_ref().map_or(0, |latest| latest.terminals.len());
    let to = match code {
        KeyCode::Up => view.scroll.saturating_sub(1),
        KeyCode::Down => view.scroll.saturating_add(1),
        KeyCode::PageUp => view.scroll.saturating_sub(10),
        KeyCode::PageDown => view.scroll.saturating_add(10),
        KeyCode::Home => 0,
        KeyCode::End => terminals,
        _ => return,
    };
    view.scroll = to.min(terminals.saturating_sub(1));
}

fn outage(view: &View) -> Action {
    let change = Change { way: view.way, outage: Some(Span::from_secs(1)), ..Change::default() };
    let name = view.way.map_or("both ways", name);
    Action::Ask(vec![(format!("{name}: an outage of 1 s"), Request::Set(change))])
}

/// Asks for a change of each chosen direction for which `next` returns one. `what` names the setting in messages.
fn change(view: &mut View, what: &str, next: impl Fn(&DirectionState) -> Option<(String, Change)>) -> Action {
    let asked = view.chosen().into_iter().filter_map(|(way, state)| {
        let (value, change) = next(state)?;
        let change = Change { way: Some(way), ..change };
        Some((format!("{}: {what} {value}", name(way)), Request::Set(change)))
    });
    let asked: Vec<_> = asked.collect();
    if asked.is_empty() {
        view.message = format!("no {what} here that can be changed so");
        return Action::Draw;
    }
    Action::Ask(asked)
}

/// Returns the name of a direction.
pub(super) fn name(way: LinkDirection) -> &'static str {
    match way {
        LinkDirection::Forward => "forward",
        LinkDirection::Return => "return",
    }
}

/// Returns a change of the rate by a tenth, up or down.
fn rate(way: &DirectionState, more: bool) -> Option<(String, Change)> {
    let bps = way.rate_bps?;
    let step = (bps / 10).max(1);
    let bps = if more { bps.saturating_add(step) } else { bps.saturating_sub(step) };
    let rate = BitRate::from_bps(bps.clamp(1, FASTEST_BPS))?;
    Some((rate.to_string(), Change { rate: Some(rate), ..Change::default() }))
}

/// Returns a change of the delay by a tenth, a millisecond at least, up or down.
fn delay(way: &DirectionState, more: bool) -> Option<(String, Change)> {
    let delay = Span::from_secs_f64(way.delay_s?);
    let step = Span::from_nanos(delay.as_nanos() / 10).max(SMALLEST_STEP);
    let delay = if more { (delay + step).min(LONGEST_DELAY) } else { delay.saturating_sub(step) };
    Some((super::draw::seconds(delay.as_secs_f64()), Change { delay: Some(delay), ..Change::default() }))
}

/// Returns a change of the loss: twice or half as much.
fn loss(way: &DirectionState, more: bool) -> Option<(String, Change)> {
    let per = match (way.per, more) {
        (None, false) => return None,
        (Some(per), true) if per > 0.0 => (per * 2.0).min(1.0),
        (_, true) => FIRST_PER,
        (Some(per), false) if per / 2.0 >= LEAST_PER => per / 2.0,
        (Some(_), false) => 0.0,
    };
    let change = Change { per: Some(Probability::new(per)?), ..Change::default() };
    Some((super::draw::per_cent(per), change))
}
