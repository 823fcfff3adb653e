//! State of a running emulation, which its clients read and change.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farcast_core::Span;
use farcast_core::stage::End;
use farcast_emu::control::{
    Bin, Change, Count, Description, DirectionState, Handler, HostDescription, Lateness, LinkDirection,
    ProgramPhase, ProgramState, Snapshot, StageDescription, TerminalState,
};
use farcast_emu::emulation::LatenessReport;
use farcast_emu::host::HostPosition;
use farcast_emu::link::Sum;
use farcast_emu::relay::{RelayHandle, RelayView, WayView};
use farcast_emu::supervise::Exit;
use rustix::event::{EventfdFlags, eventfd};

use super::events::Events;
use super::plan::Wish;
use super::session::{State, places};
use crate::Failure;

/// State that the session and the server of clients share.
#[derive(Clone)]
pub(crate) struct Live {
    description: Description,
    changes: Arc<Mutex<Vec<Change>>>,
    latest: Span,
    relay: RelayHandle,
    programs: Arc<Mutex<Vec<ProgramState>>>,
    events: Arc<Mutex<Events>>,
    stopped: Arc<AtomicBool>,
    bell: Arc<OwnedFd>,
}

impl Live {
    /// Makes the state of an emulation. The user knows its process by `pid`.
    pub(crate) fn new(wish: &Wish, pid: u32, relay: RelayHandle) -> Result<Self, Failure> {
        let program = |job: &super::plan::Job| ProgramState {
            name: job.name.clone(),
            host: wish.name_of(job.place),
            ..ProgramState::default()
        };
        Ok(Self {
            description: describe(wish, pid),
            changes: Arc::default(),
            latest: wish.plan.latest(),
            events: Arc::new(Mutex::new(Events::of(&relay))),
            relay,
            programs: Arc::new(Mutex::new(wish.jobs.iter().map(program).collect())),
            stopped: Arc::default(),
            bell: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
        })
    }

    /// Returns a handler for the server of clients.
    pub(crate) fn handler(&self) -> impl Handler + use<> {
        self.clone()
    }

    /// Records that a program has changed its state.
    pub(crate) fn tell(&self, number: usize, state: State) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(program) = programs.get_mut(number) else { return };
        self.lock_events().program(&program.name, state);
        match state {
            State::Waiting => program.phase = ProgramPhase::Waiting,
            State::Running(_) => program.phase = ProgramPhase::Running,
            State::Ended(exit) => {
                program.phase = ProgramPhase::Ended;
                match exit {
                    Exit::Code(code) => program.exit_code = Some(code),
                    Exit::Signal(signal) => program.signal = Some(signal),
                }
            }
        }
    }

    /// Returns the events so far.
    pub(crate) fn events(&self) -> Events {
        self.lock_events().clone()
    }

    fn lock_events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_changes(&self) -> MutexGuard<'_, Vec<Change>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a client has asked for the end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

impl AsFd for Live {
    /// Returns a descriptor that is readable once a client has asked for the end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Handler for Live {
    fn set(&mut self, change: Change) -> Result<(), String> {
        self.relay.change(change.clone())?;
        if let Some(view) = self.relay.look() {
            self.lock_events().change(&change, &view);
        }
        change.join(&mut self.lock_changes());
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(view) = self.relay.look() else { return Snapshot { programs, ..Snapshot::default() } };
        Snapshot {
            time_s: view.state.now.as_secs_f64(),
            interval_s: 0.0,
            forward: way(&view.forward),
            back: way(&view.back),
            terminals: terminals(&view),
            lateness: lateness(&LatenessReport::new(self.latest, &view)),
            programs,
        }
    }

    fn describe(&mut self) -> Description {
        Description { changes: self.lock_changes().clone(), ..self.description.clone() }
    }

    fn stop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

fn count(sum: Sum) -> Count {
    Count { packets: sum.packets, octets: sum.octets }
}

fn way(view: &WayView) -> DirectionState {
    let counts = &view.counts;
    DirectionState {
        entered: count(counts.entered),
        delivered: count(counts.delivered),
        lost: count(counts.lost),
        given_up: count(counts.given_up),
        dropped: count(counts.dropped),
        inside: count(view.inside),
        queue_octets: view.queued,
        rate_bps: view.settings.rate.map(farcast_core::BitRate::as_bps),
        delay_s: view.settings.delay.map(Span::as_secs_f64),
        queue_limit_octets: view.settings.queue,
        per: view.settings.per.map(farcast_core::Probability::get),
        outage_s: view.outage.map(Span::as_secs_f64),
        ..DirectionState::default()
    }
}

fn terminals(view: &RelayView) -> Vec<TerminalState> {
    let one = |(terminal, counts): (u32, &farcast_emu::link::TerminalCounts)| TerminalState {
        terminal,
        delivered: count(counts.delivered[0]),
        lost: count(counts.lost[0]),
    };
    (0..).zip(&view.terminals).map(one).collect()
}

fn lateness(report: &LatenessReport) -> Lateness {
    Lateness {
        packets: report.packets,
        p50_s: report.p50_s,
        p99_s: report.p99_s,
        p999_s: report.p999_s,
        max_s: report.max_s,
        valid: report.within,
        limit_s: Some(report.limit_s),
        bins: report.histogram.iter().map(|row| Bin { below_s: row.below_s, packets: row.packets }).collect(),
    }
}

fn describe(wish: &Wish, pid: u32) -> Description {
    let host = |place: HostPosition| HostDescription {
        name: wish.name_of(place),
        address: place.address(),
        terminal: if let HostPosition::Terminal(number) = place { Some(number) } else { None },
    };
    Description {
        version: env!("CARGO_PKG_VERSION").into(),
        pid,
        link: wish.name.clone(),
        seed: wish.plan.link.seed,
        stages: stages(wish),
        changes: Vec::new(),
        hosts: places(&wish.plan).map(host).collect(),
    }
}

/// Returns the stages with the settings that the link's file gives them.
pub(crate) fn stages(wish: &Wish) -> Vec<StageDescription> {
    let links = &wish.plan.link.links;
    let several = links.stages.iter().map(|(name, stage)| {
        let way = stage.direction().map(|to| match to {
            End::Terminal => LinkDirection::Forward,
            End::Hub => LinkDirection::Return,
        });
        one_stage(wish, name, &format!("link.stages.{name}."), way)
    });
    let ends = [("forward", LinkDirection::Forward), ("return", LinkDirection::Return)]
        .map(|(name, way)| one_stage(wish, name, &format!("link.{name}."), Some(way)));
    several.chain(ends).collect()
}

fn one_stage(wish: &Wish, name: &str, prefix: &str, way: Option<LinkDirection>) -> StageDescription {
    let own = |(key, value, _): &(String, String, bool)| {
        Some((key.strip_prefix(prefix)?.to_owned(), value.trim_matches('"').to_owned()))
    };
    let mut settings: BTreeMap<String, String> = wish.keys.iter().filter_map(own).collect();
    let kind = settings.remove("kind").unwrap_or_else(|| "pipe".into());
    settings.remove("name");
    for queue in &wish.queues {
        if let Some(key) = queue.key.strip_prefix(prefix) {
            let what = if queue.is_product() { "1 BDP" } else { "10 packets" };
            settings.insert(key.to_owned(), format!("{} B ({what})", queue.octets));
        }
    }
    StageDescription { name: Some(name.to_owned()), kind, way, settings }
}
