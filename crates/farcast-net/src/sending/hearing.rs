//! Reception of the answers that come back to a sender.

use std::io::IoSliceMut;

use farcast_core::engine::{Arrival, Engine as _};
use farcast_delivery::{Codec as _, Delivery as _, Phase, Protocol, Purpose, SenderEngine as _};
use quinn_udp::RecvMeta;

use super::Driver;
use crate::batch::Outlet;
use crate::error::NetError;
use crate::seal::SendSeal;
use crate::socket::Endpoint;

/// Size of a buffer for one receive call's datagrams, octets; a NAK fits one datagram.
const SLOT_LEN: usize = 1 << 16;
const SLOTS: usize = 16;
/// Size of all buffers for answers, octets.
pub(super) const BUFFER: usize = SLOTS * SLOT_LEN;
/// Most times that a socket is read before something is sent again.
const HEARINGS: usize = 32;

impl<P: Protocol> Driver<'_, P> {
    /// Reads the answers that have arrived.
    pub(super) fn hear(&mut self, outlet: &mut Outlet<'_>) -> Result<(), NetError> {
        let announcing = !self.opened || self.sender.phase() == Phase::Announcing;
        if !announcing && !self.sender.routes().answers.ip().is_multicast() {
            // From here on the group carries nothing that we need, only our own data.
            self.group = None;
        }
        let group = self.group.take();
        let Outlet { endpoint, seal, .. } = outlet;
        for endpoint in group.iter().chain([&*endpoint]) {
            // A flood of answers must not keep us from sending.
            for _ in 0..HEARINGS {
                if !self.hear_some(endpoint, seal.as_deref_mut())? {
                    break;
                }
            }
        }
        self.group = group;
        Ok(())
    }

    fn hear_some(&mut self, endpoint: &Endpoint, mut seal: Option<&mut SendSeal>) -> Result<bool, NetError> {
        let mut meta = [RecvMeta::default(); SLOTS];
        let count = {
            let mut slots: Vec<IoSliceMut<'_>> =
                self.buffer.chunks_mut(SLOT_LEN).map(IoSliceMut::new).collect();
            endpoint.receive(&mut slots, &mut meta)?
        };
        let (now, own) = (self.clock.now(), self.sender.routes().source);
        for (slot, meta) in meta[..count].iter().enumerate() {
            if meta.addr == own && endpoint.group().is_some() {
                // Our own data comes back on the group.
                continue;
            }
            let from = Arrival::new(meta.addr, endpoint.local());
            let bytes = &mut self.buffer[slot * SLOT_LEN..][..meta.len];
            let Some(content) = endpoint.content(bytes) else {
                self.malformed += 1;
                continue;
            };
            self.heard += content.len() as u64;
            for datagram in bytes[content].chunks_mut(meta.stride.max(1)) {
                // The seal counts refused datagrams by reason.
                let (datagram, who) = match &mut seal {
                    None => (&*datagram, None),
                    Some(seal) => match seal.open(now, meta.addr, datagram) {
                        Some((opened, who)) => (&datagram[opened], Some(who)),
                        None => continue,
                    },
                };
                let Ok(packet) = self.codec.decode(datagram) else {
                    self.malformed += 1;
                    continue;
                };
                if let (Some(seal), Some(who)) = (&mut seal, who)
                    && !seal.may_say(who, |who| packet.message.may_be_said_by(who))
                {
                    continue;
                }
                // The engine counts rejected messages by reason.
                if self.sender.handle(now, &from, &packet.message).is_ok()
                    && let Purpose::Nak { segments, .. } = packet.message.purpose()
                {
                    self.requests += 1;
                    self.asked += u64::from(segments);
                }
            }
        }
        Ok(count == SLOTS)
    }
}
