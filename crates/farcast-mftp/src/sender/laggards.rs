//! Limits on waiting for receivers: silence, progress, and the window that receivers' acknowledgements move.

use alloc::vec::Vec;

use farcast_core::engine::{Reject, Transmit};
use farcast_core::{Span, Time};

use super::delivery::SendStep;
use super::members::{GivenUp, Member, MemberState};
use super::{Phase, Sender};
use crate::config::Pace;
use crate::event::SenderEvent;
use crate::message::{ClientId, GroupModel};
use crate::wire;

/// Limit on the DTUs that one receiver may request: a multiple of the product, plus a constant. At nine tenths of loss
/// a receiver needs ten times the product.
const REPAIRS: u64 = 16;
const REPAIRS_ABOVE: u64 = 4096;
/// Limit, as a multiple of the product, on requests in a group without members. A large group at high loss needs a pass
/// for each factor of loss.
const REPAIRS_UNKNOWN: u64 = 64;
/// The same for the requests of all receivers together that had no turn to register yet.
const REPAIRS_UNPROVED: u64 = 4;
/// Minimum time for which the window waits for one receiver while the others wait for it, and the same in shortest
/// round trips.
const LAG: (Span, u64) = (Span::from_secs(3), 8);
/// Number of times that a receiver may fall behind and catch up before it stays left behind.
const LOOSENED: u32 = 3;
/// Time after which an unproved registration is dropped. That of an invited receiver lasts as long as the silence that
/// members are allowed.
const CLAIM: Span = Span::from_secs(30);
/// Divisor of the largest receive buffer: a smaller buffer does not slow down everybody. `LARGEST_BUFFER` bounds the
/// largest.
const BUFFERS: u32 = 8;
const LARGEST_BUFFER: u32 = 16 << 20;

impl Sender {
    /// Gives up the members that have not answered for too long, in too many rounds, or that make no progress.
    pub(super) fn count_silent(&mut self, now: Time) {
        let (limit, silence) = (self.config.status_retry_count, self.config.silence);
        let mut lost = Vec::new();
        for (&client, member) in self.members.iter_mut().filter(|(_, m)| m.is_active() && m.asked) {
            member.silent_rounds = if member.heard { 0 } else { member.silent_rounds + 1 };
            let silent = now.since(member.silent_since.unwrap_or(now)) >= silence;
            if (member.silent_rounds > limit && silent) || member.is_idle(now, silence) {
                lost.push(client);
            }
        }
        self.give_up_all(lost);
        self.drop_claims(now);
    }

    /// Gives up the members that make no progress, and drops claims, where receivers take turns.
    pub(super) fn give_up_idle(&mut self, now: Time) {
        let silence = self.config.silence;
        let idle = |member: &Member| member.is_active() && member.is_idle(now, silence);
        let lost = self.members.iter().filter(|(_, m)| idle(m)).map(|(&id, _)| id).collect();
        self.give_up_all(lost);
        self.drop_claims(now);
    }

    /// Gives up members that have not answered for too long.
    pub(super) fn give_up_all(&mut self, lost: Vec<ClientId>) {
        for client in lost {
            if self.members.get(&client).is_some_and(|m| m.validated) || self.config.secret.is_none() {
                self.give_up(client, GivenUp::Silent);
            } else {
                self.drop_claim(client);
            }
        }
    }

    /// Drops an unproved claim, because its receiver is not at the address that it claims.
    fn drop_claim(&mut self, client: ClientId) {
        if self.model() == GroupModel::Closed {
            self.members.disown(client);
        } else {
            self.members.remove(client);
        }
    }

    /// Drops the claims that have stood for too long.
    fn drop_claims(&mut self, now: Time) {
        if self.config.secret.is_none() {
            return;
        }
        // An invited receiver may have registered before an outage.
        let closed = self.model() == GroupModel::Closed;
        let wait = if closed { self.config.silence.max(CLAIM) } else { CLAIM };
        let stale = |m: &Member| m.is_active() && !m.validated && now.since(m.progress_at) >= wait;
        let claims: Vec<ClientId> =
            self.members.iter().filter(|(_, m)| stale(m)).map(|(&id, _)| id).collect();
        for client in claims {
            self.drop_claim(client);
        }
    }

    /// Gives up `client` on the owner's demand, whatever it lacks: it counts as lost, and is not waited for.
    pub fn dismiss(&mut self, now: Time, client: ClientId) {
        let takes_part = |member: &Member| member.is_active() || member.state == MemberState::Invited;
        if self.members.get(&client).is_some_and(takes_part) {
            self.give_up(client, GivenUp::Dismissed);
            self.one_less(now);
        }
    }

    fn give_up(&mut self, client: ClientId, why: GivenUp) {
        self.members.change(client, MemberState::Lost(why));
        self.events.push_back(SenderEvent::Lost { client, why });
    }

    /// Counts, when a pass begins, the passes of members that lack no less than when the previous one began.
    pub(super) fn note_idle(&mut self) {
        for member in self.members.values_mut().filter(|m| m.is_active() && m.lacks > 0) {
            let idle = member.lacked > 0 && member.lacks >= member.lacked;
            member.idle_passes = if idle { member.idle_passes + 1 } else { 0 };
            member.lacked = member.lacks;
        }
    }

    /// Charges `client` for `scheduled` DTUs that are sent again on its request. A receiver that requests more than it
    /// can need is given up.
    pub(super) fn charge(&mut self, client: ClientId, scheduled: u32) -> Result<(), Reject> {
        let most = u64::from(self.geometry.segments()) * REPAIRS + REPAIRS_ABOVE;
        let Some(member) = self.members.get_mut(client) else { return Ok(()) };
        member.charged += u64::from(scheduled);
        if member.charged <= most || self.config.secret.is_none() {
            return Ok(());
        }
        member.barred = true;
        self.give_up(client, GivenUp::Greedy);
        Err(Reject::Limit)
    }

    /// Returns the maximum number of DTUs that may be sent again for a group without members.
    pub(super) fn most_unknown(&self) -> u64 {
        u64::from(self.geometry.segments()) * REPAIRS_UNKNOWN + REPAIRS_ABOVE
    }

    /// Returns the maximum number of DTUs that are sent again for all receivers that have not proved themselves.
    pub(super) fn most_unproved(&self) -> u64 {
        u64::from(self.geometry.segments()) * REPAIRS_UNPROVED + REPAIRS_ABOVE
    }

    /// Returns `true` if `block` would exceed the window.
    pub(super) fn window_is_full(&mut self, block: u32) -> bool {
        let Pace::Window { segments, .. } = self.config.pace else { return false };
        let datagram = wire::data_len(usize::from(self.geometry.segment_size())) as u32;
        let slowest = self.paced().map(|(_, m)| m.acked).min();
        let buffers = || self.paced().filter_map(|(_, m)| m.receive_buffer);
        // A receiver's buffer must hold all DTUs in flight; half of it goes to the kernel's bookkeeping.
        let largest = buffers().max().unwrap_or(u32::MAX).min(LARGEST_BUFFER);
        let buffer = buffers().min().map_or(u32::MAX, |bytes| bytes.max(largest / BUFFERS) / 2);
        let segments = segments.min(buffer / datagram).min(self.window_of_way());
        let outstanding = self.flight.outstanding(slowest.unwrap_or(self.flight.newest()));
        outstanding > 0 && outstanding.saturating_add(self.geometry.block_len(block)) > segments
    }

    /// Returns the members that set the pace: those that take part, have proved their address, and are not left behind;
    /// or all active members if there is none.
    pub(super) fn paced(&self) -> impl Iterator<Item = (ClientId, &Member)> {
        let any = self.members.values().any(|m| self.sets_pace(m));
        let members = self.members.iter().map(|(&client, member)| (client, member));
        members.filter(move |(_, m)| m.is_active() && (!any || self.sets_pace(m)))
    }

    pub(super) fn sets_pace(&self, member: &Member) -> bool {
        member.is_active() && !member.loose && (member.validated || self.config.secret.is_none())
    }

    fn stall_time(&self) -> Span {
        // Doubled while no answer comes, up to a second, so that a slow receiver is not flooded with requests.
        let doubled = Span::from_millis(200) * (1 << self.progress.silent_rounds.min(3));
        (self.round_trip() * 4).max(doubled.min(Span::from_secs(1)))
    }

    /// Returns the time at which the window is checked again, if no acknowledgement comes.
    pub(super) fn look_again(&self, now: Time) -> Time {
        let lagging = self.progress.stalled_since.map_or(Time::NEVER, |since| since + self.lag());
        let again = now + self.stall_time();
        if lagging > now { again.min(lagging) } else { again }
    }

    fn lag(&self) -> Span {
        let (least, trips) = LAG;
        least + self.round_trip.shortest().unwrap_or(Span::ZERO) * trips
    }

    /// Handles a lack of acknowledgements: asks the members that are behind again, leaves behind those that hold up the
    /// others, and gives up those that never answer.
    pub(super) fn stalled(&mut self, now: Time) {
        self.follow_train(now);
        if self.phase != Phase::Sending || self.progress.step != SendStep::Stalled {
            return;
        }
        let newest = self.flight.newest();
        for member in self.members.values_mut().filter(|m| m.acked >= newest) {
            (member.heard, member.silent_since) = (true, None);
        }
        self.loosen(now);
        self.count_silent(now);
        self.progress.silent_rounds += 1;
        self.unstall(now);
        if let Some(block) = self.flight.last_block() {
            let blocks = self.ask_again(block);
            let request = self.status_request(now, blocks);
            self.outbox.push_back(Transmit::new(request, self.config.private));
        }
        self.expect_answers(now, true);
    }

    /// Leaves behind the members for which the window has waited too long while others were further. They request what
    /// they miss when the others are served.
    fn loosen(&mut self, now: Time) {
        let waited = self.progress.stalled_since.is_some_and(|since| now.since(since) >= self.lag());
        let ahead = self.paced().map(|(_, m)| m.acked).max();
        let slowest = self.paced().map(|(_, m)| m.acked).min();
        if !waited || ahead == slowest {
            return;
        }
        for member in self.members.values_mut().filter(|m| m.is_active() && Some(m.acked) == slowest) {
            member.loose = true;
            member.loosened += 1;
        }
        self.progress.stalled_since = Some(now);
    }

    /// Waits again for a receiver that was left behind and has caught up, unless that happened too often.
    pub(super) fn tighten(&mut self, client: ClientId) {
        let newest = self.flight.newest();
        if let Some(member) = self.members.get_mut(client)
            && member.loose
            && member.loosened < LOOSENED
            && member.acked + 1 >= newest
        {
            member.loose = false;
        }
    }
}
