//! `[[traffic]]`: flows of other protocols than the transfer's, each to a terminal of its own.

use farcast_core::units::Bytes;
use farcast_core::{Span, Time};
use farcast_tcp::SequenceNumber;

use farcast_scenario::Links;
use farcast_scenario::links::{BearerSpec, ChannelLosses, StageSpec};

use super::{ftp, tcp};
use crate::star::FlowConfig;
use crate::traffic::{Bulk, BulkConfig, Cbr, CbrConfig, End, Flow, OnOff};
use farcast_scenario::streams::{Purpose, Streams};
use farcast_scenario::{DocumentError, Reader};

/// Settings of a flow.
#[derive(Clone, Debug)]
pub(super) struct TrafficSpec {
    name: String,
    source: End,
    start: Span,
    stop: Option<Span>,
    overhead: u16,
    local_congestion: bool,
    kind: Kind,
}

/// Protocol of a flow, with its settings.
#[derive(Clone, Debug)]
enum Kind {
    Tcp(tcp::Spec),
    Cbr(CbrConfig),
    Ftp(ftp::Spec),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Cbr,
    Ftp,
}

/// Values of the key `protocol`.
const PROTOCOLS: [(&str, Protocol); 3] =
    [("tcp", Protocol::Tcp), ("cbr", Protocol::Cbr), ("ftp", Protocol::Ftp)];

/// Reads the tables of `[[traffic]]`, if there are any.
pub(super) fn read(
    top: &Reader<'_>,
    tables: Option<Vec<Reader<'_>>>,
    links: &Links,
) -> Result<Vec<TrafficSpec>, DocumentError> {
    let Some(tables) = tables else { return Ok(Vec::new()) };
    if tables.is_empty() {
        return Err(top.refuse("traffic", "it is empty", "at least one [[traffic]]"));
    }
    if tables.len() > MOST_FLOWS {
        return Err(top.refuse("traffic", "there are too many flows", format!("at most {MOST_FLOWS}")));
    }
    tables.into_iter().map(|table| TrafficSpec::read(table, links)).collect()
}

/// Maximum number of flows of a scenario.
const MOST_FLOWS: usize = 10_000;

impl TrafficSpec {
    fn read(mut table: Reader<'_>, links: &Links) -> Result<Self, DocumentError> {
        let ends = [("forward", End::Hub), ("return", End::Terminal)];
        let source = table.choice_or("direction", &ends, End::Hub)?;
        Self::read_from(table, source, links)
    }

    /// Reads a flow whose data comes from `source`.
    pub(super) fn read_from(
        mut table: Reader<'_>,
        source: End,
        links: &Links,
    ) -> Result<Self, DocumentError> {
        let name = table.text("name")?;
        let protocol = table.choice("protocol", &PROTOCOLS)?;
        let start = table.span_or("start", Span::ZERO)?;
        let stop = table.optional_span("stop")?;
        if stop.is_some_and(|stop| stop <= start) {
            return Err(table.refuse("stop", "it stops before it has sent anything", "a time after start"));
        }
        let overhead = packet_overhead(&mut table)?;
        let local_congestion = local_congestion(&mut table, protocol, links)?;
        let kind = match protocol {
            Protocol::Tcp | Protocol::Ftp if !links.take_time() => {
                return Err(table.refuse(
                    "protocol",
                    "over links that take no time TCP would send without end in one instant",
                    "a rate or a delay in link.forward or link.return",
                ));
            }
            Protocol::Tcp => Kind::Tcp(tcp::read(&mut table)?),
            Protocol::Ftp => Kind::Ftp(ftp::read(&mut table)?),
            Protocol::Cbr => Kind::Cbr(cbr(&mut table, source, overhead)?),
        };
        table.finish()?;
        Ok(Self { name, source, start, stop, overhead, local_congestion, kind })
    }

    /// Makes flow `number` of a replication. Its terminal's number follows those of all `receivers`.
    pub(super) fn make(&self, number: u32, receivers: u32, links: &Links, streams: Streams) -> FlowConfig {
        let entity = u64::from(number);
        let terminal = receivers.saturating_add(number);
        let flow: Box<dyn Flow> = match &self.kind {
            Kind::Tcp(spec) => {
                // The flow's stream has exactly these two draws: the initial sequence numbers of the ends.
                let mut stream = streams.of(entity, Purpose::Flow);
                let initial = [(); 2].map(|()| SequenceNumber(stream.bits() as u32));
                let (config, size) = (spec.config.clone(), spec.size);
                let bulk = BulkConfig { config, size, source: self.source, terminal, initial };
                Box::new(Bulk::new(bulk).expect("checked when read"))
            }
            Kind::Cbr(config) => Box::new(Cbr::new(*config)),
            Kind::Ftp(spec) => Box::new(spec.make(self.source, terminal, entity, streams)),
        };
        let losses = links.flow_losses(number, terminal, streams);
        let [forward_losses, return_losses] = losses.map(ChannelLosses::make);
        FlowConfig {
            name: self.name.clone(),
            source: self.source,
            flow,
            start: Time::ZERO + self.start,
            stop: self.stop.map(|stop| Time::ZERO + stop),
            overhead: self.overhead,
            local_congestion: self.local_congestion,
            forward_losses,
            return_losses,
        }
    }
}

/// Reads whether hosts learn of packets that their own queue drops: that of the stage `ppp`, which must be the only
/// stage.
fn local_congestion(
    table: &mut Reader<'_>,
    protocol: Protocol,
    links: &Links,
) -> Result<bool, DocumentError> {
    let wanted = table.flag_or("local_congestion", false)?;
    let tells = matches!(links.stages[..], [(_, StageSpec::Both(BearerSpec::Ppp(_)))]);
    let wrong = match protocol {
        _ if !wanted => return Ok(false),
        Protocol::Cbr => "datagrams are sent again by nobody",
        _ if !tells => "no stage but ppp tells a host of its queue, and none where it is not alone",
        _ => return Ok(true),
    };
    Err(table.refuse("local_congestion", wrong, "flows of tcp or ftp over one stage of the kind ppp"))
}

/// Reads the octets of a packet besides the transport's header and the data; by default an IPv4 header.
fn packet_overhead(table: &mut Reader<'_>) -> Result<u16, DocumentError> {
    let Bytes(overhead) = table.bytes_or("packet_overhead", Bytes(20))?;
    u16::try_from(overhead)
        .map_err(|_| table.refuse("packet_overhead", "it is larger than any packet", "at most 65535 B"))
}

/// Reads the keys of a flow at a constant rate.
fn cbr(table: &mut Reader<'_>, source: End, overhead: u16) -> Result<CbrConfig, DocumentError> {
    let rate = table.rate("rate")?;
    let Bytes(octets) = table.bytes_or("payload", Bytes(1000))?;
    let Some(octets) = u16::try_from(octets).ok().filter(|&octets| octets <= MOST_PAYLOAD) else {
        return Err(table.refuse("payload", "it fits no datagram", format!("at most {MOST_PAYLOAD} B")));
    };
    let on_off = match (table.optional_span("on")?, table.optional_span("off")?) {
        (None, None) => None,
        (Some(on), Some(off)) if !on.is_zero() => Some(OnOff { on, off }),
        (Some(_), Some(_)) => return Err(table.refuse("on", "it never sends", "a time above zero")),
        _ => {
            let key = if table.holds("on") { "on" } else { "off" };
            return Err(table.refuse(key, "a pause needs both its times", "on and off"));
        }
    };
    let config = CbrConfig { source, rate, octets, overhead, on_off };
    if config.interval() < SHORTEST {
        let wrong = "packets so small would follow each other too fast to be simulated";
        return Err(table.refuse(
            "rate",
            wrong,
            format!("a rate or a payload with {SHORTEST} a packet or more"),
        ));
    }
    Ok(config)
}

/// Shortest time from a packet to the next. A simulated second at this rate takes a minute or so.
const SHORTEST: Span = Span::from_nanos(10);

/// Octets of data in the longest UDP datagram over IPv4.
const MOST_PAYLOAD: u16 = 65_507;
