//! Deframing: packets from the octets on the line (RFC 1662 §4.2, §4.3).

use alloc::vec::Vec;
use core::ops::Range;

use crate::framing::{ADDRESS, CONTROL, ESCAPE, FLAG, Framing, TRANSPARENCY};

/// The longest header: address, control and a protocol field of two octets.
const LONGEST_HEADER: usize = 4;

/// A packet out of a good frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Protocol number.
    pub protocol: u16,
    /// Information field, at most the MRU.
    pub information: &'a [u8],
}

/// Counters of a [`Deframer`], by fate. Every frame counts once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeframerCounters {
    /// Good frames.
    pub good: u64,
    /// Frames that their sender aborted, with an escape before the closing flag.
    pub aborted: u64,
    /// Frames with less than a protocol number and a check sequence: under 4 octets with FCS-16, under 6 with FCS-32.
    pub too_short: u64,
    /// Frames with more information than the MRU.
    pub too_long: u64,
    /// Frames whose check sequence does not fit.
    pub bad_fcs: u64,
    /// Frames to another address than All-Stations, or without an address if it may not be left out.
    pub bad_address: u64,
    /// Frames with another control field than Unnumbered Information.
    pub bad_control: u64,
    /// Frames with an invalid protocol number (RFC 1661 §2), or with a short one that is not allowed.
    pub bad_protocol: u64,
    /// Octets that the receive ACCM removed.
    pub removed_octets: u64,
    /// Octets outside frames: before the first flag, and those of a frame behind the point at which it was too long.
    pub skipped_octets: u64,
}

/// Reason to refuse a frame.
enum Fault {
    TooShort,
    TooLong,
    Fcs,
    Address,
    Control,
    Protocol,
}

/// The receiving end of asynchronous framing.
///
/// Octets come in chunks of any size. Memory is bounded by the MRU: a longer frame is given up where it exceeds it.
#[derive(Clone, Debug)]
pub struct Deframer {
    framing: Framing,
    mru: usize,
    /// The frame so far, without escapes.
    pub(crate) frame: Vec<u8>,
    /// `true` if the frame was handed out and makes room for the next.
    done: bool,
    /// `true` if the last octet was an escape.
    escaping: bool,
    /// `true` while octets belong to no frame, until a flag comes.
    hunting: bool,
    counters: DeframerCounters,
}

impl Deframer {
    /// Creates the receiver for a peer with `framing`, for packets of up to `mru` octets of information. Full headers
    /// are always taken, short ones only if `framing` has them. Unescaped octets in its ACCM are noise.
    pub fn new(framing: Framing, mru: u16) -> Self {
        Self::bounded(framing, mru.into())
    }

    /// Creates a receiver like [`new`](Self::new), with any `mru`: a multilink fragment may be a packet of 65,535
    /// octets, and has a header besides.
    pub fn bounded(framing: Framing, mru: usize) -> Self {
        let frame = Vec::with_capacity(LONGEST_HEADER + mru + framing.fcs.octets() as usize);
        let counters = DeframerCounters::default();
        Self { framing, mru, frame, done: false, escaping: false, hunting: true, counters }
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> &DeframerCounters {
        &self.counters
    }

    /// Begins anew as at the start: octets belong to no frame until a flag comes. Counters continue.
    pub fn restart(&mut self) {
        self.frame.clear();
        (self.done, self.escaping, self.hunting) = (false, false, true);
    }

    /// Takes octets off the front of `input` until a good frame ends, and returns its packet; `None` once all are
    /// taken.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Packet<'_>> {
        if core::mem::take(&mut self.done) {
            self.frame.clear();
        }
        loop {
            let special = input.iter().position(|&octet| self.is_special(octet));
            let (plain, rest) = input.split_at(special.unwrap_or(input.len()));
            self.take(plain);
            *input = rest;
            let &octet = input.split_off_first()?;
            match octet {
                FLAG => {
                    if let Some((protocol, information)) = self.end_frame() {
                        return Some(Packet { protocol, information: &self.frame[information] });
                    }
                }
                // The frame may have become too long just before.
                _ if self.hunting || (self.escaping && octet == ESCAPE) => self.take(&[octet]),
                ESCAPE => self.escaping = true,
                _ => self.counters.removed_octets += 1,
            }
        }
    }

    /// Returns `true` if an octet is more than content.
    const fn is_special(&self, octet: u8) -> bool {
        octet == FLAG || (!self.hunting && self.framing.is_escaped(octet))
    }

    /// Adds content to the frame, the first octet perhaps behind an escape.
    fn take(&mut self, octets: &[u8]) {
        if self.hunting {
            self.counters.skipped_octets += octets.len() as u64;
            return;
        }
        let Some((&first, rest)) = octets.split_first() else { return };
        let most = LONGEST_HEADER + self.mru + self.framing.fcs.octets() as usize;
        let room = most - self.frame.len();
        if octets.len() > room {
            self.counters.too_long += 1;
            self.counters.skipped_octets += (octets.len() - room) as u64;
            (self.hunting, self.escaping) = (true, false);
            return;
        }
        let escaped = core::mem::take(&mut self.escaping);
        self.frame.push(if escaped { first ^ TRANSPARENCY } else { first });
        self.frame.extend_from_slice(rest);
    }

    /// Checks the frame that a flag ends. A good frame stays until the next call.
    fn end_frame(&mut self) -> Option<(u16, Range<usize>)> {
        let found = if core::mem::take(&mut self.hunting) {
            None
        } else if core::mem::take(&mut self.escaping) {
            self.counters.aborted += 1;
            None
        } else if self.frame.is_empty() {
            // Flags between frames: the sender may send any number of them.
            None
        } else {
            let judged = self.judge();
            self.count(judged)
        };
        self.done = found.is_some();
        if !self.done {
            self.frame.clear();
        }
        found
    }

    fn count<T>(&mut self, judged: Result<T, Fault>) -> Option<T> {
        let counters = &mut self.counters;
        let counter = match judged {
            Ok(_) => &mut counters.good,
            Err(Fault::TooShort) => &mut counters.too_short,
            Err(Fault::TooLong) => &mut counters.too_long,
            Err(Fault::Fcs) => &mut counters.bad_fcs,
            Err(Fault::Address) => &mut counters.bad_address,
            Err(Fault::Control) => &mut counters.bad_control,
            Err(Fault::Protocol) => &mut counters.bad_protocol,
        };
        *counter += 1;
        judged.ok()
    }

    /// Returns the protocol of the frame and the range of its information.
    fn judge(&self) -> Result<(u16, Range<usize>), Fault> {
        let fcs = self.framing.fcs;
        let end = self.frame.len().saturating_sub(fcs.octets() as usize);
        let body = &self.frame[..end];
        let &[first, second, ..] = body else { return Err(Fault::TooShort) };
        if !fcs.is_good(&self.frame) {
            return Err(Fault::Fcs);
        }
        let address = match (first, second) {
            (ADDRESS, CONTROL) => 2,
            (ADDRESS, _) => return Err(Fault::Control),
            _ if self.framing.acfc => 0,
            _ => return Err(Fault::Address),
        };
        let (protocol, octets) = self.protocol(&body[address..]).ok_or(Fault::Protocol)?;
        let information = address + octets..end;
        if information.len() > self.mru { Err(Fault::TooLong) } else { Ok((protocol, information)) }
    }

    /// Returns the protocol number and its length. Only the last octet of the number is odd (RFC 1661 §2).
    fn protocol(&self, body: &[u8]) -> Option<(u16, usize)> {
        match *body {
            [low, ..] if low & 1 == 1 => self.framing.pfc.then_some((u16::from(low), 1)),
            [high, low, ..] if low & 1 == 1 => Some((u16::from_be_bytes([high, low]), 2)),
            _ => None,
        }
    }
}
