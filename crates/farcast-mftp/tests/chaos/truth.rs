//! True state of the world: the receivers that really have the product, and the senders' reports.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::Geometry;
use farcast_mftp::{ClientId, SenderEvent, SenderOutcome};

/// Rule that a session must keep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rule {
    /// Success implies that every receiver is complete.
    Success,
    /// Every possible delivery is made.
    Delivery,
    /// Every complete receiver is reported as complete.
    Verdict,
    /// Octets out are bounded by octets in.
    Octets,
    /// The memory of an engine is bounded.
    Memory,
    /// Nothing panics, nothing runs without end.
    Panic,
    /// No engine is busy for ever.
    Rest,
}

impl Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::Delivery => "delivery",
            Self::Verdict => "verdict",
            Self::Octets => "octets",
            Self::Memory => "memory",
            Self::Panic => "panic",
            Self::Rest => "rest",
        })
    }
}

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Broken {
    pub(crate) rule: Rule,
    pub(crate) what: String,
}

/// Disk of one receiver, shared by all its lives.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) geometry: Geometry,
    /// Segments that were stored.
    pub(crate) held: Bitmap,
    /// Stored segments with wrong octets.
    pub(crate) spoiled: Bitmap,
    /// Segments of the last checkpoint, which survive a crash.
    checkpoint: Bitmap,
    checkpoint_at: Time,
    /// Interval between checkpoints.
    every: Span,
    /// Blocks with a stored parity symbol that has wrong octets.
    bad_parity: BTreeSet<u32>,
    /// `true` if the product is complete here, its digest matched, and the files have their names.
    pub(crate) verified: bool,
}

impl Disk {
    pub(crate) fn new(geometry: Geometry, every: Span) -> Self {
        let none = Bitmap::new(geometry.segments());
        Self {
            geometry,
            held: none.clone(),
            spoiled: none.clone(),
            checkpoint: none,
            checkpoint_at: Time::ZERO,
            every,
            bad_parity: BTreeSet::new(),
            verified: false,
        }
    }

    pub(crate) fn store(&mut self, now: Time, segments: Run, spoiled: bool) {
        if now.since(self.checkpoint_at) >= self.every {
            (self.checkpoint, self.checkpoint_at) = (self.held.clone(), now);
        }
        self.held.insert_run(segments);
        if spoiled {
            self.spoiled.insert_run(segments);
        } else {
            self.spoiled.remove_run(segments);
        }
    }

    pub(crate) fn store_parity(&mut self, block: u32, spoiled: bool) {
        if spoiled {
            self.bad_parity.insert(block);
        }
    }

    /// Rebuilds the missing segments of `block`. If any input is wrong, so is the result.
    pub(crate) fn decode(&mut self, block: u32) {
        let Some(run) = self.geometry.block_run(block) else { return };
        let bad = self.bad_parity.remove(&block) || self.spoiled.count_in(run) > 0;
        let gaps: Vec<Run> = self.held.gaps_in(run).collect();
        for gap in gaps {
            self.held.insert_run(gap);
            if bad {
                self.spoiled.insert_run(gap);
            }
        }
    }

    /// Loses everything after the last checkpoint in a crash.
    pub(crate) fn crash(&mut self) {
        if !self.verified {
            self.held = self.checkpoint.clone();
        }
    }

    /// Empties the directory.
    pub(crate) fn empty(&mut self) {
        *self = Self::new(self.geometry, self.every);
    }

    /// Drops the wrong segments, and returns them.
    pub(crate) fn drop_spoiled(&mut self) -> Bitmap {
        let spoiled = core::mem::replace(&mut self.spoiled, Bitmap::new(self.geometry.segments()));
        for run in spoiled.iter_runs() {
            self.held.remove_run(run);
        }
        // A checkpoint may contain them too.
        self.checkpoint = self.held.clone();
        spoiled
    }
}

/// Report of one life of the sender about one receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Done,
    Lost,
    Declined,
    Quit,
}

/// Life of the sender, from its start to its end or its crash.
#[derive(Clone, Default, Debug)]
pub(crate) struct Life {
    pub(crate) outcome: Option<SenderOutcome>,
    pub(crate) ended: Option<Time>,
    pub(crate) verdicts: BTreeMap<ClientId, Verdict>,
    /// Honest receivers that took part and had proved their identity.
    pub(crate) accepted: BTreeSet<ClientId>,
}

/// Receiver as the world knows it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) label: String,
    pub(crate) id: ClientId,
    /// Addresses that it answers from, one for each of its lives.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) disk: Disk,
}

/// True state of the whole world.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) sites: Vec<Site>,
    /// Number of the site of each client.
    pub(crate) numbers: BTreeMap<ClientId, usize>,
    pub(crate) lives: Vec<Life>,
    pub(crate) broken: Vec<Broken>,
    /// Story of the session, if it is told.
    pub(crate) story: Option<Vec<(Time, String)>>,
    /// Sites of which the story tells.
    pub(crate) told: BTreeSet<usize>,
}

/// Shared reference to the truth.
pub(crate) type Shared = Rc<RefCell<Truth>>;

impl Truth {
    pub(crate) fn tell(&mut self, now: Time, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push((now, line()));
        }
    }

    /// Returns `true` if the story tells of a site.
    pub(crate) fn tells_of(&self, site: usize) -> bool {
        self.story.is_some() && self.told.contains(&site)
    }

    /// Returns `true` if the story tells of a client. Strangers are always told of.
    pub(crate) fn tells_of_client(&self, client: ClientId) -> bool {
        self.story.is_some() && self.numbers.get(&client).is_none_or(|site| self.told.contains(site))
    }

    /// Tells what happened at a site.
    pub(crate) fn tell_of(&mut self, site: usize, now: Time, line: impl FnOnce() -> String) {
        if self.tells_of(site) {
            let text = format!("{}: {}", self.sites[site].label, line());
            self.tell(now, || text);
        }
    }

    /// Returns the site of a client.
    pub(crate) fn site(&self, client: ClientId) -> Option<&Site> {
        self.numbers.get(&client).map(|&site| &self.sites[site])
    }

    pub(crate) fn breaks(&mut self, now: Time, rule: Rule, what: String) {
        self.tell(now, || format!("BROKEN {rule}: {what}"));
        // One report of each kind is enough.
        if !self.broken.iter().any(|broken| broken.rule == rule && broken.what == what) {
            self.broken.push(Broken { rule, what });
        }
    }

    /// Returns the name of a client.
    pub(crate) fn name(&self, client: ClientId) -> String {
        self.site(client).map_or_else(|| format!("stranger {client}"), |site| site.label.clone())
    }

    /// Records an event of the sender in life `life`. A Done that it believes (`proven`) must be true at that time.
    pub(crate) fn sender_told(&mut self, now: Time, life: usize, event: &SenderEvent, proven: bool) {
        let mut verdict = |client, verdict| {
            self.lives[life].verdicts.insert(client, verdict);
        };
        match event {
            SenderEvent::Registered { client, .. } => {
                self.lives[life].verdicts.remove(client);
            }
            SenderEvent::Done { client, .. } => {
                verdict(*client, Verdict::Done);
                if proven {
                    self.check_done(now, *client);
                }
            }
            SenderEvent::Declined { client, .. } => verdict(*client, Verdict::Declined),
            SenderEvent::Quit { client, .. } => verdict(*client, Verdict::Quit),
            SenderEvent::Lost { client, .. } => verdict(*client, Verdict::Lost),
            SenderEvent::Ended(outcome) => {
                (self.lives[life].outcome, self.lives[life].ended) = (Some(outcome.clone()), Some(now));
            }
            _ => {}
        }
        if subject(event).is_none_or(|client| self.tells_of_client(client)) {
            self.tell(now, || format!("sender: {event:?}"));
        }
    }

    fn check_done(&mut self, now: Time, client: ClientId) {
        let Some(site) = self.site(client) else {
            let what = format!("{client}, who does not exist, is Done");
            return self.breaks(now, Rule::Success, what);
        };
        if !site.disk.verified {
            let (held, all) = (site.disk.held.count(), site.disk.held.len());
            let what = format!("{} is Done with {held} of {all} segments", site.label);
            self.breaks(now, Rule::Success, what);
        }
    }
}

/// Returns the receiver that an event is about.
fn subject(event: &SenderEvent) -> Option<ClientId> {
    match event {
        SenderEvent::Registered { client, .. }
        | SenderEvent::Done { client, .. }
        | SenderEvent::Declined { client, .. }
        | SenderEvent::Quit { client, .. }
        | SenderEvent::Lost { client, .. } => Some(*client),
        _ => None,
    }
}
