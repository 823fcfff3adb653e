//! The gate of a receiving stream: lets in datagrams that the sender has signed, or, without a seal, all.

use std::net::IpAddr;
use std::ops::Range;

use farcast_core::{Span, Time};
use farcast_delivery::{Proved, StreamEngine};
use farcast_seal::Class;
use quinn_udp::RecvMeta;

use super::receiving::StreamEnd;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::listening::Unlike;
use crate::seal::{ReceiveSeal, is_sealed};
use crate::socket::Endpoint;

/// Longest time for which the end of a stream waits until its session is written.
const DISK_PATIENCE: Span = Span::from_secs(2);

/// Gate for received datagrams. Lets in those that the sender has signed, or, without a seal, all of them.
pub(super) struct Gate<'a> {
    pub(super) seal: Option<&'a mut ReceiveSeal>,
    /// A sealed datagram has arrived, and we have no key.
    sealed: bool,
    /// A refusal that the user should know of, and the address of the sender.
    pub(super) unlike: Option<(IpAddr, Unlike)>,
}

impl<'a> Gate<'a> {
    pub(super) fn new(seal: Option<&'a mut ReceiveSeal>) -> Self {
        Self { seal, sealed: false, unlike: None }
    }

    pub(super) fn open(
        &mut self,
        now: Time,
        meta: &RecvMeta,
        engine: &impl StreamEngine,
        datagram: &mut [u8],
    ) -> Option<Range<usize>> {
        let source = meta.addr.ip();
        let Some(seal) = &mut self.seal else {
            if !self.sealed && is_sealed(datagram) {
                (self.sealed, self.unlike) = (true, Some((source, Unlike::Sealed)));
            }
            return Some(0..datagram.len());
        };
        let Some(opened) = seal.open(now, meta.addr, datagram) else {
            self.unlike = self.unlike.or_else(|| Some((source, seal.unlike(now)?)));
            return None;
        };
        let said = &datagram[opened.payload.clone()];
        // Nobody would notice a forged part of a stream, so all of it is signed.
        let signed = opened.class == Class::Control;
        seal.is_sent_by(opened.session, |who| signed && engine.may_say(said, who)).then_some(opened.payload)
    }

    /// Begins to write the history of what was heard, now and then. Returns the reason for which that failed, once.
    ///
    /// # Errors
    /// That reason, if a stream is being received.
    pub(super) fn check_memory(&mut self, now: Time) -> Result<Option<NetError>, NetError> {
        let Some(seal) = &mut self.seal else { return Ok(None) };
        match seal.tick(now) {
            Err(why) if !seal.is_idle() => Err(NetError::Forgetful(why)),
            _ => Ok(seal.newly_forgetful().map(NetError::Forgetful)),
        }
    }

    /// Ends the stream, `at` octets from its beginning, so that a recording of it is not accepted again.
    ///
    /// # Errors
    /// [`NetError::Forgetful`] if that cannot be written.
    pub(super) fn close(&mut self, at: u64) -> Result<StreamEnd, NetError> {
        if let Some(seal) = &mut self.seal {
            seal.close_all(DISK_PATIENCE).map_err(NetError::Forgetful)?;
        }
        Ok(StreamEnd::Ended(at))
    }

    /// Returns the sender that has begun another session with the datagram opened last.
    pub(super) fn begun(&mut self) -> Option<Proved<'_>> {
        let seal = self.seal.as_mut()?;
        let session = seal.begun()?;
        seal.proved(session)
    }

    /// Asks senders for the keys that are missing.
    pub(super) fn ask(&mut self, mouth: &Endpoint) {
        let Some(seal) = &mut self.seal else { return };
        let mut datagram = Vec::new();
        while let Some(to) = seal.asks() {
            if seal.answer(to, &mut datagram) {
                // A request that is lost is sent again.
                let _ = mouth.send(&Envelope::to(to), &datagram, datagram.len());
            }
            datagram.clear();
        }
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        if let Some(seal) = &mut self.seal {
            seal.keep();
        }
    }
}
