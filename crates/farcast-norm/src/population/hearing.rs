//! State of receivers that follows from the sender's messages, which is nearly the same for all.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::{Span, Time};

use crate::config::ReceiverConfig;
use crate::message::Terms;
use farcast_delivery::nack::earned;

/// State of a receiver that follows from the sender's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Control {
    /// Terms of the last message about the object, or of the first message; `None` if the sender is not known.
    pub(super) terms: Option<Terms>,
    /// Progress of the sender: 0 if it has sent nothing about the object, else one more than the number of blocks that
    /// it has passed.
    pub(super) position: u32,
    /// `true` if the reception of the object has begun.
    pub(super) begun: bool,
    /// Octets that the receiver may send.
    pub(super) credit: u64,
    /// Time at which the sender counts as silent.
    pub(super) quiet_at: Time,
    /// Number of silences in a row.
    pub(super) silences: u32,
}

impl Control {
    const NOTHING: Self =
        Self { terms: None, position: 0, begun: false, credit: 0, quiet_at: Time::NEVER, silences: 0 };

    /// Adds the credit for `octets` of the sender.
    pub(super) fn earn(&mut self, terms: Terms, octets: u64) {
        self.terms = self.terms.or(Some(terms));
        self.credit = earned(self.credit, octets);
    }

    /// Notes a message about the object with these terms, after which the sender counts as silent at `quiet_at`.
    pub(super) fn note(&mut self, terms: Terms, quiet_at: Time) {
        (self.terms, self.silences, self.quiet_at) = (Some(terms), 0, quiet_at);
    }

    /// Returns the number of blocks that the sender has passed and not returned to. Receivers may ask for what they
    /// lack of these blocks.
    pub(super) fn passed(&self) -> u32 {
        self.position.saturating_sub(1)
    }
}

/// Returns the GRTT, limited to what is believed.
pub(super) fn grtt(terms: Terms, config: &ReceiverConfig) -> Span {
    terms.grtt.span().min(config.grtt_most)
}

/// State of all receivers: one state for all that have heard the last message, and the states of the others.
#[derive(Clone, Debug)]
pub(super) struct Hearing {
    pub(super) common: Control,
    /// Receivers with another state, ascending.
    pub(super) behind: Vec<(u32, Control)>,
    /// Further receivers with another state: those that have sent something since the last message.
    spoken: BTreeMap<u32, Control>,
    /// Receivers that were behind before the last message (a buffer that is reused).
    before: Vec<(u32, Control)>,
    /// Receivers, among those in `before`, that the last message makes look for what they lack.
    pub(super) stirred: Vec<u32>,
    /// Earliest time at which the sender counts as silent for a receiver in `behind`.
    quiet_at: Time,
}

impl Hearing {
    pub(super) fn new() -> Self {
        Self {
            common: Control::NOTHING,
            behind: Vec::new(),
            spoken: BTreeMap::new(),
            before: Vec::new(),
            stirred: Vec::new(),
            quiet_at: Time::NEVER,
        }
    }

    /// Returns the state of `receiver`.
    pub(super) fn of(&self, receiver: u32) -> &Control {
        if let Some(control) = self.spoken.get(&receiver) {
            return control;
        }
        let place = self.behind.binary_search_by_key(&receiver, |&(receiver, _)| receiver);
        place.map_or(&self.common, |place| &self.behind[place].1)
    }

    /// Sets the state of `receiver` after it has sent something.
    pub(super) fn spoke(&mut self, receiver: u32, control: Control) {
        match self.behind.binary_search_by_key(&receiver, |&(receiver, _)| receiver) {
            Ok(place) => self.behind[place].1 = control,
            Err(_) => drop(self.spoken.insert(receiver, control)),
        }
    }

    /// Moves the receivers in `spoken` to `behind`.
    pub(super) fn settle(&mut self) {
        if !self.spoken.is_empty() {
            self.behind.extend(core::mem::take(&mut self.spoken));
            self.behind.sort_by_key(|&(receiver, _)| receiver);
            self.quiet_at = self.quiet_at.min(self.common.quiet_at);
        }
    }

    /// Returns the earliest time at which the sender counts as silent for a receiver.
    pub(super) fn quiet_at(&self) -> Time {
        self.quiet_at.min(self.common.quiet_at)
    }

    /// Applies `step` to the state of all receivers but `lost`, ascending, that hear a message. Returns `true` if
    /// receivers that were not behind are to look for what they lack; `stirred` has the others that are.
    pub(super) fn hear(&mut self, lost: &[u32], step: impl Fn(&mut Control) -> bool) -> bool {
        self.settle();
        let earlier = self.common;
        let all = step(&mut self.common);
        core::mem::swap(&mut self.behind, &mut self.before);
        self.behind.clear();
        self.stirred.clear();
        self.quiet_at = Time::NEVER;
        let stirred = &mut self.stirred;
        let mut hears = |receiver, mut control: Control| {
            if step(&mut control) {
                stirred.push(receiver);
            }
            (receiver, control)
        };
        let (mut lost, mut before) = (lost.iter().copied().peekable(), self.before.iter().peekable());
        loop {
            let (receiver, control) = match (lost.peek(), before.peek()) {
                (Some(&receiver), Some(&&(old, control))) if old <= receiver => {
                    before.next();
                    if old == receiver {
                        lost.next();
                        (old, control)
                    } else {
                        hears(old, control)
                    }
                }
                (Some(&receiver), _) => {
                    lost.next();
                    (receiver, earlier)
                }
                (None, Some(&&(old, control))) => {
                    before.next();
                    hears(old, control)
                }
                (None, None) => break,
            };
            if control != self.common {
                self.quiet_at = self.quiet_at.min(control.quiet_at);
                self.behind.push((receiver, control));
            }
        }
        all
    }

    /// Returns a function that tells, for receivers in ascending order, whether a receiver was not behind before the
    /// last message and has heard it.
    pub(super) fn kept_up<'a>(&'a self, lost: &'a [u32]) -> impl FnMut(u32) -> bool + 'a {
        let mut before = self.before.iter().map(|&(receiver, _)| receiver).peekable();
        let mut lost = lost.iter().copied().peekable();
        move |receiver| {
            while before.next_if(|&earlier| earlier < receiver).is_some() {}
            while lost.next_if(|&earlier| earlier < receiver).is_some() {}
            before.peek() != Some(&receiver) && lost.peek() != Some(&receiver)
        }
    }

    /// Applies `step` to the receivers in `behind`, and updates the time of their first silence.
    pub(super) fn each_behind(&mut self, mut step: impl FnMut(u32, &mut Control)) {
        self.quiet_at = Time::NEVER;
        for (receiver, control) in &mut self.behind {
            step(*receiver, control);
            self.quiet_at = self.quiet_at.min(control.quiet_at);
        }
    }
}
