//! Handling of narrow paths by a socket: marks, pieces and reports; see [`crate::narrow`].

use std::io::IoSliceMut;
use std::net::SocketAddr;

use farcast_delivery::Transport;
use quinn_udp::RecvMeta;

use super::Endpoint;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::narrow::{
    Assembly, DatagramPart, Marks, NarrowWatch, OtherTraffic, PIECE_HEADER, Small, header_of_ip,
    headers_of_fragments, narrow, passes_everywhere, tried_below,
};

/// Report of a receiver that gets no long datagram of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NarrowReport {
    /// Address of the receiver.
    pub(crate) receiver: SocketAddr,
    /// Length of datagrams that do not arrive there, octets without headers of UDP and IP.
    pub(crate) length: usize,
    /// Length of the longest datagram that leaves from now on, octets without headers of UDP and IP.
    pub(crate) limit: usize,
}

/// State of a socket about narrow paths.
#[derive(Debug, Default)]
pub(super) struct Narrowness {
    /// Counts of sent datagrams, on a sender's socket.
    marks: Option<Marks>,
    /// Counts of received datagrams, on a receiver's socket.
    watch: Option<NarrowWatch>,
    assembly: Assembly,
    /// Length of the longest datagram that leaves whole, octets; `None` if there is no limit.
    limit: Option<usize>,
    /// Number of the next datagram that is cut.
    next: u32,
    beside: OtherTraffic,
    /// Report that made the socket cut, until the owner is told.
    asked: Option<NarrowReport>,
}

/// Content of a slot after the datagrams of this layer were taken out.
struct Sifted {
    /// Number of octets at the beginning that stay as they are.
    stays: usize,
    /// Datagrams that take the place of the rest.
    whole: Vec<Vec<u8>>,
    /// Answers to marks.
    answers: Vec<Vec<u8>>,
}

impl Endpoint {
    /// Makes the socket send marks beside long datagrams.
    pub(super) fn marking(self) -> Self {
        self.narrowness.borrow_mut().marks = Some(Marks::default());
        self
    }

    /// Makes the socket watch received datagrams for a narrow path.
    pub(crate) fn watching(self, watch: NarrowWatch) -> Self {
        self.narrowness.borrow_mut().watch = Some(watch);
        self
    }

    /// Returns `true` if the socket cuts what it sends, or was found to receive no long datagrams.
    pub(crate) fn is_narrow(&self) -> bool {
        let state = self.narrowness.borrow();
        state.limit.is_some() || state.watch.as_ref().is_some_and(NarrowWatch::is_narrow)
    }

    /// Cuts datagrams that do not pass everywhere, from now on.
    pub(crate) fn cut(&self) {
        let limit = passes_everywhere(self.local.is_ipv4(), self.transport);
        self.narrowness.borrow_mut().limit = Some(limit);
    }

    /// Returns the traffic besides the requested datagrams since the last call.
    pub(crate) fn beside(&self) -> OtherTraffic {
        std::mem::take(&mut self.narrowness.borrow_mut().beside)
    }

    /// Returns the report that has made the socket cut, once.
    pub(crate) fn asked_to_cut(&self) -> Option<NarrowReport> {
        self.narrowness.borrow_mut().asked.take()
    }

    /// Returns a sender whose long datagrams do not arrive, and their length in octets. Reports each find once.
    pub(crate) fn found_narrow(&self) -> Option<(SocketAddr, usize)> {
        let found = self.narrowness.borrow_mut().watch.as_mut()?.found()?;
        Some((found.sender, found.length))
    }

    /// Returns the octets of the longest datagram to `to` that passes everywhere.
    pub(crate) fn passes_everywhere(&self, to: SocketAddr) -> usize {
        passes_everywhere(to.is_ipv4(), self.transport)
    }

    /// Sends `contents` as datagrams of `stride` bytes (the last may be shorter), waiting while the kernel's buffer
    /// is full.
    pub(crate) fn send(&self, envelope: &Envelope, contents: &[u8], stride: usize) -> Result<(), NetError> {
        envelope.check(self.local)?;
        if stride <= self.passes_everywhere(envelope.to) {
            return self.send_batch(envelope, contents, stride);
        }
        let limit = self.narrowness.borrow().limit.filter(|&limit| limit < stride);
        if let Some(limit) = limit {
            let mut chunks = contents.chunks(stride);
            return chunks.try_for_each(|one| self.send_in_pieces(envelope, one, limit));
        }
        self.send_batch(envelope, contents, stride)?;
        self.count_fragments(envelope.to, contents, stride);
        self.longest.set(self.longest.get().max(stride));
        self.mark(envelope, stride, contents);
        Ok(())
    }

    fn send_in_pieces(&self, envelope: &Envelope, datagram: &[u8], limit: usize) -> Result<(), NetError> {
        let count = datagram.len().div_ceil(limit - PIECE_HEADER);
        let (Ok(parts), Ok(total)) = (u8::try_from(count), u16::try_from(datagram.len())) else {
            return Err(NetError::TooLarge { size: datagram.len(), destination: envelope.to });
        };
        if datagram.len() <= limit {
            return self.send_batch(envelope, datagram, datagram.len());
        }
        let id = {
            let mut state = self.narrowness.borrow_mut();
            state.next = state.next.wrapping_add(1);
            state.beside.add(count - 1, count * PIECE_HEADER);
            state.next
        };
        let unit = DatagramPart::unit(datagram.len(), count);
        let (mut out, mut first) = (Vec::with_capacity(PIECE_HEADER + unit), Vec::new());
        for (index, octets) in (0..).zip(datagram.chunks(unit)) {
            out.clear();
            DatagramPart { id, total, index, count: parts, octets }.write_header(&mut out);
            out.extend(octets);
            // Pieces are sent one by one, since some devices take a batch for one long datagram.
            self.send_batch(envelope, &out, out.len())?;
            if index == 0 {
                first.clone_from(&out);
            }
        }
        if first.len() > self.passes_everywhere(envelope.to) {
            self.mark(envelope, first.len(), &first);
        }
        Ok(())
    }

    /// Counts the headers that the kernel has added, if it sends fragments.
    fn count_fragments(&self, to: SocketAddr, contents: &[u8], stride: usize) {
        let Some(carried) = self.carried.get() else { return };
        let udp = self.headers(to) - header_of_ip(to.is_ipv4());
        let added = |datagram: &[u8]| headers_of_fragments(udp + datagram.len(), carried, to.is_ipv4());
        let octets = contents.chunks(stride).map(added).sum();
        self.narrowness.borrow_mut().beside.add(0, octets);
    }

    /// Counts long datagrams, and sends a mark if one is due.
    fn mark(&self, envelope: &Envelope, stride: usize, contents: &[u8]) {
        let mut state = self.narrowness.borrow_mut();
        let Some(mark) = state.marks.as_mut().and_then(|marks| marks.sent(envelope.to, stride, contents))
        else {
            return;
        };
        let tried = tried_below(stride, envelope.to.is_ipv4(), self.transport);
        let padded = state.marks.as_ref().is_some_and(|marks| marks.pads(envelope.to)).then_some(tried);
        let datagram = mark.datagram(padded.filter(|&tried| tried > self.passes_everywhere(envelope.to)));
        state.beside.add(1, datagram.len());
        drop(state);
        // A mark that does not leave is as good as lost.
        let _ = self.send_batch(&Envelope { router_alert: false, ..*envelope }, &datagram, datagram.len());
    }

    /// Takes datagrams of this layer out of the first `count` slots, and puts pieces together. Returns the number of
    /// slots that are filled now. A slot of which nothing remains has the length 0.
    pub(super) fn sift(
        &self,
        slots: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
        mut count: usize,
    ) -> usize {
        let mut spilt = Vec::new();
        for (slot, meta) in slots.iter_mut().zip(&mut meta[..count]) {
            let Some(content) = self.content(&slot[..meta.len]) else { continue };
            let stride = meta.stride.max(1);
            let Some(sifted) = self.sift_slot(meta.addr, &slot[content.clone()], stride) else { continue };
            for answer in sifted.answers {
                // An answer that does not leave is as good as lost.
                let _ = self.send_batch(&Envelope::to(meta.addr), &answer, answer.len());
            }
            let mut end = content.start + sifted.stays;
            let mut stride = if sifted.stays > 0 { stride } else { 0 };
            for whole in sifted.whole {
                let follows =
                    stride == 0 || whole.len() <= stride && (end - content.start).is_multiple_of(stride);
                match slot.get_mut(end..end + whole.len()).filter(|_| follows) {
                    Some(room) => {
                        room.copy_from_slice(&whole);
                        (end, stride) = (end + whole.len(), stride.max(whole.len()));
                    }
                    None => spilt.push((*meta, whole)),
                }
            }
            (meta.len, meta.stride) = (if end > content.start { end } else { 0 }, stride);
            self.set_length(&mut slot[..meta.len]);
        }
        // A datagram that cannot follow its neighbours gets a slot of its own, if there is one.
        for ((slot, place), (from, whole)) in slots.iter_mut().zip(meta).skip(count).zip(spilt) {
            slot[..whole.len()].copy_from_slice(&whole);
            *place = from;
            (place.len, place.stride) = (whole.len(), whole.len());
            count += 1;
        }
        count
    }

    /// Takes the datagrams of this layer out of `content`; `None` if there are none.
    fn sift_slot(&self, from: SocketAddr, content: &[u8], stride: usize) -> Option<Sifted> {
        let first = content.chunks(stride).position(|datagram| Small::read(datagram).is_some());
        let mut state = self.narrowness.borrow_mut();
        let stays = first.map_or(content.len(), |first| first * stride);
        if let Some(watch) = &mut state.watch {
            watch.heard(from, content, stride);
        }
        first?;
        let mut sifted = Sifted { stays, whole: Vec::new(), answers: Vec::new() };
        for datagram in content[stays..].chunks(stride) {
            match Small::read(datagram) {
                None => sifted.whole.push(datagram.to_vec()),
                Some(Small::Piece(piece)) => sifted.whole.extend(state.assembly.take(from, &piece)),
                Some(Small::Mark(mark)) => {
                    let Some(watch) = &mut state.watch else { continue };
                    let answers = watch.mark(from, &mark);
                    let passes = watch.marked(from, datagram.len());
                    if answers {
                        sifted.answers.push(narrow(mark.nonce, passes));
                    }
                }
                Some(Small::Narrow { nonce, passes }) => {
                    state.asked(from, nonce, passes.into(), self.transport);
                }
            }
        }
        Some(sifted)
    }

    /// Sets the length in the header of an IPv4 packet to its present length.
    fn set_length(&self, packet: &mut [u8]) {
        if self.transport != Transport::Udp
            && let Ok(length) = u16::try_from(packet.len())
            && let Some(field) = packet.get_mut(2..4)
        {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }
}

impl Narrowness {
    /// Handles a receiver's report that it gets none of the datagrams beside the marks with `nonce`, and marks of at
    /// most `passes` octets.
    fn asked(&mut self, receiver: SocketAddr, nonce: u64, passes: usize, transport: Transport) {
        let Some(length) = self.marks.as_ref().and_then(|marks| marks.length_of(nonce)) else { return };
        let tried = tried_below(length, receiver.is_ipv4(), transport);
        // If not even marks of that length arrive, pieces of it would not either.
        let in_vain = passes > 0 && passes < tried;
        let limit = if in_vain { passes_everywhere(receiver.is_ipv4(), transport) } else { tried };
        if self.limit.is_none_or(|old| limit < old) {
            self.limit = Some(limit);
            self.asked = Some(NarrowReport { receiver, length, limit });
            // Datagrams from now on are counted anew.
            self.marks = Some(Marks::default());
        }
    }
}
