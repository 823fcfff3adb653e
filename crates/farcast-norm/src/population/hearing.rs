//! What receivers know of their sender by what they have heard of it: nearly all the same.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::{Span, Time};

use crate::config::ReceiverConfig;
use crate::message::Terms;
use crate::timing::earned;

/// What a receiver knows of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Control {
    /// What was said last of objects, or at first; `None` where the sender is not known.
    pub(super) terms: Option<Terms>,
    /// Where the sender is: 0 where it has not spoken of the object, else one more than the blocks that it has passed.
    pub(super) position: u32,
    /// Whether the object is being received, or has been.
    pub(super) begun: bool,
    /// Octets that may be said.
    pub(super) credit: u64,
    /// When nothing has been heard for long.
    pub(super) quiet_at: Time,
    /// How often that was so.
    pub(super) silences: u32,
}

impl Control {
    const NOTHING: Self =
        Self { terms: None, position: 0, begun: false, credit: 0, quiet_at: Time::NEVER, silences: 0 };

    /// The sender has said so many octets.
    pub(super) fn earn(&mut self, terms: Terms, octets: u64) {
        self.terms = self.terms.or(Some(terms));
        self.credit = earned(self.credit, octets);
    }

    /// What was said was of the object, under these terms, by which nothing has been heard for long at `quiet_at`.
    pub(super) fn note(&mut self, terms: Terms, quiet_at: Time) {
        (self.terms, self.silences, self.quiet_at) = (Some(terms), 0, quiet_at);
    }

    /// How many blocks the sender has passed, and is not before again: what lacks of them may be asked for.
    pub(super) fn passed(&self) -> u32 {
        self.position.saturating_sub(1)
    }
}

/// The group's greatest round trip, as far as it is believed.
pub(super) fn grtt(terms: Terms, config: &ReceiverConfig) -> Span {
    terms.grtt.span().min(config.grtt_most)
}

/// What all receivers know: what is common to those who have heard the last message, and what each of the others knew
/// before.
#[derive(Clone, Debug)]
pub(super) struct Hearing {
    pub(super) common: Control,
    /// Those who know something else, ascending.
    pub(super) behind: Vec<(u32, Control)>,
    /// The same of those who have said something since the last message.
    spoken: BTreeMap<u32, Control>,
    /// Reused: those who were behind before the last message.
    before: Vec<(u32, Control)>,
    /// Of those, the ones whom it makes look for what they lack.
    pub(super) stirred: Vec<u32>,
    /// When the first of those behind has heard nothing for long.
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

    /// What `receiver` knows.
    pub(super) fn of(&self, receiver: u32) -> &Control {
        if let Some(control) = self.spoken.get(&receiver) {
            return control;
        }
        let place = self.behind.binary_search_by_key(&receiver, |&(receiver, _)| receiver);
        place.map_or(&self.common, |place| &self.behind[place].1)
    }

    /// `receiver` has said something, which leaves it with this.
    pub(super) fn spoke(&mut self, receiver: u32, control: Control) {
        match self.behind.binary_search_by_key(&receiver, |&(receiver, _)| receiver) {
            Ok(place) => self.behind[place].1 = control,
            Err(_) => drop(self.spoken.insert(receiver, control)),
        }
    }

    /// Puts those who have spoken into their places.
    pub(super) fn settle(&mut self) {
        if !self.spoken.is_empty() {
            self.behind.extend(core::mem::take(&mut self.spoken));
            self.behind.sort_by_key(|&(receiver, _)| receiver);
            self.quiet_at = self.quiet_at.min(self.common.quiet_at);
        }
    }

    /// When the first has heard nothing for long.
    pub(super) fn quiet_at(&self) -> Time {
        self.quiet_at.min(self.common.quiet_at)
    }

    /// All but `lost`, ascending, hear something, which makes of what a receiver knows what `step` does. Whether those
    /// who were not behind are to look for what they lack; of the others `stirred` says it.
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

    /// Whether `receiver` was not behind before the last message, and has heard it. Receivers are asked about in their
    /// order.
    pub(super) fn kept_up<'a>(&'a self, lost: &'a [u32]) -> impl FnMut(u32) -> bool + 'a {
        let mut before = self.before.iter().map(|&(receiver, _)| receiver).peekable();
        let mut lost = lost.iter().copied().peekable();
        move |receiver| {
            while before.next_if(|&earlier| earlier < receiver).is_some() {}
            while lost.next_if(|&earlier| earlier < receiver).is_some() {}
            before.peek() != Some(&receiver) && lost.peek() != Some(&receiver)
        }
    }

    /// Gives those behind to `step`, and looks anew when the first of them has heard nothing for long.
    pub(super) fn each_behind(&mut self, mut step: impl FnMut(u32, &mut Control)) {
        self.quiet_at = Time::NEVER;
        for (receiver, control) in &mut self.behind {
            step(*receiver, control);
            self.quiet_at = self.quiet_at.min(control.quiet_at);
        }
    }
}
