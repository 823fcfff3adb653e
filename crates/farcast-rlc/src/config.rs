//! The settings of an entity.

use core::num::NonZeroU32;

use farcast_core::Span;

use crate::error::ConfigError;
use crate::format::Format;
use crate::pdu::MODULUS;
use crate::report::ReportForm;

/// All settings of an entity. The defaults are those of the 384 kbit/s bearer of TS 34.108 (PDUs of 42 octets), with
/// the options that Teyeb et al. always use: polls with the last PDU and the last retransmitted PDU, and reports of
/// missing PDUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Format of the data PDUs that are sent.
    pub format: Format,
    /// Format of the data PDUs that the peer sends: its `format`.
    pub peer_format: Format,
    /// `Configured_Tx_Window_Size`: data PDUs from the first that is not acknowledged to the last, 1 to 4095. Beyond
    /// 2047 a PDU that arrives a second time can be taken for the PDU 4096 later.
    pub tx_window: u16,
    /// `Configured_Rx_Window_Size`: data PDUs from VR(R) on that are taken, 1 to 4095; at least the peer's `tx_window`.
    pub rx_window: u16,
    /// Limit of the SDUs that wait for their first transmission; `None` for no limit.
    pub transmission_buffer: Option<BufferLimit>,
    /// The longest SDU in octets, in either direction.
    pub max_sdu_octets: NonZeroU32,
    /// Triggers of polls, which ask for a report.
    pub polling: Polling,
    /// Triggers and form of reports.
    pub status: StatusReporting,
    /// Limit of the transmissions of a data PDU. [`Discard::Timer`] has no such limit.
    pub max_transmissions: MaxTransmissions,
    /// Handling of SDUs that cannot be brought over.
    pub discard: Discard,
    /// The request to move the peer's window.
    pub mrw: Mrw,
    /// The reset procedure.
    pub reset: ResetConfig,
    /// Order of delivery: if `true`, SDUs are delivered in the order in which they were submitted. Otherwise each is
    /// delivered as soon as it is complete.
    pub in_sequence: bool,
    /// Use of padding: status reports go into the padding of data PDUs where they fit.
    pub piggyback: bool,
    /// Consequence of a report with an erroneous sequence number.
    pub erroneous_status: ErroneousStatus,
}

/// Limit of the SDUs that wait for their first transmission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BufferLimit {
    /// Number of octets.
    Octets(u64),
    /// Number of SDUs, including one that has been sent in part.
    Sdus(u64),
}

/// Triggers of polls, which ask for a report (TS 25.322 section 9.7.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Polling {
    /// Poll with the last data PDU in the transmission buffer, and with the last that the window allows. The sender
    /// would otherwise wait behind it for good.
    pub last_pdu: bool,
    /// Poll with the last PDU that waits for retransmission.
    pub last_retransmitted_pdu: bool,
    /// `Poll_PDU`: poll with every n-th data PDU, retransmissions included.
    pub poll_pdu: Option<NonZeroU32>,
    /// `Poll_SDU`: poll with the last octets of every n-th SDU.
    pub poll_sdu: Option<NonZeroU32>,
    /// `Poll_Window`: poll with every data PDU while VT(A) to VT(S) and the PDU itself make at least this share of the
    /// window, 1 to 99 %.
    pub window_percent: Option<u8>,
    /// `Timer_Poll_Periodic`: poll at this interval, from the first SDU on.
    pub periodic: Option<Span>,
    /// `Timer_Poll`: poll again if no answer has come this long after a poll.
    pub timer: Option<Span>,
    /// `Timer_Poll_Prohibit`: least interval between polls.
    pub prohibit: Option<Span>,
}

/// Triggers of reports beside the peer's polls (section 9.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StatusReporting {
    /// Report when a PDU shows that others before it are missing.
    pub missing_pdu: bool,
    /// `Timer_Status_Periodic`: report at this interval, from the first data PDU on.
    pub periodic: Option<Span>,
    /// `Timer_EPC`, the estimated PDU counter: report again once as many PDUs could have come as were asked for and one
    /// is still missing. Counting begins this long after the report; this should be a round trip.
    /// [`Entity::tti`](crate::Entity::tti) counts.
    pub epc: Option<Span>,
    /// `Timer_Status_Prohibit`: least interval between reports.
    pub prohibit: Option<Span>,
    /// Form in which reports name the missing PDUs.
    pub form: ReportForm,
}

/// Limit of the transmissions of a data PDU, at least 1.
///
/// The standard and Teyeb et al. count `MaxDAT` differently, so there is a constructor for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MaxTransmissions(NonZeroU32);

impl MaxTransmissions {
    /// Allows `count` transmissions. Teyeb et al. call it maxDAT: `count` - 1 retransmissions, and 1 disables
    /// retransmission.
    ///
    /// # Errors
    /// [`ConfigError::Zero`] if `count` is 0.
    pub const fn new(count: u32) -> Result<Self, ConfigError> {
        match NonZeroU32::new(count) {
            Some(count) => Ok(Self(count)),
            None => Err(ConfigError::Zero("max_transmissions")),
        }
    }

    /// Converts the standard's `MaxDAT`, the upper limit of VT(DAT) (TS 25.322 section 9.6), to `max_dat` - 1
    /// transmissions.
    ///
    /// # Errors
    /// [`ConfigError::MaxDat`] if `max_dat` is below 2.
    pub const fn from_max_dat(max_dat: u32) -> Result<Self, ConfigError> {
        match NonZeroU32::new(max_dat.saturating_sub(1)) {
            Some(count) => Ok(Self(count)),
            None => Err(ConfigError::MaxDat(max_dat)),
        }
    }

    /// Returns the number of transmissions.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// Handling of SDUs that cannot be brought over (section 9.7.3). Every discard is signalled to the peer: otherwise a
/// peer that delivers in sequence would wait for good.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Discard {
    /// No SDU is discarded: a PDU that would be sent more often than [`Config::max_transmissions`] leads to a reset.
    None,
    /// A PDU that would be sent more often than [`Config::max_transmissions`] is given up. So is every SDU with a part
    /// in this PDU, or in an earlier one that is not acknowledged.
    #[default]
    MaxTransmissions,
    /// An SDU that is not acknowledged this long after it was submitted is given up.
    Timer {
        /// `Timer_Discard`.
        after: Span,
    },
}

/// The request to move the peer's window (section 11.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mrw {
    /// `Timer_MRW`: time to wait for an answer.
    pub timer: Span,
    /// `MaxMRW`: number of times that the request is sent before a reset.
    pub max_mrw: u32,
}

/// The reset procedure (section 11.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResetConfig {
    /// `Timer_RST`: time to wait for an answer.
    pub timer: Span,
    /// `MaxRST`: the RESET PDU is sent `max_rst` - 1 times before the entity gives up; with 1 it gives up at once.
    pub max_rst: u32,
}

/// Consequence of a report that names a PDU outside VT(A) to VT(S).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ErroneousStatus {
    /// A reset (TS 25.322 section 10). For carriers that keep the order of PDUs, as the radio bearer does.
    #[default]
    Reset,
    /// Rejection of the report. For carriers on which a report may overtake another: there an old report is no sign of
    /// an error.
    Ignore,
}

impl Default for Config {
    fn default() -> Self {
        let polling = Polling { last_pdu: true, last_retransmitted_pdu: true, ..Polling::default() };
        Self {
            format: Format::new(42),
            peer_format: Format::new(42),
            tx_window: MODULUS / 2 - 1,
            rx_window: MODULUS / 2 - 1,
            transmission_buffer: None,
            max_sdu_octets: const { NonZeroU32::new(65_535).expect("above 0") },
            polling,
            status: StatusReporting { missing_pdu: true, ..StatusReporting::default() },
            max_transmissions: const { MaxTransmissions(NonZeroU32::new(10).expect("above 0")) },
            discard: Discard::default(),
            mrw: Mrw { timer: Span::from_millis(300), max_mrw: 8 },
            reset: ResetConfig { timer: Span::from_millis(500), max_rst: 8 },
            in_sequence: true,
            piggyback: false,
            erroneous_status: ErroneousStatus::default(),
        }
    }
}

impl Config {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong and the values that are allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.format.check().map_err(ConfigError::Format)?;
        self.peer_format.check().map_err(ConfigError::PeerFormat)?;
        for (key, value) in [("tx_window", self.tx_window), ("rx_window", self.rx_window)] {
            if !(1..MODULUS).contains(&value) {
                return Err(ConfigError::Window { key, value });
            }
        }
        if let Some(percent) = self.polling.window_percent.filter(|percent| !(1..100).contains(percent)) {
            return Err(ConfigError::WindowPercent(percent));
        }
        self.zeros().find(|&(_, zero)| zero).map_or(Ok(()), |(key, _)| Err(ConfigError::Zero(key)))
    }

    /// Returns the keys that must not be 0, each with `true` if it is.
    fn zeros(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let timer = |key, span: Option<Span>| (key, span == Some(Span::ZERO));
        let buffer = matches!(self.transmission_buffer, Some(BufferLimit::Octets(0) | BufferLimit::Sdus(0)));
        let discard = matches!(self.discard, Discard::Timer { after: Span::ZERO });
        [
            ("transmission_buffer", buffer),
            timer("polling.periodic", self.polling.periodic),
            timer("polling.timer", self.polling.timer),
            timer("polling.prohibit", self.polling.prohibit),
            timer("status.periodic", self.status.periodic),
            timer("status.epc", self.status.epc),
            timer("status.prohibit", self.status.prohibit),
            ("discard.after", discard),
            timer("mrw.timer", Some(self.mrw.timer)),
            ("mrw.max_mrw", self.mrw.max_mrw == 0),
            timer("reset.timer", Some(self.reset.timer)),
            ("reset.max_rst", self.reset.max_rst == 0),
        ]
        .into_iter()
    }

    /// Returns the limit of the transmissions of a data PDU; `u32::MAX` if there is none.
    pub(crate) fn transmission_limit(&self) -> u32 {
        match self.discard {
            Discard::Timer { .. } => u32::MAX,
            Discard::None | Discard::MaxTransmissions => self.max_transmissions.get(),
        }
    }
}
