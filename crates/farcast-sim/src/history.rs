//! History of a replication in a compact form, for drawings and tables.
//!
//! A [`History`] observes a [`Star`](crate::star::Star); [`finish`](History::finish) returns the [`Record`]. Its memory
//! is bounded by its settings, not by the number of events. Where there are more points than the limit, points that lie
//! close together become one with a count. Of passes and waits beyond the limit only the number is kept.

mod record;
mod series;

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::Message;
use farcast_core::stage::Frame;
use farcast_delivery::{
    Asked, Delivery as _, Milestone, NakFate, Phase, Protocol, Purpose, SenderEngine as _,
};

use crate::star::{Observer, SenderEvent};

pub use record::{Lane, LaneNak, NakCounts, Pass, Record, Wait, WaitFor};
pub use series::{Interval, Point, total};

use record::Open;
use series::{Intervals, Series};

/// Limits of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryConfig {
    /// Maximum number of points of each kind, of passes, of waits, and of NAKs of each lane; at least 2.
    pub points: usize,
    /// Maximum number of receivers for which each receiver has a lane. A larger population may send its NAKs merged:
    /// then the history has only what reaches the sender.
    pub lanes: u32,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self { points: 2000, lanes: 60 }
    }
}

/// Place of a NAK in the lanes.
#[derive(Clone, Copy, Debug)]
struct Place {
    lane: usize,
    nak: usize,
}

/// Observer that collects the events of a replication.
#[derive(Clone, Debug)]
pub struct History {
    config: HistoryConfig,
    record: Record,
    data: Intervals,
    announcements: Series,
    registrations: Series,
    requests: Series,
    naks_sent: Series,
    naks_used: Series,
    naks_known: Series,
    naks_late: Series,
    confirmations: Series,
    dones: Series,
    leavings: Series,
    completions: Series,
    /// Pass that is being sent, and the sender's current wait.
    open: Open,
    /// NAK that reaches the sender right now.
    reaching: Option<Place>,
}

impl History {
    /// Makes a history of a replication with `receivers` receivers.
    pub fn new(receivers: u32, config: HistoryConfig) -> Self {
        let config = HistoryConfig { points: config.points.max(2), ..config };
        let series = || Series::new(config.points);
        let lanes = if receivers <= config.lanes { receivers } else { 0 };
        Self {
            config,
            record: Record::new(receivers, lanes),
            data: Intervals::new(config.points),
            announcements: series(),
            registrations: series(),
            requests: series(),
            naks_sent: series(),
            naks_used: series(),
            naks_known: series(),
            naks_late: series(),
            confirmations: series(),
            dones: series(),
            leavings: series(),
            completions: series(),
            open: Open::default(),
            reaching: None,
        }
    }

    /// Returns the record. A pass or wait that has not ended ends with the last event.
    pub fn finish(mut self) -> Record {
        let end = self.record.end;
        self.end_pass(end);
        self.end_wait(end);
        Record {
            data: self.data.into_list(),
            announcements: self.announcements.into_points(),
            registrations: self.registrations.into_points(),
            status_requests: self.requests.into_points(),
            naks_sent: self.naks_sent.into_points(),
            naks_used: self.naks_used.into_points(),
            naks_known: self.naks_known.into_points(),
            naks_late: self.naks_late.into_points(),
            confirmations: self.confirmations.into_points(),
            dones: self.dones.into_points(),
            leavings: self.leavings.into_points(),
            completions: self.completions.into_points(),
            ..self.record
        }
    }

    fn see(&mut self, at: Time) {
        self.record.end = self.record.end.max(at);
    }

    fn end_pass(&mut self, at: Time) {
        let Some(pass) = self.open.pass.take() else { return };
        if self.record.passes.len() < self.config.points {
            self.record.passes.push(Pass { end: at, ..pass });
        } else {
            self.record.passes_left_out += 1;
        }
    }

    fn end_wait(&mut self, at: Time) {
        let Some(wait) = self.open.wait.take() else { return };
        if self.record.waits.len() < self.config.points {
            self.record.waits.push(Wait { end: at, ..wait });
        } else {
            self.record.waits_left_out += 1;
        }
    }

    /// Begins pass `number`, unless it has begun.
    fn begin_pass(&mut self, at: Time, number: u32) -> &mut Pass {
        if self.open.pass.is_some_and(|pass| pass.number != number) {
            self.end_pass(at);
        }
        self.end_wait(at);
        self.open.after_pass = number;
        self.open.pass.get_or_insert(Pass { number, begin: at, end: at, scheduled: 0, dtus: 0 })
    }

    /// Notes a run of data that leaves. The event of its pass may come only afterwards.
    fn data<M: Message>(&mut self, at: Time, pass: u32, frame: &Frame<M>) {
        let count = u64::from(frame.segments());
        let end = at + frame.spacing * count;
        self.see(end);
        self.data.add(Interval { begin: at, end, count });
        self.begin_pass(at, pass).dtus += count;
    }

    /// Notes a NAK that has left a receiver with a lane.
    fn nak_left(&mut self, at: Time, receiver: u32, pass: u32, block: u32, dtus: u32) {
        let Some(lane) = self.record.lanes.get_mut(receiver as usize) else { return };
        if lane.naks.len() < self.config.points {
            lane.naks.push(LaneNak { sent: at, pass, block, dtus, reached: None });
        } else {
            lane.naks_left_out += 1;
        }
    }

    /// Returns the place of the NAK of a receiver's lane that reaches the sender: the first like NAK under way.
    fn nak_under_way(&self, receiver: u32, pass: u32, block: u32, dtus: u32) -> Option<Place> {
        let lane = self.record.lanes.get(receiver as usize)?;
        let alike =
            |nak: &LaneNak| nak.reached.is_none() && (nak.pass, nak.block, nak.dtus) == (pass, block, dtus);
        Some(Place { lane: receiver as usize, nak: lane.naks.iter().position(alike)? })
    }
}

impl<P: Protocol> Observer<P> for History {
    fn wants_each(&self) -> bool {
        // Lanes show single receivers.
        self.record.receivers <= self.config.lanes
    }

    fn sent(&mut self, at: Time, _destination: SocketAddr, frame: &Frame<P::Message>) {
        self.see(at);
        match frame.message.purpose() {
            Purpose::Content { round } => self.data(at, round, frame),
            Purpose::Query => {
                self.requests.add(at, 1);
                // A repeated query begins a new wait.
                if self.open.waits_for(WaitFor::Answers) {
                    self.end_wait(at);
                }
            }
            Purpose::Announcement => self.announcements.add(at, 1),
            Purpose::Confirmation => self.confirmations.add(at, 1),
            Purpose::Nak { .. } | Purpose::Other => {}
        }
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<P::Message>) {
        self.see(at);
        if let Purpose::Nak { round, block, segments } = frame.message.purpose() {
            self.naks_sent.add(at, 1);
            self.nak_left(at, receiver, round, block, segments);
        }
    }

    fn reached(&mut self, at: Time, receiver: u32, message: &P::Message) {
        self.see(at);
        self.reaching = None;
        if let Purpose::Nak { round, block, segments } = message.purpose() {
            self.reaching = self.nak_under_way(receiver, round, block, segments);
        }
    }

    fn nak(&mut self, at: Time, &Asked { count, fate, .. }: &Asked) {
        self.see(at);
        match fate {
            NakFate::Used => self.naks_used.add(at, count),
            NakFate::Known => self.naks_known.add(at, count),
            NakFate::Late => self.naks_late.add(at, count),
        }
        if let Some(wait) = &mut self.open.wait {
            wait.naks.add(count, fate);
        }
        if let Some(Place { lane, nak }) = self.reaching.take() {
            self.record.lanes[lane].naks[nak].reached = Some((at, fate));
        }
    }

    fn told(&mut self, at: Time, event: &SenderEvent<P>) {
        self.see(at);
        let Some(milestone) = P::Sender::milestone(event) else { return };
        match milestone {
            Milestone::Joined => self.registrations.add(at, 1),
            Milestone::Round { round, segments } => self.begin_pass(at, round).scheduled = segments,
            Milestone::Done => self.dones.add(at, 1),
            Milestone::Left => self.leavings.add(at, 1),
            Milestone::Began { .. } | Milestone::Delivered | Milestone::Ended { .. } => {
                self.record.milestones.push((at, milestone));
            }
        }
    }

    fn phase(&mut self, at: Time, phase: Phase) {
        self.see(at);
        if phase != Phase::Sending {
            self.end_pass(at);
        }
        let waits_for = WaitFor::in_phase(phase);
        if self.open.wait.as_ref().map(|wait| wait.waits_for) != waits_for {
            self.end_wait(at);
            self.open.wait = waits_for.map(|waits_for| Wait::new(at, waits_for, self.open.after_pass));
        }
    }

    fn completed(&mut self, at: Time, receiver: u32) {
        self.see(at);
        self.completions.add(at, 1);
        if let Some(lane) = self.record.lanes.get_mut(receiver as usize) {
            lane.completed = Some(at);
        }
    }
}

#[cfg(test)]
mod tests;
