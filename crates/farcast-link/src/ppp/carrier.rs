//! Real octets over a line: framed at one end, damaged where the line reports damage, deframed at the other.

use alloc::vec::Vec;

use farcast_ppp::framing::FLAG;
use farcast_ppp::{Deframer, Framing};

use super::damage::Damage;

/// Frames for which a [`Carrier`] and its line disagree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct CarrierCounters {
    /// Frames that arrived undamaged and were refused.
    pub(super) faults: u64,
    /// Frames that arrived damaged and were taken.
    pub(super) missed: u64,
}

/// The octets of one direction of a line. The line decides the fate of a frame. The carrier applies this fate to the
/// octets and compares the results.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    framing: Framing,
    deframer: Deframer,
    /// The octets on the line.
    frame: Vec<u8>,
    /// The information of the packet that came out last.
    packet: Vec<u8>,
    counters: CarrierCounters,
}

impl Carrier {
    /// Creates a carrier for packets of up to `mru` octets. If `aligned`, the receiver stands between two frames; else
    /// it waits for a flag.
    pub(super) fn new(framing: Framing, mru: u16, aligned: bool) -> Self {
        let (frame, packet) = (Vec::new(), Vec::new());
        let deframer = Deframer::new(framing, mru);
        let mut carrier = Self { framing, deframer, frame, packet, counters: CarrierCounters::default() };
        carrier.restart(aligned);
        carrier
    }

    pub(super) const fn counters(&self) -> &CarrierCounters {
        &self.counters
    }

    /// Returns the information of the packet that came out last.
    pub(super) fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Restarts the receiver after a frame of unknown octets. The line knows the state in which the frame has left it:
    /// `aligned` or not.
    pub(super) fn restart(&mut self, aligned: bool) {
        self.deframer.restart();
        if aligned {
            let nothing = self.deframer.next(&mut &[FLAG][..]);
            debug_assert_eq!(nothing, None);
        }
    }

    /// Sends a packet. Returns `true` if the line says that it is `intact` and it came out whole; no other packet
    /// leaves.
    ///
    /// A packet counts only if it comes out with the last octet of this frame. If a cut-off takes a closing flag and
    /// nothing else, the frame before comes out with the next flag, too late. An empty packet behind a header of one
    /// octet is too short for a frame (RFC 1662 §3.1) and does not come out.
    pub(super) fn carry(&mut self, protocol: u16, information: &[u8], damage: &Damage, intact: bool) -> bool {
        self.frame.clear();
        self.framing.encode(protocol, information, damage.leading(), &mut self.frame);
        damage.inflict(&mut self.frame);
        let mut input = &self.frame[..];
        let mut arrived = None;
        while let Some(packet) = self.deframer.next(&mut input) {
            if input.is_empty() {
                arrived = Some(packet.protocol);
                self.packet.clear();
                self.packet.extend_from_slice(packet.information);
            }
        }
        let whole = arrived == Some(protocol);
        self.counters.faults += u64::from(intact && !whole && !information.is_empty());
        self.counters.missed += u64::from(!intact && arrived.is_some());
        intact && whole
    }
}
