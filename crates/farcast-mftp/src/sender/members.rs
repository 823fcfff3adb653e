//! Who takes part, and how far each has come.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::net::SocketAddr;

use farcast_core::Time;

use super::survey::Tallies;
use crate::config::Group;
use crate::message::{ClientId, DeclineReason, Nak, Registration};
use crate::proof::Proof;

/// How a receiver stands with the sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// Invited, has not answered.
    Invited,
    /// Takes part.
    Active,
    /// Does not want the product.
    Declined(DeclineReason),
    /// Has everything.
    Done,
    /// Has left: one of [`cancel`](crate::message::cancel), and its words.
    Quit(u32, Option<String>),
    /// Was given up.
    Lost(GivenUp),
}

/// Why a receiver was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GivenUp {
    /// It no longer answers, or to no avail.
    Silent,
    /// It asked for more than anyone can need.
    Greedy,
    /// The sender's owner does not want it any more: [`dismiss`](super::Sender::dismiss).
    Dismissed,
}

/// What a receiver lacks of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lack {
    /// DTUs, by its latest NAK.
    count: u32,
    /// The pass of that, and what was counted of it as lost on the way, and as not stored.
    pass: u16,
    lost: u32,
    unstored: u32,
    /// State of the block by that NAK, and by the last NAK of an earlier pass.
    now: Account,
    before: Account,
}

/// State of a block at a NAK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// The pass of the NAK.
    pub(super) pass: u16,
    /// Parity symbols that had been sent, and that the receiver held.
    pub(super) symbols: u32,
    held: u16,
}

impl Account {
    /// Parity symbols of `symbols` that were sent since and that `nak` does not hold.
    pub(super) fn symbols_lost(self, nak: &Nak, symbols: u32) -> u32 {
        symbols.saturating_sub(self.symbols).saturating_sub(nak.parity_held.saturating_sub(self.held.into()))
    }
}

impl Lack {
    fn is_of(&self, pass: u32) -> bool {
        u32::from(self.pass) == pass
    }

    /// State before `pass`.
    fn before(&self, pass: u32) -> Account {
        if self.is_of(pass) { self.before } else { self.now }
    }

    /// Begins to count what `pass` brings.
    fn begin(&mut self, pass: u32) {
        if !self.is_of(pass) {
            let pass = u16::try_from(pass).unwrap_or(u16::MAX);
            *self = Self { count: self.count, pass, before: self.now, now: self.now, lost: 0, unstored: 0 };
        }
    }
}

/// A receiver as the sender knows it.
#[expect(clippy::struct_excessive_bools, reason = "each says something else of it")]
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name as it gave it or as it was invited, or its id.
    pub label: String,
    /// Where it last answered from.
    pub address: Option<SocketAddr>,
    /// How it stands.
    pub state: MemberState,
    /// Segments that it held when it registered.
    pub held: u32,
    /// DTUs that were sent to it and that it asked for afterwards, once for each time they were sent: those that did not
    /// reach it.
    pub lost_dtus: u64,
    /// DTUs that reached it and that it did not store, as it says.
    pub unstored_dtus: u64,
    /// NAK messages that came from it.
    pub naks: u64,
    /// When its Done came.
    pub done_at: Option<Time>,
    /// Whether it has something to compare the list of files with, and has not yet said what it lacks.
    pub(super) compares: bool,
    /// Whether an earlier run of the same transfer ended with its Done: it is not waited for to begin.
    pub remembered: bool,
    /// Whose name this one has taken over: a receiver that had proved itself, fell silent, and had not everything.
    pub replaced: Option<SocketAddr>,
    /// Whether it is left behind for now, because the others would wait for it too long.
    pub loose: bool,
    pub(super) name: Option<String>,
    /// What its registration asked to be repeated: who starts again asks the same. `None` for one that has no proofs.
    pub(super) nonce: Option<Proof>,
    /// Whether it has shown that it is where it says.
    pub(super) validated: bool,
    /// When the last token went to it.
    pub(super) granted: Option<Time>,
    /// Bytes that it said it can buffer.
    pub(super) receive_buffer: Option<u32>,
    pub(super) missing: BTreeMap<u32, Lack>,
    /// Segments in all of `missing`, and when the pass before began.
    pub(super) lacks: u64,
    pub(super) lacked: u64,
    /// Passes in a row after which it lacks no less.
    pub(super) idle_passes: u32,
    /// NAKs in a row that say that it holds none of many parity symbols.
    pub(super) refusals: u32,
    /// DTUs that were scheduled because it asked.
    pub(super) charged: u64,
    /// It asked for more than anyone can need, and is not heard any more.
    pub(super) barred: bool,
    pub(super) silent_rounds: u32,
    pub(super) heard: bool,
    /// Since when requests that it has to answer are unanswered.
    pub(super) silent_since: Option<Time>,
    /// When it last came further.
    pub(super) progress_at: Time,
    /// How often it was left behind.
    pub(super) loosened: u32,
    /// Announcements or Completions that have carried its confirmation.
    pub(super) confirmations: u32,
    /// The last flight entry that it acknowledged (see [`flight`](super::flight)).
    pub(super) acked: u64,
    /// The first block that it may have heard all of: what left before it took part was not lost on the way.
    pub(super) since_block: u32,
    /// What it lost of the first pass.
    pub(super) tallies: Tallies,
    /// The last pass in which it asked for what is not sent any more.
    pub(super) bereft: Option<u32>,
    /// A registration under its id from another address, while it is asked whether it is still there.
    pub(super) contender: Option<(SocketAddr, Registration)>,
    /// A refusal without proofs, from where nobody has shown to be.
    pub(super) refusal: Option<(SocketAddr, DeclineReason)>,
}

impl Member {
    pub(super) fn new(label: String, state: MemberState) -> Self {
        Self {
            label,
            address: None,
            state,
            held: 0,
            lost_dtus: 0,
            unstored_dtus: 0,
            naks: 0,
            done_at: None,
            compares: false,
            remembered: false,
            replaced: None,
            loose: false,
            name: None,
            nonce: None,
            validated: false,
            granted: None,
            receive_buffer: None,
            missing: BTreeMap::new(),
            lacks: 0,
            lacked: 0,
            idle_passes: 0,
            refusals: 0,
            charged: 0,
            barred: false,
            silent_rounds: 0,
            heard: true,
            silent_since: None,
            progress_at: Time::ZERO,
            loosened: 0,
            confirmations: 0,
            acked: 0,
            since_block: 0,
            tallies: Tallies::default(),
            bereft: None,
            contender: None,
            refusal: None,
        }
    }

    /// Segments that its latest NAKs say are missing.
    pub fn missing(&self) -> u64 {
        self.lacks
    }

    /// Whether it proves what it says; otherwise it is believed, as in the draft.
    pub fn is_proven(&self) -> bool {
        self.validated && self.nonce.is_some()
    }

    /// Notes what its latest NAK for `block` says is missing; whether it is the first for it.
    pub(super) fn note_missing(&mut self, block: u32, count: u32) -> bool {
        let is_first = !self.missing.contains_key(&block);
        let lack = self.missing.entry(block).or_default();
        self.lacks = self.lacks + u64::from(count) - u64::from(lack.count);
        lack.count = count;
        is_first
    }

    /// State of the block of `nak` at this receiver's last NAK of an earlier pass. DTUs, and of `symbols` parity symbols all,
    /// that were sent before it took part count as received.
    pub(super) fn account(&self, nak: &Nak, symbols: u32) -> Account {
        let account = self.missing.get(&nak.block).map_or(Account::default(), |lack| lack.before(nak.pass));
        if account.pass == 0 && self.since_block > nak.block {
            return Account { pass: 1, symbols, held: 0 };
        }
        account
    }

    /// Counts that `lost` of what was sent of the block of `nak`, and of its `symbols` parity symbols, are missing there.
    /// Repeated NAKs of a pass count once. It follows [`note_missing`](Self::note_missing).
    pub(super) fn note_lost(&mut self, nak: &Nak, lost: u32, symbols: u32) {
        let lack = self.missing.entry(nak.block).or_default();
        let (lost, unstored) = (lost.saturating_sub(nak.unstored), lost.min(nak.unstored));
        lack.begin(nak.pass);
        self.lost_dtus += u64::from(lost.saturating_sub(lack.lost));
        self.unstored_dtus += u64::from(unstored.saturating_sub(lack.unstored));
        (lack.lost, lack.unstored) = (lack.lost.max(lost), lack.unstored.max(unstored));
        let held = u16::try_from(nak.parity_held).unwrap_or(u16::MAX);
        lack.now = Account { pass: lack.pass, symbols: lack.now.symbols.max(symbols), held };
    }

    /// Forgets what it said is missing.
    pub(super) fn forget_missing(&mut self) {
        self.missing.clear();
        (self.lacks, self.lacked, self.idle_passes) = (0, 0, 0);
    }

    /// DTUs that are known to have been sent to it: those that did not reach it, and those that brought what it has, of
    /// which `has` segments are there in all.
    pub fn sent_dtus(&self, has: u32) -> u64 {
        self.lost_dtus + u64::from(has.saturating_sub(self.held))
    }

    /// Whether it still takes part.
    pub fn is_active(&self) -> bool {
        self.state == MemberState::Active
    }
}

/// The receivers of a transmission, in the order of their ids, and how many are in the states that are often asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    all: BTreeMap<ClientId, Member>,
    active: u32,
    /// Invited, have not answered, and are waited for.
    awaited: u32,
    /// Invited, have not answered, and had everything in an earlier run.
    remembered: u32,
}

impl Members {
    /// The members that a group begins with.
    pub(super) fn of(group: &Group) -> Self {
        let mut members = Self::default();
        if let Group::Closed(invited) = group {
            for receiver in invited {
                members.insert(receiver.id, Member::new(receiver.label.clone(), MemberState::Invited));
            }
        }
        members
    }

    /// Those who take part.
    pub(super) fn active(&self) -> u32 {
        self.active
    }

    /// Those who were invited, had everything in an earlier run, and have not been heard.
    pub(super) fn remembered(&self) -> u32 {
        self.remembered
    }

    /// Those who were invited and are waited for.
    pub(super) fn awaited(&self) -> u32 {
        self.awaited
    }

    pub(super) fn insert(&mut self, client: ClientId, member: Member) {
        self.remove(client);
        self.count(&member, true);
        self.all.insert(client, member);
    }

    pub(super) fn remove(&mut self, client: ClientId) {
        if let Some(member) = self.all.remove(&client) {
            self.count(&member, false);
        }
    }

    /// Puts `client` into `state`.
    pub(super) fn change(&mut self, client: ClientId, state: MemberState) {
        let Some(mut member) = self.all.remove(&client) else { return };
        self.count(&member, false);
        member.state = state;
        self.count(&member, true);
        self.all.insert(client, member);
    }

    /// Puts `client`, for whom nobody has spoken, back among those who were invited.
    pub(super) fn disown(&mut self, client: ClientId) {
        self.change(client, MemberState::Invited);
        if let Some(member) = self.all.get_mut(&client) {
            member.address = None;
        }
    }

    /// Notes that `client` had everything once.
    pub(super) fn remember(&mut self, client: ClientId) {
        let Some(mut member) = self.all.remove(&client) else { return };
        self.count(&member, false);
        member.remembered = true;
        self.count(&member, true);
        self.all.insert(client, member);
    }

    fn count(&mut self, member: &Member, comes: bool) {
        let count = match member.state {
            MemberState::Active => &mut self.active,
            MemberState::Invited if !member.remembered => &mut self.awaited,
            MemberState::Invited => &mut self.remembered,
            _ => return,
        };
        *count = if comes { *count + 1 } else { *count - 1 };
    }

    /// A member, to change everything but its state.
    pub(super) fn get_mut(&mut self, client: ClientId) -> Option<&mut Member> {
        self.all.get_mut(&client)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.all.values_mut()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&ClientId, &mut Member)> {
        self.all.iter_mut()
    }
}

impl core::ops::Deref for Members {
    type Target = BTreeMap<ClientId, Member>;
    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

/// What to call a receiver that registers uninvited.
pub(super) fn label(id: ClientId, name: Option<&String>, source: SocketAddr) -> String {
    match name {
        Some(name) => name.clone(),
        None if ClientId::from_address(source.ip()) == id => source.ip().to_string(),
        None => id.to_string(),
    }
}
