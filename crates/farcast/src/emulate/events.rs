//! Events of an emulation, caused by its programs and by people, for its page of plots.

use farcast_core::{BitRate, Span, Time};
use farcast_emu::Clock;
use farcast_emu::control::{Change, LinkDirection};
use farcast_emu::relay::{RelayHandle, RelayView};
use farcast_emu::supervise::Exit;
use farcast_report::emulation::{Direction, Event, EventKind, TimeSpan};

use super::session::State;

/// Maximum number of events that are kept: a script may change the link all day.
const MOST: usize = 10_000;

/// Events of one direction of the link, for the page.
#[derive(Clone, Debug, Default)]
pub(crate) struct WayEvents {
    /// Rates in bit/s, each with the time in seconds from which on it holds.
    pub(crate) rates_bps: Vec<(f64, Option<f64>)>,
    /// Outages that somebody set.
    pub(crate) outages: Vec<TimeSpan>,
}

/// Events since the emulation began.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    clock: Clock,
    /// Time of the relay when the clock began.
    began: Time,
    pub(crate) list: Vec<Event>,
    /// Events of the forward direction, then of the return direction.
    pub(crate) ways: [WayEvents; 2],
    /// Number of events that are not kept.
    pub(crate) left_out: u64,
}

impl Events {
    /// Begins a record of events at the relay's present state.
    pub(crate) fn of(relay: &RelayHandle) -> Self {
        let view = relay.look();
        let mut events = Self {
            clock: Clock::start(),
            began: view.as_ref().map_or(Time::ZERO, |view| view.state.now),
            list: Vec::new(),
            ways: [WayEvents::default(), WayEvents::default()],
            left_out: 0,
        };
        if let Some(view) = view {
            events.note_rates(0.0, &view);
        }
        events
    }

    fn now(&self) -> f64 {
        (self.began + self.clock.now().since(Time::ZERO)).as_secs_f64()
    }

    /// Records that a program has changed its state.
    pub(crate) fn program(&mut self, name: &str, state: State) {
        let (kind, words) = match state {
            State::Waiting => return,
            State::Running(_) => (EventKind::Start, format!("{name} starts")),
            State::Ended(Exit::Code(code)) => (EventKind::End, format!("{name} ends, code {code}")),
            State::Ended(Exit::Signal(signal)) => {
                (EventKind::End, format!("{name} ended by signal {signal}"))
            }
        };
        self.push(Event { at_s: self.now(), kind, way: None, words });
    }

    /// Records a change of the link. `view` shows the link after the change.
    pub(crate) fn change(&mut self, change: &Change, view: &RelayView) {
        let at_s = view.state.now.as_secs_f64();
        let way = change.way.map(|way| match way {
            LinkDirection::Forward => Direction::Forward,
            LinkDirection::Return => Direction::Return,
        });
        let both = if way.is_none() { "both ways: " } else { "" };
        let words = format!("{both}{}", words(change));
        if !self.push(Event { at_s, kind: EventKind::Change, way, words }) {
            return;
        }
        self.note_rates(at_s, view);
        if let Some(outage) = change.outage {
            let ways = [way != Some(Direction::Return), way != Some(Direction::Forward)];
            for (way, _) in self.ways.iter_mut().zip(ways).filter(|(_, is_meant)| *is_meant) {
                way.set_outage(at_s, outage);
            }
        }
    }

    fn note_rates(&mut self, at_s: f64, view: &RelayView) {
        for (way, view) in self.ways.iter_mut().zip([&view.forward, &view.back]) {
            let rate = view.settings.rate.map(|rate| rate.as_bps() as f64);
            if way.rates_bps.last().is_none_or(|last| last.1 != rate) {
                way.rates_bps.push((at_s, rate));
            }
        }
    }

    /// Keeps an event if there is room. Returns `true` if it was kept.
    fn push(&mut self, event: Event) -> bool {
        let has_room = self.list.len() < MOST;
        if has_room {
            self.list.push(event);
        } else {
            self.left_out += 1;
        }
        has_room
    }
}

impl WayEvents {
    /// Records an outage that begins now and lasts for `outage`. An outage that was set before ends now.
    fn set_outage(&mut self, at_s: f64, outage: Span) {
        if let Some(last) = self.outages.last_mut() {
            last.end_s = last.end_s.min(at_s);
        }
        if !outage.is_zero() {
            self.outages.push(TimeSpan { begin_s: at_s, end_s: at_s + outage.as_secs_f64() });
        }
    }
}

/// Returns a change as people write it.
fn words(change: &Change) -> String {
    let Ok(serde_json::Value::Object(values)) = serde_json::to_value(change) else { return String::new() };
    let one = |(key, value): (&String, &serde_json::Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        format!("{key} {}", readable(&text))
    };
    let stage = change.stage.as_ref().map_or_else(String::new, |stage| format!("{stage}: "));
    let keys =
        values.iter().filter(|(key, value)| !["way", "stage"].contains(&key.as_str()) && !value.is_null());
    stage + &keys.map(one).collect::<Vec<_>>().join(", ")
}

/// Returns a quantity in the unit that a person would choose.
fn readable(text: &str) -> String {
    let span = text.parse::<Span>().map(|span| span.to_string());
    span.or_else(|_| text.parse::<BitRate>().map(|rate| rate.to_string())).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_as_people_write_them() {
        let change = Change {
            rate: BitRate::from_bps(1_500_000),
            delay: Some(Span::from_millis(250)),
            per: farcast_core::Probability::new(0.01),
            ..Change::default()
        };
        let told = words(&change);
        for part in ["rate 1.5 Mbit/s", "delay 250 ms", "per 0.01"] {
            assert!(told.contains(part), "{told}");
        }
        let staged =
            Change { stage: Some("bearer".into()), rate: BitRate::from_bps(64_000), ..Change::default() };
        assert_eq!(words(&staged), "bearer: rate 64 kbit/s");
    }

    #[test]
    fn a_later_outage_ends_the_one_before() {
        let mut way = WayEvents::default();
        way.set_outage(1.0, Span::from_secs(5));
        way.set_outage(2.0, Span::from_secs(1));
        way.set_outage(2.5, Span::ZERO);
        way.set_outage(4.0, Span::from_secs(1));
        way.set_outage(9.0, Span::ZERO);
        let intervals: Vec<(f64, f64)> = way.outages.iter().map(|one| (one.begin_s, one.end_s)).collect();
        assert_eq!(intervals, [(1.0, 2.0), (2.0, 2.5), (4.0, 5.0)]);
    }
}
