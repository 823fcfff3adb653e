//! Forecast of what the receivers of a transfer will say, from its settings.
//!
//! A protocol tells by a [`Forecast`] how many octets each receiver says, and on which occasions. It knows nothing of
//! the links. Whoever knows both the forecast and the links can tell beforehand that settings cannot work.

use alloc::vec::Vec;

use farcast_core::setting::SettingValue;
use farcast_core::{BitRate, Setting, Span};

use crate::binomial;

/// Configuration of a sender that tells what its receivers will say.
pub trait Forecasting {
    /// Returns what the receivers of such a transfer will say.
    fn forecast(&self) -> Forecast;
}

/// Change of a setting, for advice.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Setting to change.
    pub setting: &'static Setting,
    /// New value.
    pub value: NewValue,
}

/// New value of a setting.
#[derive(Clone, PartialEq, Debug)]
pub enum NewValue {
    /// This value.
    Fixed(SettingValue),
    /// Rate that the return carries.
    ReturnRate,
    /// Rate that the forward link carries.
    ForwardRate,
    /// No value: the setting is to be left out.
    Absent,
}

impl Change {
    /// Returns the change of `setting` to `value`.
    pub const fn to(setting: &'static Setting, value: SettingValue) -> Self {
        Self { setting, value: NewValue::Fixed(value) }
    }

    /// Returns the change of `setting` to the rate of the return.
    pub const fn to_return_rate(setting: &'static Setting) -> Self {
        Self { setting, value: NewValue::ReturnRate }
    }

    /// Returns the change that leaves `setting` out.
    pub const fn without(setting: &'static Setting) -> Self {
        Self { setting, value: NewValue::Absent }
    }
}

/// Order in which receivers speak.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// All receivers that have something to say say it at once. Each of these changes makes them take turns.
    AtOnce(Vec<Change>),
    /// The sender asks for no more than the return carries, whose rate it learns or assumes unless this setting gives
    /// it.
    ByTurns(Option<&'static Setting>),
}

/// Requests for repair of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct Requests {
    /// Octets of a request, headers included.
    pub octets: u32,
    /// Segments of a block, for which receivers ask together.
    pub block: u32,
    /// Parity symbols that follow a block unasked.
    pub ahead: u32,
    /// `true` if a receiver that overhears a request, or its confirmation, need not repeat it.
    pub overheard: bool,
    /// Setting that sends more parity unasked, if the protocol has one.
    pub more_ahead: Option<MoreAhead>,
    /// Change that lets parity repair what receivers lost, where each lost segment is sent again now.
    pub to_parity: Option<Change>,
}

/// Setting that sends more parity unasked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MoreAhead {
    /// Number of symbols with each block, at most as many.
    Symbols(&'static Setting, u32),
    /// Part of the datagrams that a receiver is expected to lose.
    Loss {
        /// Setting of the part.
        loss: &'static Setting,
        /// Setting of the number of receivers, which counts too, and the number that is assumed.
        receivers: (&'static Setting, u64),
    },
}

/// Datagrams with content.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Datagrams {
    /// Octets of content in a datagram.
    pub content: u32,
    /// Octets besides the content, with UDP, IP and a seal.
    pub headers: u32,
    /// Octets that parity would add to the headers, if there is none.
    pub spare: u32,
    /// Octets to whose multiple the content is rounded.
    pub multiple: u32,
    /// Setting of `content`.
    pub setting: &'static Setting,
    /// Rate at which datagrams leave with all headers, if it is fixed, and its setting.
    pub rate: Option<(BitRate, &'static Setting)>,
    /// Octets of the unit to which the rate rounds a datagram up.
    pub granule: u16,
}

impl Datagrams {
    /// Returns the octets of a whole datagram.
    pub const fn octets(&self) -> u32 {
        self.content + self.headers
    }
}

/// Messages that each receiver of a transfer will send, and the datagrams that it gets, with all headers.
#[derive(Clone, PartialEq, Debug)]
pub struct Forecast {
    /// Segments that are sent in all.
    pub segments: u64,
    /// Octets of the registration with which each receiver begins; `None` if receivers do not register.
    pub registration: Option<u32>,
    /// Octets of the confirmation by which each receiver ends; `None` if receivers confirm nothing.
    pub confirmation: Option<u32>,
    /// Order in which receivers register and confirm, and ask for repair if they cannot overhear each other.
    pub order: Order,
    /// Requests for repair; `None` if receivers cannot ask.
    pub requests: Option<Requests>,
    /// Datagrams with content.
    pub datagrams: Datagrams,
    /// Round trip that receivers expect without measuring it, and its setting.
    pub round_trip: Option<(Span, &'static Setting)>,
}

impl Requests {
    /// Returns the probability that one of `receivers`, which lose the share `loss` of the datagrams each, has to ask
    /// for repair of a block.
    pub fn wanted(&self, receivers: u64, loss: f64) -> f64 {
        let suffices = binomial::at_most(self.block + self.ahead, loss, self.ahead);
        1.0 - libm::pow(suffices, receivers as f64)
    }

    /// Returns the number of `receivers`, which lose the share `loss` of the datagrams each, that lack something of a
    /// block once.
    pub fn askers(&self, receivers: u64, loss: f64) -> f64 {
        receivers as f64 * self.wanted(1, loss)
    }

    /// Returns the least number of parity symbols with which nine blocks of ten need no request of `receivers`, which
    /// lose the share `loss` of the datagrams each; at most `most`.
    pub fn enough_ahead(&self, receivers: u64, loss: f64, most: u32) -> u32 {
        let needs = |ahead: u32| Self { ahead, ..self.clone() }.wanted(receivers, loss);
        (0..most).find(|&ahead| needs(ahead) <= 0.1).unwrap_or(most)
    }
}
