//! The settings of a bundle.

use alloc::vec::Vec;

use farcast_core::{BitRate, Probability, Span};
use farcast_ppp::multilink::{Format, MOST_LINKS, Policy, ReassemblyConfig};
use farcast_ppp::{EchoConfig, Framing, echo};

use crate::multilink::error::MultilinkError;
use crate::pipe::QueueLimit;
use crate::ppp::line::packet_rate;

/// How both ends come to know that a call has dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detection {
    /// The modems report that the carrier is gone.
    Carrier {
        /// How long after the drop they do.
        after: Span,
    },
    /// The hub's end sends LCP Echo-Requests, whose frames take their time on the line both ways, and hangs up when too
    /// many stayed unanswered. So it may hang up a call that works, if frames get lost.
    Echo(EchoConfig),
}

/// How a link's calls come and go. All calls are up at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calls {
    /// The mean time for which a call stays up: exponential, from when it is up; above zero.
    pub time_between_drops: Span,
    /// The time from the detection of a drop until the link has joined the bundle again: dialling, training, LCP.
    pub redial: Span,
    /// How a drop becomes known.
    pub detection: Detection,
}

/// A member link.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// The rate from the hub, in bits on the line.
    pub forward: BitRate,
    /// The rate to the hub, in bits on the line.
    pub back: BitRate,
    /// The bits that an octet takes: 8 if start and stop bits are not carried, 10 with both; 8 to 12. Default 8: over
    /// four Iridium channels of 2400 bit/s 9.26 kbit/s were measured, of which 8N1 would leave 7.7.
    pub octet_bits: u8,
    /// The one-way delay behind the end of sending; the same both ways. Default none.
    pub delay: Span,
    /// How its calls drop. Default never.
    pub calls: Option<Calls>,
}

impl LinkConfig {
    /// A link of this rate both ways.
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

    /// The most bits of a request and a reply on the line: every octet escaped, and a flag at both ends.
    fn echo_bits(&self, framing: Framing) -> u64 {
        echo::exchange_octets(&framing) * u64::from(self.octet_bits)
    }

    /// What echoes leave of rate and delay, if there are any: the lowest rate, and below what the delay must be, so
    /// that an echo can come back before the link is given up, whatever the other direction's is set to.
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

/// The time after which a link whose echoes are not answered is given up.
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
    /// How packets are cut. Default as Linux does.
    pub policy: Policy,
    /// How each link frames what it sends. Default as pppd negotiates it with its like.
    pub framing: Framing,
    /// How many packets, or octets of them, may wait for the bundle on the way from the hub; what links have taken does
    /// not count. What enters beyond that is dropped. Default any.
    pub queue: QueueLimit,
    /// The same on the way to the hub.
    pub back_queue: QueueLimit,
    /// How many fragments a link takes beyond the one that is on its line. Default 1, as a serial driver: a packet that
    /// waits before the bundle survives a drop, a fragment that a link has taken does not.
    pub link_buffer: u16,
    /// The probability that a frame on a link is lost to errors, independently. Default 0: the modems of Iridium repeat
    /// what was damaged.
    pub frame_loss: Probability,
    /// The bounds of reassembly at both ends. A packet of more than `mrru` octets is not sent.
    pub reassembly: ReassemblyConfig,
}

impl MultilinkConfig {
    /// The bit rates of all links together, from the hub and to it, at which they carry octets of 8 bits; rounded down,
    /// `None` below 1 bit/s.
    pub fn capacity(&self) -> [Option<BitRate>; 2] {
        let sum = |rate: fn(&LinkConfig) -> BitRate| {
            let of = |link| packet_rate(rate(link), link.octet_bits).map_or(0, BitRate::as_bps);
            BitRate::from_bps(self.links.iter().map(of).fold(0, u64::saturating_add))
        };
        [sum(|link| link.forward), sum(|link| link.back)]
    }

    /// A bundle of `links`, all else by default.
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

    /// Checks what the types do not.
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
