//! Keys that each receiver of a group has. A receiver loses a datagram that it has no key for as if the channel had
//! lost it.

use std::collections::BTreeMap;
use std::iter::Peekable;

use farcast_core::{Among, Bitmap, Losses, Span, Time};
use farcast_link::losses::NoLoss;
use farcast_seal::{ASK_AGAIN, ASK_LATEST};

/// Loss process between the channel and a group, with or without a seal.
pub(crate) enum GroupLosses {
    /// No seal: a receiver hears everything that it does not lose.
    Open(Box<dyn Losses>),
    /// Seal: a receiver also needs the key.
    Sealed(Box<KeyLosses>),
}

/// Key that opens a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequiredKey {
    /// Keys that KEYS datagrams carry.
    Keys,
    /// Content key, if content has a key of its own.
    ContentKey,
}

impl GroupLosses {
    /// Adds a seal. All `receivers` have the keys if they are `given`, else none has them.
    pub(crate) fn seal(self, receivers: u32, apart: bool, given: bool) -> Self {
        let Self::Open(channel) = self else { return self };
        let all = || if given { Bitmap::new(receivers) } else { Bitmap::full(receivers) };
        Self::Sealed(Box::new(KeyLosses {
            channel,
            apart,
            keyless: all(),
            strangers: all(),
            needs: RequiredKey::Keys,
            spared: false,
            requests: BTreeMap::new(),
            due: Vec::new(),
            asked: Vec::new(),
            missed: Vec::new(),
        }))
    }

    /// Returns the loss process of the channel.
    pub(crate) fn channel(&mut self) -> &mut Box<dyn Losses> {
        match self {
            Self::Open(channel) => channel,
            Self::Sealed(keys) => &mut keys.channel,
        }
    }

    /// Replaces the loss process of the channel, and returns the old one.
    pub(crate) fn replace(&mut self, channel: Box<dyn Losses>) -> Box<dyn Losses> {
        std::mem::replace(self.channel(), channel)
    }

    /// Returns a loss process without losses.
    pub(crate) fn lossless() -> Box<dyn Losses> {
        Box::new(NoLoss)
    }

    /// Returns the receivers' side of the seal, if there is one.
    pub(crate) fn keys(&mut self) -> Option<&mut KeyLosses> {
        match self {
            Self::Open(_) => None,
            Self::Sealed(keys) => Some(keys),
        }
    }

    /// Returns `true` if a receiver may lack the key of something that it hears.
    pub(crate) fn lacks_keys(&self) -> bool {
        match self {
            Self::Open(_) => false,
            Self::Sealed(keys) if keys.apart => !keys.strangers.is_empty(),
            Self::Sealed(keys) => !keys.keyless.is_empty(),
        }
    }

    /// Returns the loss process for a datagram that `needs` a key. A `spared` datagram is not lost on the channel. If
    /// the returned flag is `true`, the caller has to ensure this; otherwise the loss process does.
    pub(crate) fn losses(&mut self, needs: RequiredKey, spared: bool) -> (&mut (dyn Losses + 'static), bool) {
        match self {
            Self::Open(channel) => (channel.as_mut(), spared),
            Self::Sealed(keys) => {
                (keys.needs, keys.spared) = (needs, spared);
                (keys.as_mut(), false)
            }
        }
    }
}

/// Receivers' side of a seal.
#[derive(Debug)]
pub(crate) struct KeyLosses {
    channel: Box<dyn Losses>,
    /// `true` if content has a key of its own.
    apart: bool,
    /// Receivers that no KEYS datagram has reached.
    keyless: Bitmap,
    /// Receivers that no datagram for them alone has reached. They lack the content key, and begin each answer with the
    /// key material that the sender needs to open it.
    strangers: Bitmap,
    /// Key that the datagram at hand needs.
    needs: RequiredKey,
    spared: bool,
    /// Earliest time of the next request, for each receiver that has heard content without its key.
    requests: BTreeMap<u32, KeyRequest>,
    /// Requests for the content key to send: time and receiver.
    pub(crate) due: Vec<(Time, u32)>,
    /// Buffers that are reused.
    asked: Vec<u32>,
    missed: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct KeyRequest {
    at: Time,
    again: Span,
}

impl KeyLosses {
    /// Notes that KEYS have reached `receiver`.
    pub(crate) fn keys_reach(&mut self, receiver: u32) {
        self.keyless.remove(receiver);
    }

    /// Notes that a datagram for `receiver` alone has reached it. The datagram carries the content key if the receiver
    /// lacked it.
    pub(crate) fn content_key_reaches(&mut self, receiver: u32) {
        self.strangers.remove(receiver);
        self.requests.remove(&receiver);
    }

    /// Returns `true` if no datagram for `receiver` alone has reached it.
    pub(crate) fn is_stranger(&self, receiver: u32) -> bool {
        self.strangers.contains(receiver)
    }

    /// Queues requests for the content key. A receiver asks if it has heard content, lacks the key of this content, has
    /// the keys of KEYS, and may ask again by now.
    fn request_keys(&mut self, now: Time) {
        let Self { keyless, strangers, requests, due, missed, .. } = self;
        let mut missed = missed.iter().copied().peekable();
        for n in strangers.iter() {
            if is_next(&mut missed, n) || keyless.contains(n) {
                continue;
            }
            let request = requests.entry(n).or_insert(KeyRequest { at: now, again: ASK_AGAIN });
            if now >= request.at {
                (request.at, request.again) = (now + request.again, (request.again * 2).min(ASK_LATEST));
                due.push((now, n));
            }
        }
    }
}

impl Losses for KeyLosses {
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let Self { channel, keyless, strangers, needs, spared, asked, missed, .. } = self;
        let lacking = if *needs == RequiredKey::Keys { keyless } else { strangers };
        if lacking.is_empty() {
            let among = if *spared { Among::These(&[]) } else { among };
            return channel.draw(now, octets, among, lost);
        }
        missed.clear();
        match among {
            _ if *spared => channel.draw(now, octets, Among::These(&[]), missed),
            Among::All => channel.draw(now, octets, among, missed),
            Among::These(members) => {
                asked.clear();
                unite(members, lacking.iter(), asked);
                channel.draw(now, octets, Among::These(asked), missed);
            }
        }
        match among {
            Among::All => unite(missed, lacking.iter(), lost),
            Among::These(members) => {
                let mut missed = missed.iter().copied().peekable();
                let is_lost = |n: &u32| is_next(&mut missed, *n) || lacking.contains(*n);
                lost.extend(members.iter().copied().filter(is_lost));
            }
        }
        if *needs == RequiredKey::ContentKey {
            self.request_keys(now);
        }
    }

    fn spared(&mut self, octets: u64, frames: u32) -> u32 {
        let lacking = if self.needs == RequiredKey::Keys { &self.keyless } else { &self.strangers };
        if lacking.is_empty() { self.channel.spared(octets, frames) } else { 0 }
    }

    fn is_memoryless(&self) -> bool {
        self.channel.is_memoryless()
    }
}

/// Appends the union of `ours` and `theirs`, both of which ascend.
fn unite(ours: &[u32], theirs: impl Iterator<Item = u32>, out: &mut Vec<u32>) {
    let mut ours = ours.iter().copied().peekable();
    for n in theirs {
        while let Some(before) = ours.next_if(|&own| own < n) {
            out.push(before);
        }
        ours.next_if_eq(&n);
        out.push(n);
    }
    out.extend(ours);
}

/// Returns `true` if `n` is among `ascending`. All smaller numbers are consumed.
fn is_next(ascending: &mut Peekable<impl Iterator<Item = u32>>, n: u32) -> bool {
    while ascending.next_if(|&before| before < n).is_some() {}
    ascending.peek() == Some(&n)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loss process that loses every frame for these receivers.
    #[derive(Debug)]
    struct Always(Vec<u32>);

    impl Losses for Always {
        fn draw(&mut self, _now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
            let asked = |n: &u32| match among {
                Among::All => true,
                Among::These(members) => members.contains(n),
            };
            lost.extend(self.0.iter().copied().filter(asked));
        }

        fn is_memoryless(&self) -> bool {
            true
        }
    }

    fn key_losses(lossy: &[u32]) -> Box<KeyLosses> {
        let GroupLosses::Sealed(keys) =
            GroupLosses::Open(Box::new(Always(lossy.to_vec()))).seal(6, true, false)
        else {
            panic!("sealed")
        };
        keys
    }

    fn lost(keys: &mut KeyLosses, ms: u64, needs: RequiredKey, among: Among<'_>) -> Vec<u32> {
        let mut lost = Vec::new();
        keys.needs = needs;
        keys.draw(Time::ZERO + Span::from_millis(ms), 100, among, &mut lost);
        lost
    }

    #[test]
    fn a_receiver_without_a_key_loses_what_it_opens() {
        let mut keys = key_losses(&[1, 4]);
        assert_eq!(lost(&mut keys, 0, RequiredKey::Keys, Among::All), [0, 1, 2, 3, 4, 5]);
        for n in [0, 1, 2, 3] {
            keys.keys_reach(n);
        }
        assert_eq!(lost(&mut keys, 0, RequiredKey::Keys, Among::All), [1, 4, 5]);
        assert_eq!(lost(&mut keys, 0, RequiredKey::Keys, Among::These(&[0, 1, 5])), [1, 5]);
        assert!(keys.due.is_empty(), "what all can open asks for nothing");
        keys.spared = true;
        assert_eq!(
            lost(&mut keys, 0, RequiredKey::Keys, Among::All),
            [4, 5],
            "and where only content is lost"
        );
    }

    #[test]
    fn requests_for_the_content_key_become_rarer() {
        let mut keys = key_losses(&[1]);
        for n in 0..5 {
            keys.keys_reach(n);
        }
        keys.content_key_reaches(0);
        keys.content_key_reaches(4);
        for ms in (0..=8000).step_by(500) {
            assert_eq!(lost(&mut keys, ms, RequiredKey::ContentKey, Among::These(&[0, 4])), [], "{ms}");
            if ms == 2000 {
                keys.content_key_reaches(2);
            }
        }
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        // Receiver 1 does not hear the content, and receiver 5 has no keys at all.
        let asked = [(0, 2), (0, 3), (1000, 2), (1000, 3), (3000, 3), (7000, 3)];
        assert_eq!(keys.due, asked.map(|(ms, n)| (at(ms), n)));
    }

    #[test]
    fn given_keys_are_there() {
        let mut losses = GroupLosses::Open(Box::new(Always(vec![2]))).seal(4, true, true);
        assert!(!losses.lacks_keys());
        let mut lost = Vec::new();
        losses.losses(RequiredKey::ContentKey, false).0.draw(Time::ZERO, 9, Among::All, &mut lost);
        assert_eq!(lost, [2]);
        lost.clear();
        losses.losses(RequiredKey::Keys, true).0.draw(Time::ZERO, 9, Among::All, &mut lost);
        assert_eq!(lost, []);
    }
}
