//! Options (RFC 3208 §9): up to 16, the first says how long all are, the last that it is.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::octets::{Counter, Reader, Sink, address_len};
use super::{DecodeError, bit};
use crate::message::{
    Ask, Body, CcData, Cr, Data, DataKind, DataOptions, Feedback, Fragment, Has, MOST_ASKED, MOST_LISTED,
    Message, NodeId, Opt, Sqn,
};

/// Option types.
mod kind {
    pub(super) const LENGTH: u8 = 0x00;
    pub(super) const FRAGMENT: u8 = 0x01;
    pub(super) const NAK_LIST: u8 = 0x02;
    pub(super) const JOIN: u8 = 0x03;
    pub(super) const NAK_BO_IVL: u8 = 0x04;
    pub(super) const NAK_BO_RNG: u8 = 0x05;
    pub(super) const REDIRECT: u8 = 0x07;
    pub(super) const PARITY_PRM: u8 = 0x08;
    pub(super) const PARITY_GRP: u8 = 0x09;
    pub(super) const CURR_TGSIZE: u8 = 0x0A;
    pub(super) const NBR_UNREACH: u8 = 0x0B;
    pub(super) const PATH_NLA: u8 = 0x0C;
    pub(super) const SYN: u8 = 0x0D;
    pub(super) const FIN: u8 = 0x0E;
    pub(super) const RST: u8 = 0x0F;
    pub(super) const CR: u8 = 0x10;
    pub(super) const CRQST: u8 = 0x11;
    pub(super) const PGMCC_DATA: u8 = 0x12;
    pub(super) const PGMCC_FEEDBACK: u8 = 0x13;
    // Assigned to nobody; ours, where [`MARK`](super::MARK) follows.
    pub(super) const OBJECT: u8 = 0x70;
    pub(super) const ASK: u8 = 0x71;
    pub(super) const HAS: u8 = 0x72;
}

/// In the type: this is the last option.
const END: u8 = 0x80;
/// In the last octet of what options have in common: what is encoded has no such option.
const NULL: u8 = 0x80;
/// In the same: RST's flag that NAKs are not answered.
const NO_NAKS: u8 = 0x40;
/// The same of `OPT_PARITY_PRM`. RFC 3208 draws them the other way round; this is what is on the wire.
const PROACTIVE: u8 = 0x01;
const ON_DEMAND: u8 = 0x02;
/// The same of `OPT_PGMCC_FEEDBACK`: ours.
const LEAVING: u8 = 0x01;
/// What of the third octet says that what follows is encoded (RFC 3208 §9.1, as drawn).
const ENCODED: u8 = 0x04;
/// The most options of a message.
const MOST: usize = 16;
/// What begins options that are ours.
const MARK: [u8; 4] = *b"fcst";

/// In what options are found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Data,
    Control,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) control: Vec<Opt>,
    pub(super) listed: Vec<Sqn>,
    pub(super) list_octet: u8,
    pub(super) data: DataOptions,
    pub(super) parity_group: u32,
    /// The TSDU says what an object is.
    pub(super) is_object: bool,
}

/// Reads all options.
pub(super) fn read(reader: &mut Reader<'_>, of: Of) -> Result<Found, DecodeError> {
    let [kind, own, high, low] = reader.array()?;
    let total = u16::from_be_bytes([high, low]);
    let wrong = DecodeError::OptionsLength(total);
    if (kind & !END, own) != (kind::LENGTH, 4) {
        return Err(wrong);
    }
    let octets = usize::from(total).checked_sub(4).ok_or(wrong)?;
    let mut options = Reader::new(reader.take(octets).map_err(|_| wrong)?);
    let (mut found, mut seen, mut count, mut is_over) = (Found::default(), 0u128, 1, kind & END != 0);
    while !is_over {
        let [first, len, third, fourth] = options.array().map_err(|_| DecodeError::NoEnd)?;
        let kind = first & !END;
        is_over = first & END != 0;
        let wrong = DecodeError::OptionLength(kind);
        let body = usize::from(len).checked_sub(4).ok_or(wrong)?;
        let body = options.take(body).map_err(|_| wrong)?;
        count += 1;
        if count > MOST {
            return Err(DecodeError::Options);
        }
        if seen & 1 << kind != 0 {
            return Err(DecodeError::Repeated(kind));
        }
        seen |= 1 << kind;
        let mut one = One { kind, third, bits: fourth, body: Reader::new(body) };
        let read = match of {
            Of::Data => one.data(&mut found),
            Of::Control => one.control(&mut found),
        };
        let known = read.map_err(|error| if error == DecodeError::Truncated { wrong } else { error })?;
        if known && !one.body.rest().is_empty() {
            return Err(wrong);
        }
    }
    if options.rest().is_empty() { Ok(found) } else { Err(wrong) }
}

/// One option.
struct One<'a> {
    kind: u8,
    third: u8,
    /// The last octet of what options have in common.
    bits: u8,
    body: Reader<'a>,
}

impl One<'_> {
    /// Reads an option of data; whether it is one that we know.
    fn data(&mut self, found: &mut Found) -> Result<bool, DecodeError> {
        if self.kind == kind::OBJECT {
            found.is_object |= self.is_ours();
            return Ok(found.is_object);
        }
        let body = &mut self.body;
        let options = &mut found.data;
        match self.kind {
            kind::FRAGMENT => {
                let (first, offset, len) = (body.sqn()?, body.u32()?, body.u32()?);
                let null = self.bits & NULL != 0;
                options.fragment = Some(Fragment { first, offset, len, null });
            }
            kind::JOIN => options.join = Some(body.sqn()?),
            kind::PARITY_GRP => {
                found.parity_group = body.u32()?;
                if found.parity_group == 0 {
                    return Err(DecodeError::GroupSize(0));
                }
            }
            kind::CURR_TGSIZE => options.group_size = Some(body.u32()?),
            kind::SYN => options.syn = true,
            kind::FIN => options.fin = true,
            kind::PGMCC_DATA => {
                let (stamp, acker) = (body.u32()?, body.nla()?);
                options.cc = Some(CcData { stamp, acker });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads an option of what is not data; whether it is one that we know.
    fn control(&mut self, found: &mut Found) -> Result<bool, DecodeError> {
        if self.kind == kind::NAK_LIST {
            let rest = self.body.rest();
            let (sqns, odd) = rest.as_chunks::<4>();
            if !odd.is_empty() || sqns.is_empty() || sqns.len() > MOST_LISTED {
                return Err(DecodeError::OptionLength(self.kind));
            }
            found.listed = sqns.iter().map(|&octets| Sqn(u32::from_be_bytes(octets))).collect();
            found.list_octet = self.third;
            self.body = Reader::new(&[]);
            return Ok(true);
        }
        let option = self.option()?;
        let known = option.is_some();
        found.control.extend(option);
        Ok(known)
    }

    fn option(&mut self) -> Result<Option<Opt>, DecodeError> {
        let bits = self.bits;
        if matches!(self.kind, kind::ASK | kind::HAS) {
            return if self.is_ours() { self.ours().map(Some) } else { Ok(None) };
        }
        let body = &mut self.body;
        Ok(Some(match self.kind {
            kind::JOIN => Opt::Join(body.sqn()?),
            kind::NAK_BO_IVL => Opt::NakBackoff { interval_us: body.u32()?, sqn: body.sqn()? },
            kind::NAK_BO_RNG => Opt::NakBackoffRange { max_us: body.u32()?, min_us: body.u32()? },
            kind::REDIRECT => Opt::Redirect(body.nla()?),
            kind::PARITY_PRM => {
                let (on_demand, proactive) = (bits & ON_DEMAND != 0, bits & PROACTIVE != 0);
                let size = body.u32()?;
                if !size.is_power_of_two() {
                    return Err(DecodeError::GroupSize(size));
                }
                Opt::ParityPrm { on_demand, proactive, size, octet: self.third }
            }
            kind::CURR_TGSIZE => Opt::GroupSize(body.u32()?),
            kind::NBR_UNREACH => Opt::Unreachable,
            kind::PATH_NLA => Opt::PathNla(bare_address(body)?),
            kind::FIN => Opt::Fin,
            kind::RST => Opt::Rst { no_naks: bits & NO_NAKS != 0, code: bits & 0x3F },
            kind::CR => {
                let (reference, link, path) = (body.sqn()?, body.u16()?, body.u16()?);
                let (receiver, _) = (body.u16()?, body.u16()?);
                Opt::Cr(Cr { fields: bits & 7, reference, link, path, receiver, node: body.nla()? })
            }
            kind::CRQST => Opt::Crqst(bits & 7),
            kind::PGMCC_FEEDBACK => {
                let stamp = body.u32()?;
                let (loss, receiver) = body.nla_with()?;
                Opt::Feedback(Feedback { stamp, loss, receiver, leaving: bits & LEAVING != 0 })
            }
            _ => return Ok(None),
        }))
    }

    /// Whether the mark of ours begins the option; it is read.
    fn is_ours(&mut self) -> bool {
        self.body.clone().array() == Ok(MARK) && self.body.take(MARK.len()).is_ok()
    }

    /// What follows the mark.
    fn ours(&mut self) -> Result<Opt, DecodeError> {
        let upto = self.body.sqn()?;
        if self.kind == kind::HAS {
            return Ok(Opt::Has(Has { upto, node: NodeId(self.body.u32()?) }));
        }
        let (nodes, odd) = self.body.rest().as_chunks::<4>();
        if !odd.is_empty() || nodes.len() > MOST_ASKED {
            return Err(DecodeError::OptionLength(self.kind));
        }
        self.body = Reader::new(&[]);
        let nodes = nodes.iter().map(|&octets| NodeId(u32::from_be_bytes(octets))).collect();
        Ok(Opt::Ask(Ask { upto, nodes }))
    }
}

/// An address that says its family by its length.
fn bare_address(body: &mut Reader<'_>) -> Result<IpAddr, DecodeError> {
    Ok(if body.rest().len() == 16 {
        Ipv6Addr::from(body.array::<16>()?).into()
    } else {
        Ipv4Addr::from(body.array::<4>()?).into()
    })
}

/// The options octet of datagram `segment` of a message.
pub(super) fn bits(message: &Message, segment: u32) -> u8 {
    let set = |is, bit| if is { bit } else { 0 };
    match &message.body {
        Body::Data(data) => {
            let mut counter = Counter(0);
            write_data(data, segment, &mut counter);
            let network = data.options.group_size.is_some() && data.kind == DataKind::Repair;
            let parity = data.parity.map_or(0, |parity| bit::PARITY | set(parity.var_len, bit::VAR_LEN));
            set(counter.0 > 0, bit::PRESENT) | set(network, bit::NETWORK) | parity
        }
        Body::Spm(spm) => control_bits(&spm.options, false),
        Body::Poll(poll) => control_bits(&poll.options, false),
        Body::Polr(polr) => control_bits(&polr.options, false) | set(polr.parity, bit::PARITY),
        Body::Nak(nak) => control_bits(&nak.options, !nak.also.is_empty()) | set(nak.parity, bit::PARITY),
        Body::Ack(ack) => control_bits(&ack.options, false),
        Body::Spmr => 0,
    }
}

fn control_bits(options: &[Opt], lists: bool) -> u8 {
    let network = lists || options.iter().any(is_network);
    let present = lists || !options.is_empty();
    (u8::from(present) * bit::PRESENT) | (u8::from(network) * bit::NETWORK)
}

/// Whether network elements must look at it.
const fn is_network(option: &Opt) -> bool {
    !matches!(
        option,
        Opt::Join(_) | Opt::Fin | Opt::Rst { .. } | Opt::Feedback(_) | Opt::Ask(_) | Opt::Has(_)
    )
}

/// Writes options one after the other, the last of which has to say so.
struct Writer<'a, S> {
    out: &'a mut S,
    left: usize,
}

impl<S: Sink> Writer<'_, S> {
    /// Begins an option with `len` octets behind what all have in common.
    fn begin(&mut self, kind: u8, len: usize, bits: (u8, u8)) -> &mut S {
        self.left -= 1;
        let end = if self.left == 0 { END } else { 0 };
        self.out.put(&[kind | end, (4 + len) as u8, bits.0, bits.1]);
        self.out
    }
}

/// Writes `OPT_LENGTH`, and gives who writes the others, of which there are `count` with `len` octets in all.
fn begin<S: Sink>(out: &mut S, count: usize, len: usize) -> Writer<'_, S> {
    out.put(&[kind::LENGTH, 4]);
    out.u16((4 + len) as u16);
    Writer { out, left: count }
}

/// Writes options of what is not data; nothing where there are none.
pub(super) fn write_control<S: Sink>(options: &[Opt], (listed, octet): (&[Sqn], u8), out: &mut S) {
    let count = options.len() + usize::from(!listed.is_empty());
    if count == 0 {
        return;
    }
    let list = if listed.is_empty() { 0 } else { 4 + 4 * listed.len() };
    let len = list + options.iter().map(|option| 4 + body_len(option)).sum::<usize>();
    let mut writer = begin(out, count, len);
    if !listed.is_empty() {
        let out = writer.begin(kind::NAK_LIST, 4 * listed.len(), (octet, 0));
        for &sqn in listed {
            out.sqn(sqn);
        }
    }
    for option in options {
        write_one(option, &mut writer);
    }
}

/// Octets behind what all options have in common.
fn body_len(option: &Opt) -> usize {
    match option {
        Opt::Unreachable | Opt::Fin | Opt::Rst { .. } | Opt::Crqst(_) => 0,
        Opt::Join(_) | Opt::ParityPrm { .. } | Opt::GroupSize(_) => 4,
        Opt::NakBackoff { .. } | Opt::NakBackoffRange { .. } => 8,
        Opt::Redirect(address) => 4 + address_len(*address),
        Opt::PathNla(address) => address_len(*address),
        Opt::Cr(cr) => 16 + address_len(cr.node),
        Opt::Feedback(feedback) => 8 + address_len(feedback.receiver),
        Opt::Ask(ask) => 8 + 4 * ask.nodes.len(),
        Opt::Has(_) => 12,
    }
}

fn write_one<S: Sink>(option: &Opt, writer: &mut Writer<'_, S>) {
    let len = body_len(option);
    let set = |is, bit| if is { bit } else { 0 };
    match option {
        Opt::Join(sqn) => writer.begin(kind::JOIN, len, (0, 0)).sqn(*sqn),
        Opt::NakBackoff { interval_us, sqn } => {
            let out = writer.begin(kind::NAK_BO_IVL, len, (0, 0));
            out.u32(*interval_us);
            out.sqn(*sqn);
        }
        Opt::NakBackoffRange { max_us, min_us } => {
            let out = writer.begin(kind::NAK_BO_RNG, len, (0, 0));
            out.u32(*max_us);
            out.u32(*min_us);
        }
        Opt::Redirect(address) => writer.begin(kind::REDIRECT, len, (0, 0)).nla(*address),
        Opt::ParityPrm { on_demand, proactive, size, octet } => {
            let bits = set(*on_demand, ON_DEMAND) | set(*proactive, PROACTIVE);
            writer.begin(kind::PARITY_PRM, len, (*octet, bits)).u32(*size);
        }
        Opt::GroupSize(size) => writer.begin(kind::CURR_TGSIZE, len, (0, 0)).u32(*size),
        Opt::Unreachable => {
            writer.begin(kind::NBR_UNREACH, len, (0, 0));
        }
        Opt::PathNla(address) => writer.begin(kind::PATH_NLA, len, (0, 0)).address(*address),
        Opt::Fin => {
            writer.begin(kind::FIN, len, (0, 0));
        }
        Opt::Rst { no_naks, code } => {
            writer.begin(kind::RST, len, (0, set(*no_naks, NO_NAKS) | code & 0x3F));
        }
        Opt::Cr(cr) => {
            let out = writer.begin(kind::CR, len, (0, cr.fields & 7));
            out.sqn(cr.reference);
            for field in [cr.link, cr.path, cr.receiver, 0] {
                out.u16(field);
            }
            out.nla(cr.node);
        }
        Opt::Crqst(fields) => {
            writer.begin(kind::CRQST, len, (0, fields & 7));
        }
        Opt::Feedback(Feedback { stamp, loss, receiver, leaving }) => {
            let out = writer.begin(kind::PGMCC_FEEDBACK, len, (0, set(*leaving, LEAVING)));
            out.u32(*stamp);
            out.nla_with(*loss, *receiver);
        }
        Opt::Ask(ask) => {
            let out = writer.begin(kind::ASK, len, (0, 0));
            out.put(&MARK);
            out.sqn(ask.upto);
            for node in &ask.nodes {
                out.u32(node.0);
            }
        }
        Opt::Has(has) => {
            let out = writer.begin(kind::HAS, len, (0, 0));
            out.put(&MARK);
            out.sqn(has.upto);
            out.u32(has.node.0);
        }
    }
}

/// Writes options of datagram `segment` of data; nothing where there are none.
pub(super) fn write_data<S: Sink>(data: &Data, segment: u32, out: &mut S) {
    let DataOptions { join, group_size, syn, fin, cc, .. } = data.options;
    let fragment = data.fragment(segment);
    let group = data.parity.map_or(0, |parity| parity.group);
    let cc_len = cc.map_or(0, |cc| 8 + address_len(cc.acker));
    // Octets behind what all have in common, of those that there are.
    let lens = [
        fragment.map(|_| 12),
        join.map(|_| 4),
        (group > 0).then_some(4),
        group_size.map(|_| 4),
        syn.then_some(0),
        fin.then_some(0),
        cc.map(|_| cc_len),
        data.descriptor.as_ref().map(|_| MARK.len()),
    ];
    let count = lens.iter().flatten().count();
    if count == 0 {
        return;
    }
    let mut writer = begin(out, count, lens.iter().flatten().map(|len| 4 + len).sum());
    if let Some(Fragment { first, offset, len, null }) = fragment {
        let encoded = if data.parity.is_some() { ENCODED } else { 0 };
        let out = writer.begin(kind::FRAGMENT, 12, (encoded, if null { NULL } else { 0 }));
        out.sqn(first);
        out.u32(offset);
        out.u32(len);
    }
    if let Some(join) = join {
        writer.begin(kind::JOIN, 4, (0, 0)).sqn(join);
    }
    if group > 0 {
        writer.begin(kind::PARITY_GRP, 4, (0, 0)).u32(group);
    }
    if let Some(size) = group_size {
        writer.begin(kind::CURR_TGSIZE, 4, (0, 0)).u32(size);
    }
    if syn {
        writer.begin(kind::SYN, 0, (0, 0));
    }
    if fin {
        writer.begin(kind::FIN, 0, (0, 0));
    }
    if let Some(CcData { stamp, acker }) = cc {
        let out = writer.begin(kind::PGMCC_DATA, cc_len, (0, 0));
        out.u32(stamp);
        out.nla(acker);
    }
    if data.descriptor.is_some() {
        writer.begin(kind::OBJECT, MARK.len(), (0, 0)).put(&MARK);
    }
}
