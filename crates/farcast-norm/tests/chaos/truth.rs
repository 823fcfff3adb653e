//! True state of the world: the receivers that really have the product, and the sender's reports.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::rc::Rc;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Geometry;
use farcast_norm::{NodeId, SenderOutcome};

/// Rule that a session must keep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rule {
    /// A receiver reported as complete is complete.
    Success,
    /// A complete receiver has the product's octets.
    Content,
    /// Every possible delivery is made, and reported.
    Delivery,
    /// Octets out are bounded.
    Octets,
    /// The memory of an engine is bounded.
    Memory,
    /// Nothing panics, nothing runs without end.
    Panic,
    /// The sender ends.
    Rest,
}

impl Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Octets of one object at its owner.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) geometry: Geometry,
    pub(crate) held: Bitmap,
    /// Stored segments with wrong octets.
    spoiled: Bitmap,
    /// Kept parity symbols by block and number, and `true` for one with wrong octets.
    parity: BTreeMap<(u32, u32), bool>,
    /// `true` if the object is complete here, and its digest matched.
    pub(crate) verified: bool,
}

impl Disk {
    pub(crate) fn new(geometry: Geometry) -> Self {
        let (held, spoiled) = (Bitmap::new(geometry.segments()), Bitmap::new(geometry.segments()));
        Self { geometry, held, spoiled, parity: BTreeMap::new(), verified: false }
    }

    pub(crate) fn store(&mut self, segments: Run, spoiled: bool) {
        self.held.insert_run(segments);
        if spoiled {
            self.spoiled.insert_run(segments);
        } else {
            self.spoiled.remove_run(segments);
        }
    }

    pub(crate) fn store_parity(&mut self, block: u32, symbols: Run, spoiled: bool) {
        self.parity.extend(symbols.segments().map(|symbol| ((block, symbol), spoiled)));
    }

    /// Rebuilds a block. If any input is wrong, so is the result. Returns `false` if there are not enough symbols.
    pub(crate) fn decode(&mut self, block: u32) -> bool {
        let Some(run) = self.geometry.block_run(block) else { return false };
        let parity: Vec<bool> = self.parity.range((block, 0)..(block + 1, 0)).map(|(_, &bad)| bad).collect();
        if self.held.count_in(run) + (parity.len() as u32) < run.count() {
            return false;
        }
        let bad = parity.contains(&true) || self.spoiled.count_in(run) > 0;
        self.parity.retain(|&(of, _), _| of != block);
        let gaps: Vec<Run> = self.held.gaps_in(run).collect();
        for gap in gaps {
            self.store(gap, bad);
        }
        true
    }

    /// Drops the wrong segments, and returns them.
    pub(crate) fn drop_spoiled(&mut self) -> Bitmap {
        let spoiled = core::mem::replace(&mut self.spoiled, Bitmap::new(self.geometry.segments()));
        for run in spoiled.iter_runs() {
            self.held.remove_run(run);
        }
        spoiled
    }
}

/// Receiver as the world knows it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) disk: Disk,
    /// `true` if somebody forged or damaged an acknowledgement in its name.
    pub(crate) forged: bool,
    /// `true` if the last life of the sender reports it as complete.
    pub(crate) acknowledged: bool,
}

/// True state of the whole world.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) sites: Vec<Site>,
    /// End of the sender's last life.
    pub(crate) outcome: Option<SenderOutcome>,
    pub(crate) broken: Vec<(Rule, String)>,
    /// Story of the session, if it is told.
    pub(crate) story: Option<Vec<(Time, String)>>,
}

/// Shared reference to the truth.
pub(crate) type Shared = Rc<RefCell<Truth>>;

/// Receivers of which a story tells.
const TOLD: usize = 8;

impl Truth {
    pub(crate) fn tell(&mut self, now: Time, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push((now, line()));
        }
    }

    /// Tells what happened at a site, unless there are many before it.
    pub(crate) fn tell_of(&mut self, site: usize, now: Time, line: impl FnOnce() -> String) {
        if site < TOLD {
            self.tell(now, || format!("receiver {site}: {}", line()));
        }
    }

    pub(crate) fn breaks(&mut self, now: Time, rule: Rule, what: String) {
        self.tell(now, || format!("BROKEN {rule}: {what}"));
        if !self.broken.iter().any(|broken| broken.0 == rule && broken.1 == what) {
            self.broken.push((rule, what));
        }
    }

    /// Returns the site of a node.
    pub(crate) fn site(&mut self, node: NodeId) -> Option<&mut Site> {
        self.sites.get_mut((node.0 as usize).checked_sub(2)?)
    }
}
