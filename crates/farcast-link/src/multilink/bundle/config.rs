//! The settings of a bundle.

use alloc::vec::Vec;

use farcast_core::{BitRate, Probability, Span};
use farcast_ppp::multilink::{Format, MOST_LINKS, Policy, ReassemblyConfig};
use farcast_ppp::{EchoConfig, Framing, echo};

use crate::multilink::error::MultilinkError;
use crate::pipe::QueueLimit;
use crate::ppp::line::packet_rate;

/// Detection of a dropped call at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detection {
    /// The modems report that the carrier is gone.
    Carrier {
        /// Time from the drop to the report.
        after: Span,
    },
    /// The hub's end sends LCP Echo-Requests, whose frames take their time on the line both ways. It hangs up when too
    /// many stay unanswered, so it may hang up a call that works if frames get lost.
    Echo(EchoConfig),
}

/// Drops and redials of a link's calls. All calls are up at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calls {
    /// The mean time that a call stays up, above zero. The time is exponential, from when the call is up.
    pub time_between_drops: Span,
    /// The time from the detection of a drop until the link has joined the bundle again: dialling, training, LCP.
    pub redial: Span,
    /// Detection of a drop.
    pub detection: Detection,
}

/// A member link.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// The rate from the hub, in bits on the line.
    pub forward: BitRate,
    /// The rate to the hub, in bits on the line.
    pub back: BitRate,
    /// The bits of an octet on the line: 8 if start and stop bits are not carried, 10 with both; 8 to 12. Default 8:
    /// over four Iridium channels of 2400 bit/s 9.26 kbit/s were measured, and 8N1 would allow 7.7.
    pub octet_bits: u8,
    /// The one-way delay from the end of sending to the arrival; the same both ways. Default none.
    pub delay: Span,
    /// Drops of the link's calls. Default none.
    pub calls: Option<Calls>,
}

impl LinkConfig {
    /// Creates the settings of a link with this rate both ways.
    pub const fn new(rate: BitRate) -> Self {
        Self { forward: rate, back: rate, octet_bits: 8, delay: Span::ZERO, calls: None }
    }

    fn check(&self, framing: Framing) -> Result<(), MultilinkError> {
        if !(8..=12).contains(&self.octet_bits) {
            return Err(MultilinkError::OctetBits(self.octet_bits));
        }
        let Some(calls) = self.calls else { return Ok(()) };
        if calls.time_between_drops.is_zero() {
            return Err(MultilinkError::Zero("time_between_drops"));
        }
        match calls.detection {
            Detection::Carrier { .. } => Ok(()),
            Detection::Echo(echo) => self.check_echo(echo, framing),
        }
    }

    /// Returns the most bits of a request and a reply on the line: every octet escaped, and a flag at both ends.
    fn echo_bits(&self, framing: Framing) -> u64 {
        echo::exchange_octets(&framing) * u64::from(self.octet_bits)
    }

    /// Returns the bounds that echoes set, if there are any: the lowest rate, and the delay below which the delay must
    /// be. Within them an echo can come back before the link is given up, whatever the other direction is set to.
    pub(super) fn bounds(&self, framing: Framing) -> Option<(BitRate, Span)> {
        let Some(Calls { detection: Detection::Echo(echo), .. }) = self.calls else { return None };
        let bits = u128::from(self.echo_bits(framing)) * 1_000_000_000;
        let least = bits.div_ceil(u128::from(echo.interval.as_nanos().max(1)));
        let least = BitRate::from_bps(u64::try_from(least).unwrap_or(u64::MAX))?;
        Some((least, gives_up_after(echo) / 2))
    }

    fn check_echo(&self, echo: EchoConfig, framing: Framing) -> Result<(), MultilinkError> {
        if echo.interval.is_zero() {
            return Err(MultilinkError::Zero("interval"));
        }
        if echo.failures == 0 {
            return Err(MultilinkError::Zero("failures"));
        }
        let (gives_up, round_trip) = (gives_up_after(echo), self.delay * 2);
        if gives_up <= round_trip {
            return Err(MultilinkError::EchoTooSoon { gives_up, round_trip });
        }
        let needed = self.forward.min(self.back).time_of_bits(self.echo_bits(framing));
        if echo.interval < needed {
            return Err(MultilinkError::EchoLoad { needed });
        }
        Ok(())
    }
}

/// Returns the time after which a link with unanswered echoes is given up.
fn gives_up_after(echo: EchoConfig) -> Span {
    echo.interval * u64::from(echo.failures)
}

/// The settings of a [`Multilink`](super::Multilink).
#[derive(Clone, PartialEq, Debug)]
pub struct MultilinkConfig {
    /// The member links, 1 to [`MOST_LINKS`].
    pub links: Vec<LinkConfig>,
    /// The format of the fragments' headers. Default long.
    pub header: Format,
    /// The policy by which packets are cut. Default as Linux does.
    pub policy: Policy,
    /// The framing on each link. Default as pppd negotiates it with another pppd.
    pub framing: Framing,
    /// The limit of the packets from the hub that wait for the bundle, as a number of packets or of their octets.
    /// Packets that links have taken do not count. A packet that would exceed it is dropped. Default no limit.
    pub queue: QueueLimit,
    /// The same limit for packets to the hub.
    pub back_queue: QueueLimit,
    /// Fragments that a link takes beyond the one that is on its line. Default 1, as a serial driver. A packet that
    /// waits before the bundle survives a drop; a fragment that a link has taken does not.
    pub link_buffer: u16,
    /// The probability that a frame on a link is lost to errors, independently. Default 0: the modems of Iridium repeat
    /// damaged frames.
    pub frame_loss: Probability,
    /// The bounds of reassembly at both ends. A packet of more than `mrru` octets is not sent.
    pub reassembly: ReassemblyConfig,
}

impl MultilinkConfig {
    /// Returns the bit rates of all links together, from the hub and to it, at which they carry octets of 8 bits;
    /// rounded down, `None` below 1 bit/s.
    pub fn capacity(&self) -> [Option<BitRate>; 2] {
        let sum = |rate: fn(&LinkConfig) -> BitRate| {
            let of = |link| packet_rate(rate(link), link.octet_bits).map_or(0, BitRate::as_bps);
            BitRate::from_bps(self.links.iter().map(of).fold(0, u64::saturating_add))
        };
        [sum(|link| link.forward), sum(|link| link.back)]
    }

    /// Creates the settings of a bundle of `links`, all else by default.
    pub fn new(links: Vec<LinkConfig>) -> Self {
        Self {
            links,
            header: Format::default(),
            policy: Policy::default(),
            framing: Framing::default(),
            queue: QueueLimit::default(),
            back_queue: QueueLimit::default(),
            link_buffer: 1,
            frame_loss: Probability::ZERO,
            reassembly: ReassemblyConfig::default(),
        }
    }

    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`MultilinkError`], which names the setting.
    pub fn check(&self) -> Result<(), MultilinkError> {
        if self.links.is_empty() || self.links.len() > MOST_LINKS {
            return Err(MultilinkError::Links(self.links.len(), MOST_LINKS));
        }
        self.links.iter().try_for_each(|link| link.check(self.framing))?;
        if matches!(self.policy, Policy::Equal { smallest: 0 } | Policy::Proportional { smallest: 0 }) {
            return Err(MultilinkError::Zero("smallest"));
        }
        let queues = [self.queue, self.back_queue];
        if queues.iter().any(|queue| matches!(queue, QueueLimit::Packets(0) | QueueLimit::Octets(0))) {
            return Err(MultilinkError::Zero("queue"));
        }
        Ok(self.reassembly.check()?)
    }
}
