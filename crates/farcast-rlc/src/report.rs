//! Status reports: the PDUs that a receiver has and lacks, in the configured form (TS 25.322 section 9.2.2.11).

use core::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::pdu::{MODULUS, RelativeList, SequenceNumber, Status, StatusBitmap, SuperField};
use crate::status::{ERROR_BURST, STATUS_HEADER_BITS};

/// Bits of an ACK.
const ACK_BITS: usize = 16;
/// Bits of a BITMAP without its octets, or of an RLIST without its code words.
const FIXED_BITS: usize = 20;
/// Bits of a new bitmap. A bitmap goes on over received PDUs to the next missing one as long as that costs less.
const NEW_BITMAP_BITS: u16 = 28;

/// Super fields that name the missing PDUs. The standard leaves the choice to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ReportForm {
    /// LIST: runs of missing PDUs, 16 bits for each 16 PDUs or less.
    List,
    /// BITMAP: a bit for each PDU. A bitmap has whole octets and must not reach VR(H). If it would, it begins up to
    /// seven numbers before VR(R). If the window does not allow that, a LIST names the last PDUs.
    #[default]
    Bitmap,
    /// RLIST: distances and bursts in code words of four bits.
    RelativeList,
}

/// Makes the reports of a receiver that has all PDUs before `vr_r` and none from `vr_h` on, and lacks `missing` between
/// them: the first PDU of each run and the length of the run, in ascending order. `window` is the reception window.
/// `room_bits` are the bits that each report may have, its first four included
/// ([`Format::status_bits`](crate::format::Format::status_bits),
/// [`Format::piggyback_bits`](crate::format::Format::piggyback_bits)). A caller that adds fields to a report keeps
/// their [`bits`](SuperField::bits) free.
///
/// There is always at least one report, and each ends with an ACK. If one report holds everything, its LSN is VR(H):
/// every PDU that it does not name has arrived. If several are needed, LSN is VR(R) in each (section 9.2.2.11.2). If
/// `room_bits` is too small for any field (44 bits for LIST, 48 for BITMAP, 40 for RLIST), there is one report of the
/// PDUs that have arrived in sequence. It is true, but it asks for no PDU. No report has less than 20 bits.
pub fn report(
    form: ReportForm,
    vr_r: SequenceNumber,
    vr_h: SequenceNumber,
    window: u16,
    missing: impl Iterator<Item = (SequenceNumber, u16)> + Clone,
    room_bits: usize,
) -> SmallVec<[Status; 1]> {
    let span = vr_h.since(vr_r);
    let all = within(vr_r, span, missing);
    let mut rest = MissingRuns { runs: all.clone(), open: 0..0, vr_r };
    let room = room_bits.saturating_sub(STATUS_HEADER_BITS + ACK_BITS);
    let before = if window < MODULUS / 2 { 7 } else { 0 };
    let mut reports: SmallVec<[Status; 1]> = smallvec![Status::default()];
    let mut left = room;
    while rest.peek().is_some() {
        let field = match form {
            ReportForm::List => list(&mut rest, left),
            ReportForm::Bitmap => bitmap(&mut rest, &all, span, before, left),
            ReportForm::RelativeList => relative_list(&mut rest, left),
        };
        match (field, reports.last_mut()) {
            (Some(field), Some(report)) => {
                left -= field.bits();
                report.fields.push(field);
            }
            (None, Some(report)) if !report.fields.is_empty() => {
                reports.push(Status::default());
                left = room;
            }
            _ => break,
        }
    }
    let complete = reports.len() == 1 && rest.peek().is_none();
    let ack = SuperField::Ack(if complete { vr_h } else { vr_r });
    reports.iter_mut().for_each(|report| report.fields.push(ack.clone()));
    reports
}

/// Returns the runs of `missing` within the window's first `span` numbers, as ascending offsets from `vr_r`.
fn within(
    vr_r: SequenceNumber,
    span: u16,
    missing: impl Iterator<Item = (SequenceNumber, u16)> + Clone,
) -> impl Iterator<Item = Range<u16>> + Clone {
    let mut from = 0;
    missing.filter_map(move |(first, count)| {
        let start = first.since(vr_r);
        let run = start.max(from)..start.saturating_add(count).min(span);
        let some = !run.is_empty();
        if some {
            from = run.end;
        }
        some.then_some(run)
    })
}

/// Missing PDUs that have not been reported yet.
struct MissingRuns<I> {
    runs: I,
    open: Range<u16>,
    vr_r: SequenceNumber,
}

impl<I: Iterator<Item = Range<u16>>> MissingRuns<I> {
    /// Returns the next run, or the rest of it.
    fn peek(&mut self) -> Option<Range<u16>> {
        if self.open.is_empty() {
            self.open = self.runs.next()?;
        }
        Some(self.open.clone())
    }

    /// Takes every number before `end`.
    fn take_before(&mut self, end: u16) {
        while let Some(run) = self.peek() {
            self.open.start = run.start.max(end.min(run.end));
            if !self.open.is_empty() {
                break;
            }
        }
    }
}

/// Makes a LIST of as many of the next runs as `room` bits hold; `None` if they hold none.
fn list(rest: &mut MissingRuns<impl Iterator<Item = Range<u16>>>, room: usize) -> Option<SuperField> {
    let most = (room.saturating_sub(8) / 16).min(15);
    let mut pairs = SmallVec::new();
    while pairs.len() < most
        && let Some(run) = rest.peek()
    {
        let count = (run.end - run.start).min(16);
        pairs.push((rest.vr_r.plus(run.start), count as u8 - 1));
        rest.take_before(run.start + count);
    }
    Some(SuperField::List(pairs)).filter(|_| most > 0)
}

/// Makes a BITMAP of as many of the next runs as `room` bits hold; `None` if they hold none. `span` is the offset of
/// VR(H), and the bitmap may begin `before` numbers before VR(R).
fn bitmap<I: Iterator<Item = Range<u16>> + Clone>(
    rest: &mut MissingRuns<I>,
    all: &I,
    span: u16,
    before: u16,
    room: usize,
) -> Option<SuperField> {
    let most = (room.saturating_sub(FIXED_BITS) / 8).min(16) as u16;
    let start = rest.peek()?.start;
    let end = reach(rest, start + 8 * most);
    let octets = (end - start).div_ceil(8).min((span + before) / 8);
    if octets == 0 {
        return if most == 0 { None } else { list(rest, room) };
    }
    // A bitmap that would reach over VR(H) begins earlier. The PDUs there are known as well: they have arrived, or were
    // reported before.
    let back = (start + 8 * octets).saturating_sub(span);
    let (low, high) = (start.saturating_sub(back), start + 8 * octets - back);
    let mut bits: SmallVec<[u8; 16]> = smallvec![0xFF; usize::from(octets)];
    for run in all.clone() {
        for offset in run.start.max(low)..run.end.min(high) {
            let bit = offset + back - start;
            bits[usize::from(bit / 8)] &= !(0x80 >> (bit % 8));
        }
    }
    rest.take_before(high);
    let first = rest.vr_r.plus(start).minus(back);
    Some(SuperField::Bitmap(StatusBitmap { first, octets: bits }))
}

/// Returns the best end, up to `limit`, of a bitmap that begins at the next missing PDU.
fn reach<I: Iterator<Item = Range<u16>> + Clone>(rest: &MissingRuns<I>, limit: u16) -> u16 {
    let mut end = rest.open.end.min(limit);
    for run in rest.runs.clone() {
        if run.start >= limit || run.start - end >= NEW_BITMAP_BITS {
            break;
        }
        end = run.end.min(limit);
    }
    end
}

/// Makes an RLIST of as many of the next runs as `room` bits hold; `None` if they hold none.
fn relative_list(
    rest: &mut MissingRuns<impl Iterator<Item = Range<u16>>>,
    room: usize,
) -> Option<SuperField> {
    let most = (room.checked_sub(FIXED_BITS)? / 4).min(15);
    let first = rest.peek()?.start;
    let mut words: SmallVec<[u8; 16]> = SmallVec::new();
    let mut last = first;
    rest.take_before(first + 1);
    while let Some(run) = rest.peek() {
        let (more, distance) = (run.end - run.start, run.start - last);
        // Up to two PDUs that follow take as many words by their distances, which are 1.
        let burst = distance == 1 && more > 2;
        let number = if burst { more } else { distance };
        if words.len() + digits(number) + usize::from(burst) > most {
            break;
        }
        if burst {
            words.push(ERROR_BURST);
        }
        put_number(&mut words, number);
        last = if burst { run.end - 1 } else { run.start };
        rest.take_before(last + 1);
    }
    Some(SuperField::RelativeList(RelativeList { first: rest.vr_r.plus(first), words }))
}

/// Returns the number of code words that `number`, which is not 0, takes.
fn digits(number: u16) -> usize {
    (u16::BITS - number.leading_zeros()).div_ceil(3) as usize
}

/// Appends the words of `number`, which is not 0: the least significant digit first, the last with a 1 behind it.
fn put_number(words: &mut SmallVec<[u8; 16]>, number: u16) {
    let last = digits(number) - 1;
    words.extend((0..=last).map(|digit| ((number >> (3 * digit)) as u8 & 7) << 1 | u8::from(digit == last)));
}

#[cfg(test)]
mod tests;
