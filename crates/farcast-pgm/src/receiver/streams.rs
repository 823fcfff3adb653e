//! Further functions for a receiver of a stream: restriction to one session, the owner's progress, and the end of a
//! source that is gone.

use core::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Message as _, Transmit};

use super::Receiver;
use super::remote::{Goods, Reception};
use crate::message::{Ack, Body, Has, Message, Opt, Tsi};

impl Receiver {
    /// Restricts the receiver to the session `tsi` from now on.
    pub fn hear_only(&mut self, tsi: Tsi) {
        self.only = Some(tsi);
        self.remotes.retain(|remote| remote.tsi == tsi);
    }

    /// Forgets the session `tsi`.
    pub fn forget(&mut self, tsi: Tsi) {
        self.remotes.retain(|remote| remote.tsi != tsi);
    }

    /// Returns `true` if it is known at which number the session `tsi` begins for this receiver.
    pub fn has_begun(&self, tsi: Tsi) -> bool {
        self.remotes.iter().any(|remote| remote.tsi == tsi && remote.reception.is_some())
    }

    /// Returns `true` if no other session than `tsi` is known.
    pub fn knows_only(&self, tsi: Tsi) -> bool {
        self.remotes.iter().all(|remote| remote.tsi == tsi)
    }

    /// Returns the address from which the session `tsi` was heard.
    pub fn source(&self, tsi: Tsi) -> Option<SocketAddr> {
        self.remotes.iter().find(|remote| remote.tsi == tsi).map(|remote| remote.source)
    }

    /// Returns `true` if any content of the session `tsi` has come.
    pub fn is_fed(&self, tsi: Tsi) -> bool {
        self.remotes.iter().any(|remote| remote.tsi == tsi && remote.fed.is_some())
    }

    /// Notes that the owner has kept everything delivered of `tsi`, so that it may be acknowledged.
    pub fn keep_told(&mut self, now: Time, tsi: Tsi) {
        let Some(at) = self.remotes.iter().position(|remote| remote.tsi == tsi) else { return };
        if let Some(Reception { goods: Goods::Messages(messages), .. }) = &mut self.remotes[at].reception {
            messages.settle();
            self.pay(now, at, false);
        }
    }

    /// Acknowledges as much as the receiver has of what it was asked for.
    pub(super) fn say_has(&mut self, at: usize) {
        let remote = &mut self.remotes[at];
        let (Some((upto, place)), Some(path)) = (remote.owed, remote.path) else { return };
        let upto = match remote.reception.as_ref().map(|reception| &reception.goods) {
            Some(Goods::Messages(messages)) => match messages.settled {
                Some(has) if has <= place => has.sqn().minus(1),
                Some(_) => upto,
                None => return,
            },
            _ => upto,
        };
        remote.owed = remote.owed.filter(|&(all, _)| all != upto);
        let options = alloc::vec![Opt::Has(Has { upto, node: self.config.node })];
        let body = Body::Ack(Ack { highest: upto, bitmap: u32::MAX, options });
        let message = Message { tsi: remote.tsi, port: remote.port, body };
        if let Some(credit) = remote.credit.checked_sub(message.wire_len(0) as u64) {
            remote.credit = credit;
            self.outbox.push_back(Transmit::new(message, path.upstream));
        }
    }

    /// Gives up the missing data, and delivers what has come behind it.
    pub(super) fn give_up(&mut self, at: usize) {
        if let Some(reception) = &self.remotes[at].reception {
            let lead = reception.window.lead();
            self.advance(at, lead);
            self.look_whether_finished(at);
        }
    }
}
