//! Dealings of a receiver with network elements and repairers: polls (RFC 3208 §14), redirection (§9.5), and parents
//! that cannot be asked (§15.3).

use core::net::{IpAddr, SocketAddr};

use farcast_core::engine::{Arrival, Message as _, Reject, Transmit};
use farcast_core::{Span, Time};

use super::Receiver;
use super::remote::{Polled, Redirection, Timer};
use crate::element::GENERAL;
use crate::message::{Body, Message, Nak, NakKind, Opt, Poll, Polr, Spm, Sqn};

/// Returns `true` if `address` is in the subnet of `own`, whose prefix has `len` bits.
fn is_near(address: IpAddr, own: IpAddr, len: u8) -> bool {
    let (bits, a, b) = match (address, own) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (32, u128::from(a.to_bits()), u128::from(b.to_bits())),
        (IpAddr::V6(a), IpAddr::V6(b)) => (128, a.to_bits(), b.to_bits()),
        _ => return false,
    };
    (a ^ b).checked_shr(bits - u32::from(len).min(bits)).unwrap_or(0) == 0
}

impl Receiver {
    /// Handles a poll by which the parent counts its children.
    pub(super) fn hear_poll(&mut self, now: Time, at: usize, poll: &Poll) -> Result<(), Reject> {
        let remote = &mut self.remotes[at];
        let parent = remote.path.map(|path| path.upstream.ip());
        if poll.subtype != GENERAL || parent != Some(poll.path) {
            return Err(Reject::Unexpected);
        }
        poll.follows(remote.polled.map(|heard| (heard.sqn, heard.round)))?;
        remote.polled = Some(Polled { sqn: poll.sqn, round: poll.round });
        // The answer to an earlier poll is not wanted any more.
        remote.timers.stop(Timer::Poll);
        if (self.lot ^ poll.random) & poll.mask == 0 && !self.config.silent {
            let most = Span::from_micros(poll.backoff_us.into());
            let wait = Span::from_nanos(self.random.below(most.as_nanos() + 1));
            remote.timers.set(Timer::Poll, now + wait);
        }
        for option in &poll.options {
            self.hear_backoff(at, option);
        }
        Ok(())
    }

    /// Answers the latest poll.
    pub(super) fn answer_poll(&mut self, at: usize) {
        let remote = &mut self.remotes[at];
        let (Some(Polled { sqn, round }), Some(path)) = (remote.polled, remote.path) else { return };
        let body = Body::Polr(Polr { sqn, round, parity: false, options: alloc::vec::Vec::new() });
        let message = Message { tsi: remote.tsi, port: remote.port, body };
        if let Some(credit) = remote.credit.checked_sub(message.wire_len(0) as u64) {
            remote.credit = credit;
            self.outbox.push_back(Transmit::new(message, path.upstream));
        }
    }

    /// Takes the interval of back-offs from an option. An interval that belongs to a poll counts only if that poll was
    /// heard.
    pub(super) fn hear_backoff(&mut self, at: usize, option: &Opt) {
        let remote = &mut self.remotes[at];
        match option {
            Opt::NakBackoff { interval_us, sqn } => {
                let heard = remote.polled.is_some_and(|polled| polled.sqn.since(*sqn) <= 0);
                if *sqn == Sqn(0) || heard {
                    remote.backoff = Span::from_micros(u64::from(*interval_us).max(1));
                }
            }
            Opt::NakBackoffRange { max_us, min_us } if min_us <= max_us => {
                let (least, most) =
                    (Span::from_micros((*min_us).into()), Span::from_micros((*max_us).into()));
                remote.backoff = remote.backoff.clamp(least, most.max(Span::from_micros(1)));
            }
            _ => {}
        }
    }

    /// Takes a repairer that announces itself upstream. One on this subnet is ignored: it is not on the path of
    /// repairs.
    pub(super) fn hear_polr(&mut self, at: usize, from: &Arrival, polr: &Polr) -> Result<(), Reject> {
        let to = polr.options.iter().find_map(|option| match option {
            Opt::Redirect(to) => Some(*to),
            _ => None,
        });
        let (Some(to), Some(subnet), true) = (to, self.config.subnet, from.destination.ip().is_multicast())
        else {
            return Err(Reject::Unexpected);
        };
        let remote = &mut self.remotes[at];
        let Some(path) = remote.path else { return Err(Reject::Unexpected) };
        if is_near(to, subnet.0, subnet.1) || to.is_multicast() || to.is_unspecified() {
            return Err(Reject::OutOfRange);
        }
        let to = SocketAddr::new(to, path.upstream.port());
        if remote.redirection.is_some_and(|redirection| redirection.to == to) {
            return Err(Reject::Duplicate);
        }
        remote.redirection = Some(Redirection { to, asked: None });
        Ok(())
    }

    /// Forgets a repairer that has not confirmed a request in time.
    pub(super) fn look_at_repairer(&mut self, now: Time, at: usize) {
        let confirm = self.config.confirm;
        let remote = &mut self.remotes[at];
        remote.redirection =
            remote.redirection.filter(|redirection| redirection.asked.is_none_or(|at| at + confirm > now));
    }

    /// Handles an SPM that says that the element on its path cannot be heard: the receiver asks nothing until the next
    /// ordinary SPM.
    pub(super) fn hear_unreachable(&mut self, at: usize, spm: &Spm) -> Result<(), Reject> {
        let remote = &mut self.remotes[at];
        let Some(path) = remote.path.filter(|path| path.upstream.ip() == spm.path) else {
            return Err(Reject::Unexpected);
        };
        if spm.sqn.since(path.spm) < 0 {
            return Err(Reject::Duplicate);
        }
        remote.is_deaf = true;
        Ok(())
    }

    /// Takes the state of the confirming node from a confirmation. A confirmation that came to this host alone is
    /// passed on to the others on its link.
    pub(super) fn look_at_confirmation(&mut self, at: usize, from: &Arrival, nak: &Nak) {
        let remote = &mut self.remotes[at];
        if let Some(redirection) = &mut remote.redirection {
            redirection.asked = None;
        }
        if !nak.options.contains(&Opt::Unreachable) {
            return;
        }
        let parent = remote.path.map(|path| path.upstream.ip());
        let is_parent = |option: &Opt| matches!(option, Opt::PathNla(path) if parent == Some(*path));
        remote.is_deaf |= nak.options.iter().any(is_parent);
        if !from.destination.ip().is_multicast() && nak.kind == NakKind::Confirmation && !self.config.silent {
            let message = Message { tsi: remote.tsi, port: remote.port, body: Body::Nak(nak.clone()) };
            if let Some(credit) = remote.credit.checked_sub(message.wire_len(0) as u64) {
                remote.credit = credit;
                let near = Transmit::new(message, remote.group);
                self.outbox.push_back(Transmit { ttl: Some(1), ..near });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_is_its_prefix() {
        let of = |text: &str| text.parse::<IpAddr>().expect("address");
        let own = of("10.1.2.3");
        assert!(is_near(of("10.1.2.200"), own, 24) && !is_near(of("10.1.3.3"), own, 24));
        assert!(is_near(own, own, 32) && !is_near(of("10.1.2.2"), own, 32));
        assert!(is_near(of("192.0.2.1"), own, 0), "everything is near");
        assert!(!is_near(of("fd00::1"), own, 8), "another family never is");
        assert!(is_near(of("fd00::1"), of("fd00::2"), 64) && !is_near(of("fd01::1"), of("fd00::2"), 64));
    }
}
