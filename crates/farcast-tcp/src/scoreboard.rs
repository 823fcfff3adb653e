//! Scoreboard of segments in flight: those that have arrived, and those that are lost (RFC 6675 section 4).
//!
//! Every segment sent and not yet acknowledged has a record, in order of position. Marks that only move forward find
//! the losses. So the cost of an acknowledgment grows with its news, not with the octets in flight.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::{Span, Time};

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlightRecord {
    pub start: u64,
    /// Data octets, and one for a FIN.
    pub len: u32,
    /// Time at which it was last sent.
    pub sent_at: Time,
    pub transmissions: u16,
    pub fin: bool,
    pub sacked: bool,
    pub lost: bool,
    /// The segment was sent again, and the copy is taken to be in flight.
    pub resent: bool,
}

impl FlightRecord {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// News of an acknowledgment about segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    /// Octets that are newly acknowledged cumulatively.
    pub acknowledged: u64,
    /// Octets that are newly known to have arrived, by cumulative or selective acknowledgment.
    pub octets: u64,
    /// Round trip of the first newly acknowledged segment, if no newly acknowledged segment was sent twice. It includes
    /// the peer's delay.
    pub first_trip: Option<Span>,
    /// Shortest round trip among the segments that arrived and were sent once.
    pub last_trip: Option<Span>,
    /// Highest position that had arrived before.
    pub highest: u64,
    /// A segment that was sent once arrived out of order: below one that had arrived before.
    pub reordered: bool,
    /// End of the lowest arrived segment that was sent once only (for F-RTO).
    pub original: Option<u64>,
    /// Of the arrived segments, the one that was sent last: its time of sending, its end, and `true` if it was sent
    /// again (RFC 8985 section 5.2).
    pub latest: Option<(Time, u64, bool)>,
}

/// The scoreboard of a sending direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<FlightRecord>,
    /// Disjoint ranges above the first unacknowledged octet that have arrived, in order.
    arrived: Vec<(u64, u64)>,
    /// First unacknowledged position; `next` is the position behind the last octet sent.
    first: u64,
    next: u64,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Lost octets that are not sent again.
    unrepaired: u64,
    /// Position below which every octet that has not arrived is marked lost.
    lost_below: u64,
    /// Position below which every lost segment was sent again.
    repair_from: u64,
    /// Transmissions in the order of their times and, at one instant, of their positions. Present only if losses are
    /// found by time.
    log: Option<VecDeque<(Time, u64)>>,
}

/// Result of the search for losses by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LostByTime {
    /// A segment was found lost.
    pub any: bool,
    /// Time at which the other segments that were sent before the reference segment will count as lost.
    pub rest_at: Option<Time>,
}

impl Scoreboard {
    /// Creates an empty scoreboard whose first position is `first`; `timed` if losses are found by time.
    pub(crate) fn new(first: u64, timed: bool) -> Self {
        Self {
            first,
            next: first,
            lost_below: first,
            repair_from: first,
            log: timed.then(VecDeque::new),
            ..Self::default()
        }
    }

    /// Returns SND.UNA.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// Returns SND.NXT.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of octets sent and not acknowledged (`FlightSize`).
    pub(crate) const fn flight(&self) -> u64 {
        self.next - self.first
    }

    /// Returns the number of octets that are taken to be in the network (RFC 6675's pipe).
    pub(crate) const fn pipe(&self) -> u64 {
        self.flight() - self.sacked - self.lost + self.resent
    }

    /// Returns `true` if the first segment in flight is lost.
    pub(crate) fn first_is_lost(&self) -> bool {
        self.records.front().is_some_and(|first| first.lost)
    }

    /// Returns the end of the first segment in flight.
    pub(crate) fn first_end(&self) -> u64 {
        self.records.front().map_or(self.next, FlightRecord::end)
    }

    /// Returns `true` if a retransmission is in flight.
    pub(crate) const fn has_copies(&self) -> bool {
        self.resent > 0
    }

    /// Returns the number of octets that were sent again and are taken to be in flight.
    pub(crate) const fn copies(&self) -> u64 {
        self.resent
    }

    /// Returns `true` if a segment in flight is lost.
    pub(crate) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Returns the number of octets that have arrived out of order.
    pub(crate) const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Returns the highest position that has arrived out of order (FACK), or the first unacknowledged one.
    pub(crate) fn highest_arrived(&self) -> u64 {
        self.arrived.last().map_or(self.first, |&(_, right)| right)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a new segment that was sent.
    pub(crate) fn push(&mut self, now: Time, len: u32, fin: bool) {
        let start = self.next;
        self.next += u64::from(len);
        self.records.push_back(FlightRecord {
            start,
            len,
            sent_at: now,
            transmissions: 1,
            fin,
            sacked: false,
            lost: false,
            resent: false,
        });
        self.note_sent(now, start);
    }

    /// Returns the index of the record that holds `position`.
    fn index_of(&self, position: u64) -> usize {
        // Segments mostly have one size: the index that follows from it is tried before the search.
        if let Some(front) = self.records.front().filter(|front| front.len > 0) {
            let guess = (position.saturating_sub(front.start) / u64::from(front.len)) as usize;
            if self.records.get(guess).is_some_and(|r| r.start <= position && position < r.end()) {
                return guess;
            }
        }
        self.records.partition_point(|record| record.end() <= position)
    }

    /// Takes the acknowledgment of everything below `position`.
    pub(crate) fn acknowledge(&mut self, now: Time, position: u64, delivered: &mut Delivered) {
        let mut twice = false;
        while let Some(front) = self.records.front().copied().filter(|front| front.start < position) {
            if front.end() > position {
                self.cut(0, (position - front.start) as u32);
            }
            let Some(record) = self.records.pop_front() else { break };
            twice |= record.transmissions > 1;
            self.forget(&record);
            if !record.sacked {
                note(delivered, now, &record);
                let trip = Some(now.since(record.sent_at)).filter(|_| record.transmissions == 1);
                delivered.first_trip = delivered.first_trip.or(trip);
                delivered.reordered |= record.transmissions == 1 && record.start < delivered.highest;
            }
        }
        if twice {
            delivered.first_trip = None;
        }
        delivered.acknowledged = position - self.first;
        self.first = position;
        self.lost_below = self.lost_below.max(position);
        self.repair_from = self.repair_from.max(position);
        let gone = self.arrived.iter().take_while(|&&(_, right)| right <= position).count();
        self.arrived.drain(..gone);
        if let Some(range) = self.arrived.first_mut() {
            range.0 = range.0.max(position);
        }
    }

    /// Takes a record out of the sums.
    fn forget(&mut self, record: &FlightRecord) {
        let len = u64::from(record.len);
        self.sacked -= if record.sacked { len } else { 0 };
        self.lost -= if record.lost { len } else { 0 };
        self.resent -= if record.resent { len } else { 0 };
        self.unrepaired -= if record.lost && !record.resent { len } else { 0 };
    }

    /// Cuts record `index` behind `octets`, which are fewer than it has.
    fn cut(&mut self, index: usize, octets: u32) {
        let record = &mut self.records[index];
        let mut tail = *record;
        record.len = octets;
        record.fin = false;
        tail.start += u64::from(octets);
        tail.len -= octets;
        self.records.insert(index + 1, tail);
        self.note_sent(tail.sent_at, tail.start);
    }

    /// Logs the time at which the record at `start` was sent.
    fn note_sent(&mut self, at: Time, start: u64) {
        let Some(log) = &mut self.log else { return };
        let entry = (at, start);
        if log.back().is_none_or(|last| *last <= entry) {
            log.push_back(entry);
        } else {
            log.insert(log.partition_point(|other| *other <= entry), entry);
        }
    }

    /// Marks octets `left..right` as arrived, and counts the new ones in `delivered`.
    pub(crate) fn arrive(&mut self, now: Time, left: u64, right: u64, delivered: &mut Delivered) {
        let (mut left, right) = (left.max(self.first), right.min(self.next));
        if left >= right {
            return;
        }
        let begin = self.arrived.partition_point(|range| range.1 < left);
        let (mut from, mut to, mut end) = (left, right, begin);
        while let Some(&range) = self.arrived.get(end).filter(|range| range.0 <= right) {
            if left < range.0 {
                self.mark_arrived(now, left, range.0, delivered);
            }
            left = left.max(range.1);
            (from, to) = (from.min(range.0), to.max(range.1));
            end += 1;
        }
        if left < right {
            self.mark_arrived(now, left, right, delivered);
        }
        if end == begin + 1 {
            self.arrived[begin] = (from, to);
        } else {
            self.arrived.splice(begin..end, [(from, to)]);
        }
    }

    /// Marks the records of `left..right`, none of which had arrived.
    fn mark_arrived(&mut self, now: Time, left: u64, right: u64, delivered: &mut Delivered) {
        let mut index = self.index_of(left);
        while let Some(record) = self.records.get(index).copied().filter(|record| record.start < right) {
            if record.start < left {
                self.cut(index, (left - record.start) as u32);
                index += 1;
                continue;
            }
            if record.end() > right {
                self.cut(index, (right - record.start) as u32);
            }
            let record = self.records[index];
            self.forget(&record);
            note(delivered, now, &record);
            delivered.reordered |= record.transmissions == 1 && record.start < delivered.highest;
            let kept = &mut self.records[index];
            (kept.sacked, kept.lost, kept.resent) = (true, false, false);
            self.sacked += u64::from(kept.len);
            index += 1;
        }
    }

    /// Returns the position below which everything that has not arrived is lost: at least `threshold` separate ranges,
    /// or more than `threshold - 1` segments, have arrived above it (RFC 6675's `IsLost`).
    pub(crate) fn lost_by_count(&self, threshold: u64, smss: u64) -> u64 {
        let mut octets = 0;
        for (count, &(left, right)) in (1..).zip(self.arrived.iter().rev()) {
            octets += right - left;
            if count >= threshold || octets > (threshold - 1) * smss {
                return left;
            }
        }
        self.first
    }

    /// Marks everything below `position` that has not arrived as lost. Returns `true` if a segment is newly lost.
    pub(crate) fn lose_below(&mut self, position: u64) -> bool {
        let position = position.min(self.next);
        if position <= self.lost_below {
            return false;
        }
        let mut index = self.index_of(self.lost_below);
        let mut more = false;
        while self.records.get(index).is_some_and(|record| record.start < position) {
            more |= self.lose(index);
            index += 1;
        }
        self.lost_below = position;
        more
    }

    fn lose(&mut self, index: usize) -> bool {
        let record = &mut self.records[index];
        if record.sacked || record.lost {
            return false;
        }
        record.lost = true;
        let (start, len) = (record.start, u64::from(record.len));
        let unrepaired = !record.resent;
        self.lost += len;
        if unrepaired {
            self.unrepaired += len;
            self.repair_from = self.repair_from.min(start);
        }
        true
    }

    /// Marks the first segment in flight as lost, or lost once more.
    pub(crate) fn lose_first(&mut self) {
        if self.records.front().is_some_and(|record| !record.sacked) {
            self.lose_again(0);
        }
    }

    /// Marks everything in flight that has not arrived as lost after a timeout, including retransmissions. If the first
    /// segment in flight is marked as arrived, the peer has discarded data that it had reported (RFC 2018 section 8).
    /// All its reports are then forgotten.
    pub(crate) fn lose_all(&mut self) {
        let reneged = self.records.front().is_some_and(|front| front.sacked);
        if reneged {
            self.arrived.clear();
            self.sacked = 0;
        }
        self.lost = 0;
        self.resent = 0;
        for record in &mut self.records {
            record.sacked &= !reneged;
            record.lost = !record.sacked;
            record.resent = false;
            self.lost += if record.lost { u64::from(record.len) } else { 0 };
        }
        self.unrepaired = self.lost;
        self.lost_below = self.next;
        self.repair_from = self.first;
    }

    /// Clears all marks of loss.
    pub(crate) fn lose_nothing(&mut self) {
        for record in &mut self.records {
            record.lost = false;
        }
        (self.lost, self.unrepaired) = (0, 0);
        (self.lost_below, self.repair_from) = (self.first, self.next);
        if let Some(log) = &mut self.log {
            // Segments that were lost by time are not in the log any more. They may still be lost, so they are added
            // again.
            log.clear();
            log.extend(
                self.records.iter().filter(|r| !r.sacked).map(|record| (record.sent_at, record.start)),
            );
            log.make_contiguous().sort_unstable();
        }
    }

    /// Returns the first segment that is lost and not sent again.
    pub(crate) fn next_lost(&mut self) -> Option<FlightRecord> {
        if self.unrepaired == 0 {
            return None;
        }
        let mut index = self.index_of(self.repair_from);
        while let Some(record) = self.records.get(index).filter(|record| record.start < self.next) {
            if record.lost && !record.resent {
                self.repair_from = record.start;
                return Some(*record);
            }
            index += 1;
        }
        self.repair_from = self.next;
        None
    }

    /// Returns the first segment at or behind `from` that has not arrived, is not lost and was not sent again, and lies
    /// below one that has arrived (RFC 6675's `NextSeg` rule 3).
    pub(crate) fn next_doubtful(&self, from: u64) -> Option<FlightRecord> {
        let highest = self.highest_arrived();
        let mut index = self.index_of(from.max(self.first));
        while let Some(record) = self.records.get(index).filter(|record| record.start < highest) {
            if !record.sacked && !record.lost && !record.resent {
                return Some(*record);
            }
            index += 1;
        }
        None
    }

    /// Returns the time since the first segment in flight was last sent.
    pub(crate) fn age_of_first(&self, now: Time) -> Option<Span> {
        self.records.front().map(|first| now.since(first.sent_at))
    }

    /// Returns the last segment in flight.
    pub(crate) fn last(&self) -> Option<FlightRecord> {
        self.records.back().copied()
    }

    /// Sends the segment at `start` again, cut to at most `most` octets. Returns the record of the part that is sent.
    pub(crate) fn resend(&mut self, now: Time, start: u64, most: u32) -> Option<FlightRecord> {
        let index = self.index_of(start);
        let record = self.records.get(index).copied().filter(|record| record.start == start)?;
        if record.len > most && !(record.fin && record.len == most + 1) {
            self.cut(index, most);
        }
        let record = &mut self.records[index];
        record.sent_at = now;
        record.transmissions = record.transmissions.saturating_add(1);
        if !record.resent && !record.sacked {
            record.resent = true;
            self.resent += u64::from(record.len);
            self.unrepaired -= if record.lost { u64::from(record.len) } else { 0 };
        }
        let record = *record;
        if self.repair_from == record.start {
            self.repair_from = record.end();
        }
        self.note_sent(now, start);
        Some(record)
    }

    /// Takes back the last segment, which has not left, if it begins at `start` and was sent once. Returns `true` if
    /// so.
    pub(crate) fn unsend(&mut self, start: u64) -> bool {
        let Some(last) = self.records.back().copied() else { return false };
        if last.start != start || last.transmissions > 1 || last.sacked {
            return false;
        }
        self.records.pop_back();
        self.forget(&last);
        self.next = start;
        self.lost_below = self.lost_below.min(start);
        self.repair_from = self.repair_from.min(start);
        true
    }

    /// Takes back the copy of the segment at `start`, which has not left. Returns `true` if a copy was in flight. The
    /// segment still counts as sent twice, so that no round trip is measured by it.
    pub(crate) fn unsend_copy(&mut self, start: u64) -> bool {
        let index = self.index_of(start);
        let Some(record) = self.records.get_mut(index).filter(|r| r.start == start && r.resent) else {
            return false;
        };
        let len = u64::from(record.len);
        record.resent = false;
        self.resent -= len;
        self.unrepaired += if record.lost { len } else { 0 };
        self.repair_from = self.repair_from.min(start);
        true
    }

    /// Finds losses by time (RFC 8985 section 6.2). The reference segment was sent at `latest` and ends at `end`. Every
    /// segment sent before it is lost once it has been in flight for `patience`.
    pub(crate) fn lose_by_time(&mut self, now: Time, latest: Time, end: u64, patience: Span) -> LostByTime {
        let mut any = false;
        while let Some(&(sent, start)) = self.log.as_ref().and_then(VecDeque::front) {
            if let Some((index, record)) = self.in_flight_since(sent, start) {
                let before = sent < latest || (sent == latest && record.end() < end);
                if !before {
                    return LostByTime { any, rest_at: None };
                }
                if sent + patience > now {
                    let last = self.last_sent_before(latest, end).unwrap_or(sent);
                    return LostByTime { any, rest_at: Some(last + patience) };
                }
                self.lose_again(index);
                any = true;
            }
            if let Some(log) = &mut self.log {
                log.pop_front();
            }
        }
        LostByTime { any, rest_at: None }
    }

    /// Returns the record at `start` with its index, if its transmission at `sent` may still arrive.
    fn in_flight_since(&self, sent: Time, start: u64) -> Option<(usize, FlightRecord)> {
        let index = if start < self.first { self.records.len() } else { self.index_of(start) };
        let record = self.records.get(index).copied()?;
        let current = record.start == start && record.sent_at == sent;
        (current && !record.sacked && (!record.lost || record.resent)).then_some((index, record))
    }

    /// Returns the time of the last transmission that may still arrive and that precedes the transmission of octet
    /// `end` at `latest`. Only the nearest few are checked, so that the cost of an acknowledgment does not grow with
    /// the octets in flight.
    fn last_sent_before(&self, latest: Time, end: u64) -> Option<Time> {
        let log = self.log.as_ref()?;
        let end = log.partition_point(|entry| *entry < (latest, end));
        let nearest = log.range(..end).rev().take(NEAREST);
        nearest
            .copied()
            .find(|&(sent, start)| self.in_flight_since(sent, start).is_some())
            .map(|(sent, _)| sent)
    }

    /// Marks a record and its copy as lost.
    fn lose_again(&mut self, index: usize) {
        let record = &mut self.records[index];
        let (start, end, len) = (record.start, record.end(), u64::from(record.len));
        if record.resent {
            record.resent = false;
            self.resent -= len;
            self.unrepaired += if record.lost { len } else { 0 };
        }
        self.lose(index);
        self.repair_from = self.repair_from.min(start);
        if start <= self.lost_below {
            self.lost_below = self.lost_below.max(end);
        }
    }

    /// Checks the sums against the records, and panics if they do not agree: for tests.
    pub(crate) fn check(&self) {
        let sum = |of: fn(&FlightRecord) -> bool| -> u64 {
            self.records.iter().filter(|record| of(record)).map(|record| u64::from(record.len)).sum()
        };
        assert_eq!(self.sacked, sum(|r| r.sacked));
        assert_eq!(self.lost, sum(|r| r.lost));
        assert_eq!(self.resent, sum(|r| r.resent));
        assert_eq!(self.unrepaired, sum(|r| r.lost && !r.resent));
        let mut at = self.first;
        for record in &self.records {
            assert!(record.start == at && record.len > 0);
            assert!(!(record.sacked && (record.lost || record.resent)));
            assert!(record.start >= self.repair_from || !record.lost || record.resent);
            at = record.end();
        }
        assert_eq!(at, self.next);
        let marked: u64 = self.arrived.iter().map(|range| range.1 - range.0).sum();
        assert_eq!(marked, self.sacked);
    }
}

/// Number of transmissions that are checked in the search for the last one that may still arrive.
const NEAREST: usize = 64;

/// Counts the arrival of `record`.
fn note(delivered: &mut Delivered, now: Time, record: &FlightRecord) {
    delivered.octets += u64::from(record.len);
    if record.transmissions == 1 {
        delivered.original = Some(delivered.original.map_or(record.end(), |end| end.min(record.end())));
        let trip = now.since(record.sent_at);
        delivered.last_trip = Some(delivered.last_trip.map_or(trip, |least| least.min(trip)));
    }
    let candidate = (record.sent_at, record.end(), record.transmissions > 1);
    if delivered.latest.is_none_or(|latest| (latest.0, latest.1) < (candidate.0, candidate.1)) {
        delivered.latest = Some(candidate);
    }
}

#[cfg(test)]
mod tests;
