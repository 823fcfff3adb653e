//! Reactions of a receiver to the messages that it receives.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Message as _, Reject};
use farcast_core::{Run, Span, Time};
use farcast_delivery::{ObjectId, Outcome};

use super::congestion::Losses;
use super::files::{Files, MOST_OBJECTS, Object, State};
use super::messages::Messages;
use super::remote::{Goods, Grouped, Met, Path, Reception, Remote, Timer};
use super::window::Window;
use super::{CREDIT, CREDIT_MOST, FileIndex, MOST_REMOTES, MOST_UNDER_WAY, Receiver};
use crate::config::{Delivering, is_group};
use crate::event::ReceiverEvent;
use crate::message::{
    Body, Data, Descriptor, Gsi, MOST_ASKED, Message, Nak, NakKind, NodeId, Opt, Spm, Sqn, Tsi,
};
use crate::sqn::Place;

/// The most numbers beyond the lead that a request of another receiver may name.
const AHEAD: u32 = 1024;

/// Returns `true` if a source may still wait for an acknowledgement of `node`: it asks for one, or it asks so many
/// others that the turn of `node` may come later.
fn asks(options: &[Opt], node: NodeId) -> bool {
    options.iter().any(|option| match option {
        Opt::Ask(ask) => ask.nodes.len() >= MOST_ASKED || ask.nodes.contains(&node),
        _ => false,
    })
}

/// Returns the parity that a source announces, if it can be used here. Segments of other groups are asked for
/// themselves.
fn grouped(options: &[Opt]) -> Option<Grouped> {
    options.iter().find_map(|option| match *option {
        Opt::ParityPrm { on_demand, size, .. } if is_group(size) => Some(Grouped { size, on_demand }),
        _ => None,
    })
}

/// Silence after which a source may be replaced by one that sends; longer than the interval of heartbeats. A short
/// transfer may be over before there is room for its source.
const SILENT: Span = Span::from_millis(2500);

/// A TPDU of data: datagram `index` of `data`, from the source at `at`.
struct Tpdu<'a> {
    now: Time,
    at: usize,
    place: Place,
    data: &'a Data,
    index: u32,
}

impl Receiver {
    pub(super) fn hear(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        if self.is_stopped {
            return Err(Reject::Unexpected);
        }
        let is_other = self.only.is_some_and(|only| only != message.tsi);
        if is_other || self.config.port.is_some_and(|port| port != message.port) {
            return Err(Reject::OtherSession);
        }
        let found = self.remotes.iter().position(|remote| remote.tsi == message.tsi);
        let at = match &message.body {
            // SPMs and data go from a source to its receivers, so they may introduce it.
            Body::Spm(_) | Body::Data(_) => match found {
                Some(at) => at,
                None => self.meet(now, from, message)?,
            },
            _ => found.ok_or(Reject::Stranger)?,
        };
        let at = self.make_room(now, at, message);
        let had = self.has_begun(message.tsi);
        let heard = match &message.body {
            Body::Spm(spm) => self.hear_spm(now, at, from, spm),
            Body::Data(data) => self.hear_data(now, at, data),
            Body::Nak(nak) => self.hear_nak(now, at, from, nak),
            Body::Spmr => self.hear_spmr(now, at),
            Body::Poll(poll) => self.hear_poll(now, at, poll),
            Body::Polr(polr) => self.hear_polr(at, from, polr),
            Body::Ack(_) => Err(Reject::Unexpected),
        };
        if found.is_none() && heard.is_err() {
            self.remotes.truncate(at);
            return heard;
        }
        heard?;
        let octets: usize = if message.is_downstream() {
            (0..message.segments().get()).map(|segment| message.wire_len(segment)).sum()
        } else {
            0
        };
        let remote = self.remotes.get_mut(at).filter(|remote| octets > 0 && remote.tsi == message.tsi);
        if let Some(remote) = remote {
            remote.credit = (remote.credit + CREDIT * octets as u64).min(CREDIT_MOST);
            remote.last_heard = now;
            remote.timers.set(Timer::Expiry, now + self.config.expiry);
        }
        if !had && self.has_begun(message.tsi) && self.config.delivering == Delivering::Files {
            self.leave_others(message.tsi);
        }
        Ok(())
    }

    /// Ends the other sessions of the same source. A source of files has one session at a time, so a new one shows that
    /// the old one ended or was killed. The new session may send the same files.
    fn leave_others(&mut self, tsi: Tsi) {
        for at in (0..self.remotes.len()).rev() {
            let other = self.remotes[at].tsi;
            if other.gsi == tsi.gsi && other != tsi {
                self.gone(at);
            }
        }
    }

    /// Ends all known sessions of a source that has begun another one.
    pub(crate) fn begins_anew(&mut self, source: Gsi) {
        for at in (0..self.remotes.len()).rev() {
            if self.remotes[at].tsi.gsi == source {
                self.gone(at);
            }
        }
    }

    /// Adds an unknown source, and returns its index.
    fn meet(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<usize, Reject> {
        if self.remotes.len() >= MOST_REMOTES {
            let sends = message.data().is_some();
            let silent = |_, remote: &Remote| now.since(remote.last_heard) >= SILENT;
            let at = self.yielding(now, sends, |_, _| true).or_else(|| self.yielding(now, true, silent));
            let at = at.ok_or(Reject::Limit)?;
            self.gone(at);
        }
        let group = if from.destination.ip().is_multicast() { from.destination } else { self.config.group };
        let met = Met { tsi: message.tsi, port: message.port, source: from.source, group, now };
        let mut remote = Remote::new(met, self.config.backoff);
        if message.data().is_some() && !self.config.silent {
            let wait = self.random.below(self.config.spmr_backoff.as_nanos().max(1));
            remote.timers.set(Timer::Spmr, now + Span::from_nanos(1 + wait));
        }
        self.remotes.push(remote);
        Ok(self.remotes.len() - 1)
    }

    /// Returns the source that is the first to be replaced, among those that are `eligible`.
    fn yielding(&self, now: Time, sends: bool, eligible: impl Fn(usize, &Remote) -> bool) -> Option<usize> {
        let remotes = self.remotes.iter().enumerate().filter(|(at, remote)| eligible(*at, remote));
        let yielding = remotes.filter_map(|(at, remote)| Some((remote.yields(now, sends)?, at)));
        yielding.min().map(|(_, at)| at)
    }

    /// Makes room for a file of the source at `at`, if `message` may begin one and there is none. Returns the new index
    /// of that source.
    fn make_room(&mut self, now: Time, at: usize, message: &Message) -> usize {
        let begins = message.data().is_some_and(|data| data.descriptor.is_some());
        if !begins || self.objects().count() < MOST_UNDER_WAY {
            return at;
        }
        let other = |one: usize, remote: &Remote| one != at && remote.objects().next().is_some();
        let Some(other) = self.yielding(now, true, other) else { return at };
        self.gone(other);
        at - usize::from(other < at)
    }

    fn hear_spm(&mut self, now: Time, at: usize, from: &Arrival, spm: &Spm) -> Result<(), Reject> {
        if spm.options.contains(&Opt::Unreachable) {
            return self.hear_unreachable(at, spm);
        }
        let remote = &mut self.remotes[at];
        if remote.path.is_some_and(|path| spm.sqn.since(path.spm) <= 0) {
            return Err(Reject::Duplicate);
        }
        let count = spm.lead.next().since(spm.trail);
        if !spm.is_windowless() && count < 0 {
            return Err(Reject::Inconsistent);
        }
        let port = self.config.unicast_port.unwrap_or(from.source.port());
        let source = remote.path.map_or(from.source.ip(), |path| path.source);
        remote.path = Some(Path {
            spm: spm.sqn,
            upstream: SocketAddr::new(spm.path, port),
            // Network elements send with the source's address. Where they cannot, it is taken from an SPM of the source
            // itself.
            source: if spm.path == from.source.ip() { spm.path } else { source },
            group: remote.group.ip(),
        });
        remote.timers.stop(Timer::Spmr);
        remote.is_asked = !self.config.silent && asks(&spm.options, self.config.node);
        remote.is_deaf = false;
        remote.wanted = spm.options.iter().fold(0, |all, option| match option {
            Opt::Crqst(fields) => all | fields,
            _ => all,
        });
        if remote.wanted == 0 {
            remote.losses = None;
        }
        if remote.reception.is_none() {
            remote.grouped = grouped(&spm.options);
        }
        if !spm.is_windowless() {
            self.hear_window(at, spm);
        }
        for option in &spm.options {
            self.hear_option(now, at, spm.lead, option);
        }
        self.fill(now, at);
        self.look_whether_finished(at);
        if spm.options.iter().any(|option| matches!(option, Opt::Rst { no_naks: true, .. })) {
            self.gone(at);
        }
        Ok(())
    }

    /// Handles the transmit window in an SPM.
    fn hear_window(&mut self, at: usize, spm: &Spm) {
        let join = spm.options.iter().find_map(|option| match option {
            Opt::Join(sqn) => Some(*sqn),
            _ => None,
        });
        let known = self.remotes[at].reception.as_ref().map(|reception| reception.window.lead());
        let Some(known) = known else { return self.begin(at, spm, join) };
        let (trail, lead) = (known.near(spm.trail), known.near(spm.lead).next());
        if let Some(join) = join {
            self.rejoin(at, known.near(join).max(trail));
        }
        self.extend(at, lead);
        self.advance(at, trail);
    }

    /// Begins reception at the place that an SPM gives.
    fn begin(&mut self, at: usize, spm: &Spm, join: Option<Sqn>) {
        let lead = Place::first(spm.lead).next();
        let trail = lead.near(spm.trail);
        let join = join.map(|join| lead.near(join)).filter(|join| (trail..=lead).contains(join));
        let place = join.unwrap_or(lead);
        let goods = match self.config.delivering {
            Delivering::Files => Goods::Files(Files::new(join, join.is_some())),
            how => Goods::Messages(Messages::new(how != Delivering::Unordered, place)),
        };
        self.remotes[at].reception = Some(Reception { window: Window::new(place), goods });
        self.extend(at, lead);
    }

    /// Extends reception back to `place`, if it began before the join place was known and nothing behind has been
    /// delivered.
    fn rejoin(&mut self, at: usize, place: Place) {
        let Some(Reception { window, goods }) = &mut self.remotes[at].reception else { return };
        let place = place.max(Place(window.lead().0.saturating_sub(self.config.window.into())));
        if let Goods::Messages(messages) = goods
            && messages.rejoin(window.begin(), place)
        {
            window.rejoin(place);
        }
    }

    fn hear_option(&mut self, now: Time, at: usize, lead: Sqn, option: &Opt) {
        let remote = &mut self.remotes[at];
        let known = remote.reception.as_ref().map_or(Place::first(lead), |reception| reception.window.lead());
        match option {
            Opt::NakBackoff { .. } | Opt::NakBackoffRange { .. } => self.hear_backoff(at, option),
            Opt::Fin if remote.finished.is_none() => remote.finished = Some(known.near(lead).next()),
            Opt::Ask(ask) if ask.nodes.contains(&self.config.node) => {
                remote.owed = Some((ask.upto, known.near(ask.upto)));
                self.pay(now, at, true);
            }
            _ => {}
        }
    }

    /// Notes that everything before `lead` has been sent.
    pub(super) fn extend(&mut self, at: usize, lead: Place) {
        let Some(Reception { window, goods }) = &mut self.remotes[at].reception else { return };
        let known = window.lead();
        window.extend(lead);
        match goods {
            Goods::Files(files) if files.next.is_none() => window.settle_all(&(known..lead.max(known))),
            Goods::Files(files) => {
                for object in files.objects.values() {
                    object.held_in(&(known..lead.max(known))).for_each(|range| window.settle_all(&range));
                }
            }
            Goods::Messages(_) => {
                let most = u64::from(self.config.window);
                let oldest = Place(window.lead().0.saturating_sub(most));
                if window.first_missing().is_some_and(|first| first < oldest) {
                    self.advance(at, oldest);
                }
            }
        }
    }

    /// Notes that nothing before `trail` can be obtained any more.
    pub(super) fn advance(&mut self, at: usize, trail: Place) {
        let remote = &mut self.remotes[at];
        let Some(Reception { window, .. }) = &mut remote.reception else { return };
        let trail = trail.min(window.lead());
        for range in window.advance(trail) {
            self.lose(at, &range);
        }
        let remote = &mut self.remotes[at];
        if let Some(Reception { goods: Goods::Messages(messages), .. }) = &mut remote.reception {
            messages.prune(remote.tsi, trail, &mut self.events);
        }
    }

    fn hear_spmr(&mut self, now: Time, at: usize) -> Result<(), Reject> {
        let timers = &mut self.remotes[at].timers;
        if !timers.is_set(Timer::Spmr) {
            return Err(Reject::Unexpected);
        }
        timers.set(Timer::Spmr, now + self.config.spmr);
        Ok(())
    }

    fn hear_nak(&mut self, now: Time, at: usize, from: &Arrival, nak: &Nak) -> Result<(), Reject> {
        if nak.kind == NakKind::NullNak {
            return Err(Reject::Unexpected);
        }
        if nak.parity {
            return self.hear_counts(now, at, from, nak);
        }
        let intervals = self.intervals();
        let window =
            |this: &Self| this.remotes[at].reception.as_ref().map(|reception| reception.window.lead());
        let lead = window(self).ok_or(Reject::Unexpected)?;
        let places = || nak.sqns().map(|sqn| lead.near(sqn));
        if places().all(|place| place > lead.plus(AHEAD)) {
            return Err(Reject::OutOfRange);
        }
        if let Some(last) = places().filter(|&place| place <= lead.plus(AHEAD)).max() {
            self.extend(at, last.next());
        }
        self.fill(now, at);
        if nak.kind == NakKind::Confirmation {
            self.look_at_confirmation(at, from, nak);
        }
        if let Some(Reception { window, .. }) = &mut self.remotes[at].reception {
            for place in places() {
                window.heard(now, place, nak.kind == NakKind::Confirmation, &intervals);
            }
        }
        let all: Vec<Place> = places().collect();
        self.hear_of_groups(now, at, &all, nak.kind == NakKind::Confirmation);
        Ok(())
    }

    fn hear_data(&mut self, now: Time, at: usize, data: &Data) -> Result<(), Reject> {
        if data.parity.is_some() {
            return self.hear_parity(now, at, data);
        }
        let remote = &mut self.remotes[at];
        if remote.reception.is_none() {
            let is_ordered = match self.config.delivering {
                // An SPM tells where files begin; a stream's beginning may also be in its data.
                Delivering::Files => return Ok(()),
                Delivering::Stream if !data.options.syn && data.options.join.is_none() => return Ok(()),
                how => how != Delivering::Unordered,
            };
            // Begin at the join number, if it lies before this one and can be repaired.
            let here = Place::first(data.sqn);
            let join = data.options.join.map(|join| here.near(join).max(here.near(data.trail)));
            let most = Place(here.0.saturating_sub(self.config.window.into()));
            let place = join.map_or(here, |join| join.max(most).min(here));
            let goods = Goods::Messages(Messages::new(is_ordered, place));
            remote.reception = Some(Reception { window: Window::new(place), goods });
        }
        let Some(reception) = &remote.reception else { return Ok(()) };
        let window = &reception.window;
        let first = window.lead().near(data.sqn);
        if window.is_full() && first != window.lead() {
            return Err(Reject::Limit);
        }
        let is_file = matches!(reception.goods, Goods::Files(_));
        self.remotes[at].note_passage(data);
        let (mut result, mut taken) = (Err(Reject::Duplicate), false);
        for index in 0..data.count.get() {
            let place = first.plus(index);
            let one = Tpdu { now, at, place, data, index };
            let one = match &data.descriptor {
                Some(said) if is_file => self.hear_descriptor(at, place, said),
                _ if is_file => self.hear_segment(one),
                _ => self.hear_tsdu(one),
            };
            taken |= one.is_ok();
            result = one;
        }
        if taken {
            let trail = first.near(data.trail);
            self.advance(at, trail);
            if let Some(cc) = data.options.cc {
                self.listen(now, at, first, cc);
            }
            self.note_losses(at, first);
            self.fill(now, at);
            self.look_whether_finished(at);
            return Ok(());
        }
        result
    }

    /// Counts losses while the source asks for them.
    fn note_losses(&mut self, at: usize, first: Place) {
        let remote = &mut self.remotes[at];
        if let Some(Reception { window, .. }) = remote.reception.as_ref().filter(|_| remote.wanted > 0) {
            remote.losses.get_or_insert_with(|| Losses::new(first)).look(window);
        }
    }

    /// Returns `true` if `place` is new: not before the lead, or missing.
    fn is_new(&self, at: usize, place: Place) -> bool {
        let window = self.remotes[at].reception.as_ref().map(|reception| &reception.window);
        window.is_some_and(|window| place >= window.lead() || window.is_missing(place))
    }

    /// Notes that `place` has come.
    fn settle(&mut self, at: usize, place: Place) {
        self.extend(at, place);
        let Some(Reception { window, .. }) = &mut self.remotes[at].reception else { return };
        if place == window.lead() {
            window.follow();
        } else {
            window.settle(place);
        }
    }

    /// Handles a TSDU of messages.
    fn hear_tsdu(&mut self, Tpdu { now, at, place, data, .. }: Tpdu<'_>) -> Result<(), Reject> {
        if !self.is_new(at, place) {
            return Err(Reject::Duplicate);
        }
        let largest = self.config.largest_message;
        if data.options.fragment.is_some_and(|fragment| fragment.len > largest) {
            return Err(Reject::Limit);
        }
        let Some(Reception { goods: Goods::Messages(messages), .. }) = &self.remotes[at].reception else {
            return Err(Reject::Unexpected);
        };
        messages.check(place, data, self.config.message_memory, self.config.window)?;
        self.settle(at, place);
        let remote = &mut self.remotes[at];
        remote.fed = Some(now);
        if let Some(Reception { goods: Goods::Messages(messages), .. }) = &mut remote.reception {
            messages.take(remote.tsi, place, data, &mut self.events);
        }
        Ok(())
    }

    /// Handles the descriptor of a file.
    fn hear_descriptor(&mut self, at: usize, place: Place, said: &Descriptor) -> Result<(), Reject> {
        if !self.is_new(at, place) {
            return if said.withdrawn { self.hear_withdrawn(at, place) } else { Err(Reject::Duplicate) };
        }
        let id = ObjectId::new(self.next_object);
        let group = self.remotes[at].grouped.map(|grouped| grouped.size);
        let mut object = Object::new(id, place, said, &self.config, group)?;
        let is_crowded = self.objects().count() >= MOST_UNDER_WAY;
        let remote = &mut self.remotes[at];
        object.passage = remote.passage;
        let files = remote.files().ok_or(Reject::Unexpected)?;
        if files.next.is_some_and(|next| next != place) {
            // The descriptor that belongs before it is missing; this one is asked for again later.
            self.extend(at, place.next());
            return Ok(());
        }
        if files.objects.len() >= MOST_OBJECTS || is_crowded {
            // When one of those files is over, there is room for this one.
            self.extend(at, place.next());
            return Ok(());
        }
        let before = core::mem::replace(&mut files.unused, object.end()..object.next());
        files.next = Some(object.next());
        self.next_object += 1;
        self.settle(at, place);
        let remote = &mut self.remotes[at];
        let offer = object.offer(remote.tsi, remote.source, remote.group, said);
        let Some(Reception { window, goods: Goods::Files(files) }) = &mut remote.reception else {
            return Ok(());
        };
        // The numbers between are unused.
        window.settle_all(&before);
        if place.next() < object.first {
            window.extend(object.first);
            window.settle_all(&(place.next()..object.first));
        }
        files.objects.insert(place, object);
        self.events.push_back(ReceiverEvent::Offered(alloc::boxed::Box::new(offer)));
        // The offer names the file that never comes.
        if said.withdrawn { self.hear_withdrawn(at, place) } else { Ok(()) }
    }

    /// Ends a file that the source has withdrawn, unless all of it is here.
    fn hear_withdrawn(&mut self, at: usize, place: Place) -> Result<(), Reject> {
        let found = FileIndex { at, place };
        self.object_mut(found).filter(|object| object.state != State::Verifying).ok_or(Reject::Duplicate)?;
        self.end(found, Outcome::Withdrawn);
        Ok(())
    }

    /// Handles a segment of a file.
    fn hear_segment(&mut self, Tpdu { now, at, place, data, index }: Tpdu<'_>) -> Result<(), Reject> {
        let is_new = self.is_new(at, place);
        let files = self.remotes[at].files().ok_or(Reject::Unexpected)?;
        let Some(next) = files.next else { return Err(Reject::Unexpected) };
        let Some(object) = files.at(place) else {
            if place <= next || !is_new {
                return Err(Reject::Duplicate);
            }
            // A descriptor will tell the file of this segment; then the segment is asked for.
            self.extend(at, place.next());
            return Ok(());
        };
        let segment = object.segment(place).ok_or(Reject::OutOfRange)?;
        if !object.fits(segment, data, index) {
            return Err(Reject::Inconsistent);
        }
        if !is_new || object.state == State::Verifying || !object.have.insert(segment) {
            object.received.duplicates += 1;
            if is_new {
                self.settle(at, place);
            }
            return Err(Reject::Duplicate);
        }
        object.received.segments += 1;
        let (id, at_place) = (object.id, object.place);
        self.remotes[at].fed = Some(now);
        self.settle(at, place);
        // Segments that follow each other in a message give one event.
        match self.events.back_mut() {
            Some(ReceiverEvent::Store { object, segments, offset })
                if *object == id && segments.end() == segment && *offset + segments.count() == index =>
            {
                *segments = Run::new(segments.first(), segments.count() + 1).unwrap_or(*segments);
            }
            _ => self.events.push_back(ReceiverEvent::Store {
                object: id,
                segments: Run::one(segment),
                offset: index,
            }),
        }
        self.check_group(FileIndex { at, place: at_place }, segment);
        self.check_complete(FileIndex { at, place: at_place });
        Ok(())
    }
}
