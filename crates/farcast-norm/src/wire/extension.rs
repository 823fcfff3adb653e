//! Header extensions (RFC 5740 §4.1).

use farcast_delivery::Vouched;

use farcast_delivery::octets::{Reader, Sink};

use super::DecodeError;
use crate::message::Feedback;
use crate::quantise::{Loss, Rate, Rtt};

/// `EXT_CC`: congestion feedback of a receiver.
const CC: u8 = 3;
/// `EXT_FTI`: size and division of an object.
pub(super) const FTI: u8 = 64;
/// `EXT_RATE`: rate of a sender.
const RATE: u8 = 128;

/// Extension of farcast in INFO: metadata that the sender vouches for. The type is unassigned. The length and the mark
/// show that the extension is farcast's, and not another one of this type. Other receivers skip it by its length, as
/// RFC 5740 §4.1 demands.
///
/// ```text
/// | 112 | 12 | mode | mark (4) | BLAKE3 of the content (32) | modification time, signed ns since 1970 (8) |
/// ```
const VOUCHED: u8 = 112;
const VOUCHED_WORDS: u8 = 12;
const MARK: [u8; 4] = *b"fcst";

/// Known extensions of a header, each without its type; lengths are checked.
#[derive(Default)]
pub(super) struct Found<'a> {
    /// Extension with its length in words, which tells the formats of FEC Encoding IDs apart.
    pub(super) fti: Option<&'a [u8]>,
    pub(super) feedback: Option<Feedback>,
    pub(super) rate: Option<Rate>,
    pub(super) vouched: Option<Vouched>,
}

/// Finds the known extensions of a header. Extensions of types below 128 have their length in words; the others have
/// one word.
pub(super) fn find(octets: &[u8]) -> Result<Found<'_>, DecodeError> {
    let mut found = Found::default();
    let mut reader = Reader::new(octets);
    while let Some(&kind) = reader.rest().first() {
        let wrong = DecodeError::ExtensionLength(kind);
        let len = match (kind, reader.rest().get(1)) {
            (128.., _) => 4,
            (_, Some(&words)) if words > 0 => usize::from(words) * 4,
            _ => return Err(wrong),
        };
        let extension = reader.take(len).map_err(|_| wrong)?;
        let repeated = match kind {
            FTI => found.fti.replace(extension).is_some(),
            CC => found.feedback.replace(feedback(extension).ok_or(wrong)?).is_some(),
            RATE => found.rate.replace(Rate(u16::from_be_bytes([extension[2], extension[3]]))).is_some(),
            VOUCHED => vouched(extension).is_some_and(|said| found.vouched.replace(said).is_some()),
            _ => false,
        };
        if repeated {
            return Err(DecodeError::Repeated(kind));
        }
    }
    Ok(found)
}

/// Decodes the extension; `None` if it is another one of this type, or has a mode that no file has.
fn vouched(extension: &[u8]) -> Option<Vouched> {
    let (head, rest) = extension.split_first_chunk::<8>()?;
    let (digest, mtime) = rest.split_first_chunk::<32>()?;
    let &[_, _, m0, m1, ref mark @ ..] = head;
    let mode = u16::from_be_bytes([m0, m1]);
    let mtime_ns = i64::from_be_bytes(mtime.try_into().ok()?);
    (*mark == MARK && mode <= 0o777).then_some(Vouched { digest: *digest, mode, mtime_ns })
}

pub(super) fn put_vouched<S: Sink>(vouched: Option<&Vouched>, out: &mut S) {
    let Some(Vouched { digest, mode, mtime_ns }) = vouched else { return };
    out.put(&[VOUCHED, VOUCHED_WORDS]);
    out.u16(*mode);
    out.put(&MARK);
    out.put(digest);
    out.put(&mtime_ns.to_be_bytes());
}

fn feedback(extension: &[u8]) -> Option<Feedback> {
    let &[_, _, s0, s1, flags, rtt, l0, l1, r0, r1, l2, l3] = extension else { return None };
    Some(Feedback {
        sequence: u16::from_be_bytes([s0, s1]),
        flags,
        rtt: Rtt(rtt),
        loss: Loss(u32::from_be_bytes([l0, l1, l2, l3])),
        rate: Rate(u16::from_be_bytes([r0, r1])),
    })
}

pub(super) fn put_feedback<S: Sink>(feedback: Option<&Feedback>, out: &mut S) {
    let Some(Feedback { sequence, flags, rtt, loss, rate }) = feedback else { return };
    let [l0, l1, l2, l3] = loss.0.to_be_bytes();
    out.put(&[CC, 3]);
    out.u16(*sequence);
    out.put(&[*flags, rtt.0, l0, l1]);
    out.u16(rate.0);
    out.put(&[l2, l3]);
}

pub(super) fn put_rate<S: Sink>(rate: Option<Rate>, out: &mut S) {
    if let Some(rate) = rate {
        out.put(&[RATE, 0]);
        out.u16(rate.0);
    }
}
