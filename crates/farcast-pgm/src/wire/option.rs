//! Options (RFC 3208 §9): up to 16. The first gives the length of all, and the last is marked as such.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use farcast_delivery::octets::{Counter, Reader, Sink};

use super::octets::{PgmReader as _, PgmSink as _, address_len};
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
    // Not assigned; an option of farcast where [`MARK`](super::MARK) follows.
    pub(super) const OBJECT: u8 = 0x70;
    pub(super) const ASK: u8 = 0x71;
    pub(super) const HAS: u8 = 0x72;
}

/// Bit of an option's type: the option is the last.
const END: u8 = 0x80;
/// Bit of the fourth octet of `OPT_FRAGMENT` in parity: none of the encoded packets has the option.
const NULL: u8 = 0x80;
/// Bit of the fourth octet of `OPT_RST`: NAKs are no longer answered.
const NO_NAKS: u8 = 0x40;
/// Bits of the fourth octet of `OPT_PARITY_PRM`. RFC 3208 draws them the other way round; these are the values on the
/// wire.
const PROACTIVE: u8 = 0x01;
const ON_DEMAND: u8 = 0x02;
/// Bit of the fourth octet of `OPT_PGMCC_FEEDBACK`, which only farcast uses.
const LEAVING: u8 = 0x01;
/// Bit of the third octet: the option's fields are encoded as parity (RFC 3208 §9.1, as drawn).
const ENCODED: u8 = 0x04;
/// The most options of a message.
const MOST: usize = 16;
/// Octets that begin the body of farcast's own options.
const MARK: [u8; 4] = *b"fcst";

/// Kind of message whose options are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Data,
    Control,
}

/// Options that were found in a message.
#[derive(Default)]
pub(super) struct Found {
    pub(super) control: Vec<Opt>,
    pub(super) listed: Vec<Sqn>,
    pub(super) list_octet: u8,
    pub(super) data: DataOptions,
    pub(super) parity_group: u32,
    /// The TSDU describes an object.
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

/// One option that is being read.
struct One<'a> {
    kind: u8,
    third: u8,
    /// Fourth octet, the last of those that all options have.
    bits: u8,
    body: Reader<'a>,
}

impl One<'_> {
    /// Reads an option of data; returns `true` if its type is known.
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

    /// Reads an option of a message that is not data; returns `true` if its type is known.
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

    /// Returns `true` if farcast's mark begins the option, and consumes the mark.
    fn is_ours(&mut self) -> bool {
        self.body.clone().array() == Ok(MARK) && self.body.take(MARK.len()).is_ok()
    }

    /// Reads the fields behind the mark.
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

/// Reads an address whose family follows from the length of the option.
fn bare_address(body: &mut Reader<'_>) -> Result<IpAddr, DecodeError> {
    Ok(if body.rest().len() == 16 {
        Ipv6Addr::from(body.array::<16>()?).into()
    } else {
        Ipv4Addr::from(body.array::<4>()?).into()
    })
}

/// Returns the options octet of datagram `segment` of a message.
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

/// Returns `true` if network elements must look at the option.
const fn is_network(option: &Opt) -> bool {
    !matches!(
        option,
        Opt::Join(_) | Opt::Fin | Opt::Rst { .. } | Opt::Feedback(_) | Opt::Ask(_) | Opt::Has(_)
    )
}

/// Writes options one after the other, and marks the last.
struct Writer<'a, S> {
    out: &'a mut S,
    left: usize,
}

impl<S: Sink> Writer<'_, S> {
    /// Begins an option with `len` octets behind the four that all options have.
    fn begin(&mut self, kind: u8, len: usize) -> &mut S {
        self.begin_with(kind, len, 0, 0)
    }

    /// Begins an option with these two octets behind its kind and length.
    fn begin_with(&mut self, kind: u8, len: usize, encoded: u8, bits: u8) -> &mut S {
        self.left -= 1;
        let end = if self.left == 0 { END } else { 0 };
        self.out.put(&[kind | end, (4 + len) as u8, encoded, bits]);
        self.out
    }
}

/// Writes `OPT_LENGTH`, and returns a writer for the other `count` options, which take `len` octets in all.
fn begin<S: Sink>(out: &mut S, count: usize, len: usize) -> Writer<'_, S> {
    out.put(&[kind::LENGTH, 4]);
    out.u16((4 + len) as u16);
    Writer { out, left: count }
}

/// Writes the options of a message that is not data; nothing where there are none.
pub(super) fn write_control<S: Sink>(options: &[Opt], listed: &[Sqn], octet: u8, out: &mut S) {
    let count = options.len() + usize::from(!listed.is_empty());
    if count == 0 {
        return;
    }
    let list = if listed.is_empty() { 0 } else { 4 + 4 * listed.len() };
    let len = list + options.iter().map(|option| 4 + body_len(option)).sum::<usize>();
    let mut writer = begin(out, count, len);
    if !listed.is_empty() {
        let out = writer.begin_with(kind::NAK_LIST, 4 * listed.len(), octet, 0);
        for &sqn in listed {
            out.sqn(sqn);
        }
    }
    for option in options {
        write_one(option, &mut writer);
    }
}

/// Returns the octets of an option behind the four that all options have.
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
        Opt::Join(sqn) => writer.begin(kind::JOIN, len).sqn(*sqn),
        Opt::NakBackoff { interval_us, sqn } => {
            let out = writer.begin(kind::NAK_BO_IVL, len);
            out.u32(*interval_us);
            out.sqn(*sqn);
        }
        Opt::NakBackoffRange { max_us, min_us } => {
            let out = writer.begin(kind::NAK_BO_RNG, len);
            out.u32(*max_us);
            out.u32(*min_us);
        }
        Opt::Redirect(address) => writer.begin(kind::REDIRECT, len).nla(*address),
        Opt::ParityPrm { on_demand, proactive, size, octet } => {
            let bits = set(*on_demand, ON_DEMAND) | set(*proactive, PROACTIVE);
            writer.begin_with(kind::PARITY_PRM, len, *octet, bits).u32(*size);
        }
        Opt::GroupSize(size) => writer.begin(kind::CURR_TGSIZE, len).u32(*size),
        Opt::Unreachable => {
            writer.begin(kind::NBR_UNREACH, len);
        }
        Opt::PathNla(address) => writer.begin(kind::PATH_NLA, len).address(*address),
        Opt::Fin => {
            writer.begin(kind::FIN, len);
        }
        Opt::Rst { no_naks, code } => {
            writer.begin_with(kind::RST, len, 0, set(*no_naks, NO_NAKS) | code & 0x3F);
        }
        Opt::Cr(cr) => {
            let out = writer.begin_with(kind::CR, len, 0, cr.fields & 7);
            out.sqn(cr.reference);
            for field in [cr.link, cr.path, cr.receiver, 0] {
                out.u16(field);
            }
            out.nla(cr.node);
        }
        Opt::Crqst(fields) => {
            writer.begin_with(kind::CRQST, len, 0, fields & 7);
        }
        Opt::Feedback(Feedback { stamp, loss, receiver, leaving }) => {
            let out = writer.begin_with(kind::PGMCC_FEEDBACK, len, 0, set(*leaving, LEAVING));
            out.u32(*stamp);
            out.nla_with(*loss, *receiver);
        }
        Opt::Ask(ask) => {
            let out = writer.begin(kind::ASK, len);
            out.put(&MARK);
            out.sqn(ask.upto);
            for node in &ask.nodes {
                out.u32(node.0);
            }
        }
        Opt::Has(has) => {
            let out = writer.begin(kind::HAS, len);
            out.put(&MARK);
            out.sqn(has.upto);
            out.u32(has.node.0);
        }
    }
}

/// Writes the options of datagram `segment` of data; nothing where there are none.
pub(super) fn write_data<S: Sink>(data: &Data, segment: u32, out: &mut S) {
    let DataOptions { join, group_size, syn, fin, cc, .. } = data.options;
    let fragment = data.fragment(segment);
    let group = data.parity.map_or(0, |parity| parity.group);
    let cc_len = cc.map_or(0, |cc| 8 + address_len(cc.acker));
    // Octets of each option that is present, behind the four that all options have.
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
        let out = writer.begin_with(kind::FRAGMENT, 12, encoded, if null { NULL } else { 0 });
        out.sqn(first);
        out.u32(offset);
        out.u32(len);
    }
    if let Some(join) = join {
        writer.begin(kind::JOIN, 4).sqn(join);
    }
    if group > 0 {
        writer.begin(kind::PARITY_GRP, 4).u32(group);
    }
    if let Some(size) = group_size {
        writer.begin(kind::CURR_TGSIZE, 4).u32(size);
    }
    if syn {
        writer.begin(kind::SYN, 0);
    }
    if fin {
        writer.begin(kind::FIN, 0);
    }
    if let Some(CcData { stamp, acker }) = cc {
        let out = writer.begin(kind::PGMCC_DATA, cc_len);
        out.u32(stamp);
        out.nla(acker);
    }
    if data.descriptor.is_some() {
        writer.begin(kind::OBJECT, MARK.len()).put(&MARK);
    }
}
