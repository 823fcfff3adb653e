//! Receivers that take part, and the progress of each.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::net::SocketAddr;

use farcast_core::{Span, Time};

use super::survey::Tallies;
use crate::config::Group;
use crate::message::{ClientId, DeclineReason, Nak, Registration};
use crate::proof::Proof;

/// Limits for a receiver that answers without progress: a number of passes, and a multiple of the time for a silent
/// one.
const IDLE_PASSES: u32 = 32;
const IDLE_TIMES: u64 = 5;

/// State of a receiver at the sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// The receiver is invited and has not answered.
    Invited,
    /// The receiver takes part.
    Active,
    /// The receiver does not want the product.
    Declined(DeclineReason),
    /// The receiver has the whole product.
    Done,
    /// The receiver has left, with a reason of [`cancel`](crate::message::cancel) and its text.
    Quit(u32, Option<String>),
    /// The receiver was given up.
    Lost(GivenUp),
}

/// Reason for which a receiver was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GivenUp {
    /// It no longer answers, or makes no progress.
    Silent,
    /// It requested more than it can need.
    Greedy,
    /// The sender's owner [dismissed](super::Sender::dismiss) it.
    Dismissed,
}

/// State of a block at one receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockLack {
    /// Number of missing DTUs, from the latest NAK.
    count: u32,
    /// Pass of that NAK, and the DTUs counted for it as lost on the way, and as not stored.
    pass: u16,
    lost: u32,
    unstored: u32,
    /// State of the block at that NAK, and at the last NAK of an earlier pass.
    now: Account,
    before: Account,
}

/// State of a block at a NAK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Pass of the NAK.
    pub(super) pass: u16,
    /// Parity symbols that had been sent, and those that the receiver held.
    pub(super) symbols: u32,
    held: u16,
}

impl Account {
    /// Returns the number of parity symbols, among the `symbols` sent, that were sent since and that `nak` does not
    /// hold.
    pub(super) fn symbols_lost(self, nak: &Nak, symbols: u32) -> u32 {
        symbols.saturating_sub(self.symbols).saturating_sub(nak.parity_held.saturating_sub(self.held.into()))
    }
}

impl BlockLack {
    fn is_of(&self, pass: u32) -> bool {
        u32::from(self.pass) == pass
    }

    /// Returns the state before `pass`.
    fn before(&self, pass: u32) -> Account {
        if self.is_of(pass) { self.before } else { self.now }
    }

    /// Starts the counts for `pass`.
    fn begin(&mut self, pass: u32) {
        if !self.is_of(pass) {
            let pass = u16::try_from(pass).unwrap_or(u16::MAX);
            *self = Self { count: self.count, pass, before: self.now, now: self.now, lost: 0, unstored: 0 };
        }
    }
}

/// Receiver as the sender knows it.
#[expect(clippy::struct_excessive_bools, reason = "each says something else of it")]
#[derive(Clone, Debug)]
pub struct Member {
    /// Name that it gave, or by which it was invited, or its id.
    pub label: String,
    /// Address of its last answer.
    pub address: Option<SocketAddr>,
    /// State of the receiver.
    pub state: MemberState,
    /// Number of segments that it held when it registered.
    pub held: u32,
    /// DTUs that were sent to it and that it requested afterwards, once for each time they were sent: they did not
    /// reach it.
    pub lost_dtus: u64,
    /// DTUs that reached it and that it reported as not stored.
    pub unstored_dtus: u64,
    /// Number of NAK messages from it.
    pub naks: u64,
    /// Time at which its Done came.
    pub done_at: Option<Time>,
    /// Time of the last message from it that was accepted.
    pub heard_at: Option<Time>,
    /// `true` if it compares its files with the list of files, and has not yet reported what it lacks.
    pub(super) compares: bool,
    /// `true` if it was complete in an earlier run of the same transfer, so that the start does not wait for it.
    pub remembered: bool,
    /// Address of the receiver whose name this one has taken over. That receiver had proved itself, was incomplete, and
    /// fell silent.
    pub replaced: Option<SocketAddr>,
    /// `true` if it is left behind for now, because the others would wait for it too long.
    pub loose: bool,
    pub(super) name: Option<String>,
    /// Nonce of its registration, by which a restart is recognised. `None` for a receiver without proofs.
    pub(super) nonce: Option<Proof>,
    /// `true` if it has proved its address.
    pub(super) validated: bool,
    /// Time at which the last token went to it.
    pub(super) granted: Option<Time>,
    /// Bytes that it reported it can buffer.
    pub(super) receive_buffer: Option<u32>,
    pub(super) missing: BTreeMap<u32, BlockLack>,
    /// Number of segments in all of `missing`, now and at the start of the previous pass.
    pub(super) lacks: u64,
    pub(super) lacked: u64,
    /// Number of passes in a row after which it lacks no less.
    pub(super) idle_passes: u32,
    /// Number of NAKs in a row that report none of many parity symbols as held.
    pub(super) refusals: u32,
    /// Number of DTUs that were scheduled on its request.
    pub(super) charged: u64,
    /// `true` if it requested more than it can need, and is no longer heard.
    pub(super) barred: bool,
    pub(super) silent_rounds: u32,
    pub(super) heard: bool,
    /// `true` if the last request asked it, too.
    pub(super) asked: bool,
    /// Time since which requests that it must answer are unanswered.
    pub(super) silent_since: Option<Time>,
    /// Time of its last progress.
    pub(super) progress_at: Time,
    /// Number of times that it was left behind.
    pub(super) loosened: u32,
    /// Number of announcements or Completions that have carried its confirmation.
    pub(super) confirmations: u32,
    /// Last flight entry that it acknowledged (see [`flight`](super::flight)).
    pub(super) acked: u64,
    /// First block that it may have heard completely. DTUs that left before it took part were not lost on the way.
    pub(super) since_block: u32,
    /// Losses of the first pass.
    pub(super) tallies: Tallies,
    /// `true` if its report of losses counts already.
    pub(super) told_losses: bool,
    /// Last pass in which it requested withdrawn segments.
    pub(super) bereft: Option<u32>,
    /// Registration under its id from another address, while its old address is asked for a sign of life; or one that
    /// came once data ran, until it is proved.
    pub(super) contender: Option<(SocketAddr, Registration)>,
    /// Refusal without proofs, from an unproved address.
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
            heard_at: None,
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
            asked: true,
            silent_since: None,
            progress_at: Time::ZERO,
            loosened: 0,
            confirmations: 0,
            acked: 0,
            since_block: 0,
            tallies: Tallies::default(),
            told_losses: false,
            bereft: None,
            contender: None,
            refusal: None,
        }
    }

    /// Returns the number of segments that its latest NAKs report as missing.
    pub fn missing(&self) -> u64 {
        self.lacks
    }

    /// Returns `true` if it proves its messages; otherwise they are believed, as in the draft.
    pub fn is_proven(&self) -> bool {
        self.validated && self.nonce.is_some()
    }

    /// Records the number of missing DTUs in its latest NAK for `block`. Returns `true` if it is the first NAK for it.
    pub(super) fn note_missing(&mut self, block: u32, count: u32) -> bool {
        let is_first = !self.missing.contains_key(&block);
        let lack = self.missing.entry(block).or_default();
        self.lacks = self.lacks + u64::from(count) - u64::from(lack.count);
        lack.count = count;
        is_first
    }

    /// Returns the state of the block of `nak` at this receiver's last NAK of an earlier pass. DTUs that were sent
    /// before it took part, and all `symbols` parity symbols then, count as received.
    pub(super) fn account(&self, nak: &Nak, symbols: u32) -> Account {
        let account = self.missing.get(&nak.block).map_or(Account::default(), |lack| lack.before(nak.pass));
        if account.pass == 0 && self.since_block > nak.block {
            return Account { pass: 1, symbols, held: 0 };
        }
        account
    }

    /// Records that `lost` of the DTUs of the block of `nak`, and of its `symbols` parity symbols, are missing.
    /// Repeated NAKs of a pass count once. Called after [`note_missing`](Self::note_missing).
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

    /// Drops its reports of missing DTUs.
    pub(super) fn forget_missing(&mut self) {
        self.missing.clear();
        (self.lacks, self.lacked, self.idle_passes) = (0, 0, 0);
    }

    /// Returns the number of DTUs that are known to have been sent to it: the lost ones, and the new ones among the
    /// `has` segments that it has in all.
    pub fn sent_dtus(&self, has: u32) -> u64 {
        self.lost_dtus + u64::from(has.saturating_sub(self.held))
    }

    /// Returns `true` if it takes part, or was given up: it may come back, if it is asked.
    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.state, MemberState::Active | MemberState::Lost(_)) || self.is_pending()
    }

    /// Returns `true` if it was invited, and has registered without a proof since.
    pub(super) fn is_pending(&self) -> bool {
        self.state == MemberState::Invited && self.contender.is_some()
    }

    /// Returns `true` if it has made no progress for too long, where members may be silent for `silence`.
    pub(super) fn is_idle(&self, now: Time, silence: Span) -> bool {
        self.idle_passes >= IDLE_PASSES
            && now.since(self.progress_at) >= silence.max(Span::from_secs(1)) * IDLE_TIMES
    }

    /// Returns `true` if it still takes part.
    pub fn is_active(&self) -> bool {
        self.state == MemberState::Active
    }
}

/// Receivers of a transmission, in the order of their ids, with counts of the states that are often needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    all: BTreeMap<ClientId, Member>,
    active: u32,
    /// Number of receivers that have the whole product.
    complete: u32,
    /// Number of receivers that were invited, have not answered, and are waited for.
    awaited: u32,
    /// Number of receivers that were invited, have not answered, and were complete in an earlier run.
    remembered: u32,
}

impl Members {
    /// Creates the members with which a group begins.
    pub(super) fn of(group: &Group) -> Self {
        let mut members = Self::default();
        if let Group::Closed(invited) = group {
            for receiver in invited {
                members.insert(receiver.id, Member::new(receiver.label.clone(), MemberState::Invited));
            }
        }
        members
    }

    /// Returns the number of members that take part.
    pub(super) fn active(&self) -> u32 {
        self.active
    }

    /// Returns the number of members that have the whole product.
    pub(super) fn complete(&self) -> u32 {
        self.complete
    }

    /// Returns the number of members that were invited, were complete in an earlier run, and have not been heard.
    pub(super) fn remembered(&self) -> u32 {
        self.remembered
    }

    /// Returns the number of members that were invited and are waited for.
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

    /// Changes the state of `client`.
    pub(super) fn change(&mut self, client: ClientId, state: MemberState) {
        let Some(mut member) = self.all.remove(&client) else { return };
        self.count(&member, false);
        member.state = state;
        self.count(&member, true);
        self.all.insert(client, member);
    }

    /// Resets `client`, whose claim nobody has proved, to an invited receiver.
    pub(super) fn disown(&mut self, client: ClientId) {
        self.change(client, MemberState::Invited);
        if let Some(member) = self.all.get_mut(&client) {
            member.address = None;
        }
    }

    /// Records that `client` was complete in an earlier run.
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
            MemberState::Done => &mut self.complete,
            MemberState::Invited if !member.remembered => &mut self.awaited,
            MemberState::Invited => &mut self.remembered,
            _ => return,
        };
        *count = if comes { *count + 1 } else { *count - 1 };
    }

    /// Returns a member for changes of anything but its state.
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

/// Returns the label of a receiver that registers uninvited.
pub(super) fn label(id: ClientId, name: Option<&String>, source: SocketAddr) -> String {
    match name {
        Some(name) => name.clone(),
        None if ClientId::from_address(source.ip()) == id => source.ip().to_string(),
        None => id.to_string(),
    }
}
