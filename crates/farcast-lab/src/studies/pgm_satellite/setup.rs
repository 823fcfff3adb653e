//! Settings of the scenario.

/// Traffic of the source, and its congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SourceTraffic {
    /// 600 kbit/s, without congestion control.
    CbrPgm,
    /// 600 kbit/s, under PGMCC.
    CbrPgmcc,
    /// Rate as high as PGMCC allows.
    FtpPgmcc,
}

impl SourceTraffic {
    pub(super) const ALL: [Self; 3] = [Self::CbrPgm, Self::CbrPgmcc, Self::FtpPgmcc];

    /// Returns the name in the paper's legends.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::CbrPgm => "CBR/PGM",
            Self::CbrPgmcc => "CBR/PGMCC",
            Self::FtpPgmcc => "ftp/PGMCC",
        }
    }

    const fn settings(self) -> &'static [&'static str] {
        const CBR: &str = "protocol.source_rate=\"600 kbit/s\"";
        // Repairs may exceed the rate of a source of constant rate.
        const ROOM: &str = "protocol.rate=\"10 Mbit/s\"";
        match self {
            Self::CbrPgm => &["protocol.rate_control=\"fixed\"", CBR, ROOM],
            Self::CbrPgmcc => &[CBR, ROOM],
            Self::FtpPgmcc => &[],
        }
    }
}

/// Location of the repairer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dlr {
    Nowhere,
    /// Location 1: the gateway before the satellite.
    Before,
    /// Location 2: behind the satellite.
    Behind,
}

/// A setting: the parameters that the figures vary, and further changes to the shipped scenario.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Setup {
    pub(super) source: SourceTraffic,
    pub(super) dlr: Dlr,
    /// Receiver's window of the TCP beside it, in packets; `None` without TCP.
    pub(super) tcp: Option<u32>,
    /// Packet error rate on the satellite's forward path.
    pub(super) per: f64,
    /// Octets of a packet's content.
    pub(super) payload: u32,
    /// One-way delay of the satellite in ms.
    pub(super) delay: u32,
    /// True if the receivers of network A are there.
    pub(super) has_a: bool,
    /// Further assignments.
    pub(super) more: &'static [&'static str],
}

impl Setup {
    /// Creates the basic setting: packets of 1000 octets over a geostationary satellite, without losses, TCP or
    /// repairer.
    pub(super) const fn new(source: SourceTraffic) -> Self {
        let (dlr, tcp, more) = (Dlr::Nowhere, None, &[]);
        Self { source, dlr, tcp, per: 0.0, payload: 1000, delay: 260, has_a: true, more }
    }

    pub(super) const fn per(self, per: f64) -> Self {
        Self { per, ..self }
    }

    pub(super) const fn dlr(self, dlr: Dlr) -> Self {
        Self { dlr, ..self }
    }

    pub(super) const fn tcp(self, tcp: Option<u32>) -> Self {
        Self { tcp, ..self }
    }

    pub(super) const fn payload(self, payload: u32) -> Self {
        Self { payload, ..self }
    }

    pub(super) const fn delay(self, delay: u32) -> Self {
        Self { delay, ..self }
    }

    pub(super) const fn without_a(self) -> Self {
        Self { has_a: false, ..self }
    }

    pub(super) const fn with(self, more: &'static [&'static str]) -> Self {
        Self { more, ..self }
    }

    /// Returns the assignments that make this setting of the shipped scenario.
    pub(super) fn settings(&self) -> Vec<String> {
        let mut settings = vec![
            format!("edge.satellite.link.forward.per={:?}", self.per),
            format!("edge.satellite.link.forward.delay=\"{} ms\"", self.delay),
            format!("protocol.segment_size=\"{} B\"", self.payload),
        ];
        settings.push(match self.tcp {
            Some(window) => format!("flow.tcp.window=\"{window} packets\""),
            // The flow would start long after the end.
            None => "flow.tcp.start=\"100 h\"".to_owned(),
        });
        let at = match self.dlr {
            Dlr::Nowhere => None,
            Dlr::Before => Some("node.G1.kind=\"repairer\""),
            Dlr::Behind => Some("node.G2.kind=\"repairer\""),
        };
        let texts =
            at.into_iter().chain(self.source.settings().iter().copied()).chain(self.more.iter().copied());
        settings.extend(texts.map(str::to_owned));
        settings
    }
}
