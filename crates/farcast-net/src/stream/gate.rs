//! What of a stream is let in: what its sender has signed, or, without a seal, all.

use std::net::IpAddr;
use std::ops::Range;

use farcast_core::{Span, Time};
use farcast_delivery::{Proved, StreamEngine};
use farcast_seal::Class;
use quinn_udp::RecvMeta;

use super::receiving::StreamEnd;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::receiving::Unlike;
use crate::seal::{ReceiveSeal, is_sealed};
use crate::socket::Endpoint;

/// Time that the end of a stream waits until its session is written.
const DISK_PATIENCE: Span = Span::from_secs(2);

/// What lets in of all that comes to a receiver what its sender has signed, or, without a seal, all of it.
pub(super) struct Gate<'a> {
    pub(super) seal: Option<&'a mut ReceiveSeal>,
    /// Whether something has come that is sealed, and we have no key.
    sealed: bool,
    /// What our user should know of what was refused, and from whom that came.
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
        // What of a stream is made up nobody would notice: all of it is signed.
        let signed = opened.class == Class::Control;
        seal.is_sent_by(opened.session, |who| signed && engine.may_say(said, who)).then_some(opened.payload)
    }

    /// Remembers now and then what was heard; why that cannot be, once.
    ///
    /// # Errors
    /// It cannot be while a stream is heard.
    pub(super) fn check_memory(&mut self, now: Time) -> Result<Option<NetError>, NetError> {
        let Some(seal) = &mut self.seal else { return Ok(None) };
        match seal.tick(now) {
            Err(why) if !seal.is_idle() => Err(NetError::Forgetful(why)),
            _ => Ok(seal.newly_forgetful().map(NetError::Forgetful)),
        }
    }

    /// The stream has ended, so many octets from its beginning: a record of it is no news from now on.
    pub(super) fn close(&mut self, at: u64) -> Result<StreamEnd, NetError> {
        if let Some(seal) = &mut self.seal {
            seal.close_all(DISK_PATIENCE).map_err(NetError::Forgetful)?;
        }
        Ok(StreamEnd::Ended(at))
    }

    /// Who has begun another session with what was opened last.
    pub(super) fn begun(&mut self) -> Option<Proved<'_>> {
        let seal = self.seal.as_mut()?;
        let session = seal.begun()?;
        seal.proved(session)
    }

    /// Asks for the keys that lack.
    pub(super) fn ask(&mut self, mouth: &Endpoint) {
        let Some(seal) = &mut self.seal else { return };
        let mut datagram = Vec::new();
        while let Some(to) = seal.asks() {
            if seal.answer(to, &mut datagram) {
                // What is lost is asked for again.
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
