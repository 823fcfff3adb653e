//! Record of the sessions that a receiver has heard, so that a recording of them is not accepted again.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::wire::SessionId;

/// Maximum number of sessions of one sender, and of senders, in the record.
const SESSIONS: usize = 64;
const SENDERS: usize = 4096;
/// Maximum number of scopes of one sender for which the record keeps the latest session.
const SCOPES: usize = 256;

const TITLE: &str = "farcast-sessions-1";

/// Record of the sessions that a receiver has heard of each sender.
///
/// A closed session is not heard again. Neither is a session that ended because a later one was heard. Beyond 64
/// sessions of one sender, the earliest is forgotten, closed ones before open ones. A session that is not in the record
/// is heard only if it began later than all forgotten ones. The latest session of each of up to 256 scopes is always
/// kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History(BTreeMap<[u8; 32], Past>);

/// Record of one sender.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Past {
    /// Start of the latest session that was forgotten, in milliseconds since 1970.
    forgotten_ms: Option<u64>,
    /// Start and identifier of the latest session of each scope.
    last: BTreeMap<Scope, (u64, SessionId)>,
    sessions: Vec<Remembered>,
}

/// Session that a KEYS datagram announces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionStart {
    pub(crate) session: SessionId,
    pub(crate) began_ms: u64,
    pub(crate) scope: Scope,
    /// `true` if the session is over once its sender has begun another one.
    pub(crate) alone: bool,
}

/// Position from which a session may be heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) epoch: u8,
    pub(crate) counter: u64,
    /// `true` if its sender has begun another session since.
    pub(crate) followed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Remembered {
    session: SessionId,
    began_ms: u64,
    scope: Scope,
    alone: bool,
    closed: bool,
    /// Last epoch, and the highest counter heard of it.
    epoch: u8,
    counter: u64,
}

impl History {
    /// Checks if a receiver that takes part in sessions for `scopes` may hear a session. Returns the position from
    /// which it may hear it.
    pub(crate) fn admit(
        &self,
        signing: &[u8; 32],
        begun: SessionStart,
        scopes: &[Scope],
    ) -> Result<Admitted, Refusal> {
        let SessionStart { session, began_ms, alone, .. } = begun;
        let Some(past) = self.0.get(signing) else {
            return if self.0.len() < SENDERS { Ok(Admitted::default()) } else { Err(Refusal::Limit) };
        };
        let followed = scopes.iter().any(|&scope| past.is_followed(begun, scope));
        match past.sessions.iter().find(|one| one.session == session) {
            Some(one) if one.closed => Err(Refusal::OldSession),
            _ if alone && followed => Err(Refusal::EarlierSession),
            Some(one) => Ok(Admitted { epoch: one.epoch, counter: one.counter, followed }),
            None if past.forgotten_ms.is_some_and(|forgotten| began_ms <= forgotten) => {
                Err(Refusal::OldSession)
            }
            None => Ok(Admitted { followed, ..Admitted::default() }),
        }
    }

    /// Adds a session that is heard.
    pub(crate) fn began(&mut self, signing: &[u8; 32], begun: SessionStart) {
        let SessionStart { session, began_ms, scope, alone } = begun;
        let past = self.0.entry(*signing).or_default();
        if past.sessions.iter().any(|one| one.session == session) {
            return;
        }
        if past.sessions.len() >= SESSIONS {
            // A closed session is dropped before one that may continue.
            let earliest =
                past.sessions.iter().enumerate().min_by_key(|(_, one)| (!one.closed, one.began_ms));
            if let Some(at) = earliest.map(|(at, _)| at) {
                let gone = past.sessions.swap_remove(at);
                past.forgotten_ms = past.forgotten_ms.max(Some(gone.began_ms));
            }
        }
        past.sessions.push(Remembered {
            session,
            began_ms,
            scope,
            alone,
            closed: false,
            epoch: 0,
            counter: 0,
        });
        past.note_last(scope, began_ms, session);
    }

    /// Updates the epoch and counter up to which a session was heard.
    pub(crate) fn heard(&mut self, signing: &[u8; 32], session: SessionId, epoch: u8, counter: u64) {
        if let Some(one) = self.find(signing, session) {
            (one.epoch, one.counter) = (epoch, counter);
        }
    }

    /// Marks a session as over for this receiver.
    pub(crate) fn close(&mut self, signing: &[u8; 32], session: SessionId) {
        if let Some(one) = self.find(signing, session) {
            one.closed = true;
        }
    }

    /// Merges the record of another receiver with the same key, so that each remembers for both.
    pub fn merge(&mut self, other: &Self) {
        for (signing, past) in &other.0 {
            if !self.0.contains_key(signing) && self.0.len() >= SENDERS {
                continue;
            }
            for one in &past.sessions {
                let Remembered { session, began_ms, scope, alone, .. } = *one;
                self.began(signing, SessionStart { session, began_ms, scope, alone });
                let Some(here) = self.find(signing, one.session) else { continue };
                (here.epoch, here.counter) = (here.epoch, here.counter).max((one.epoch, one.counter));
                here.closed |= one.closed;
            }
            let here = self.0.entry(*signing).or_default();
            here.forgotten_ms = here.forgotten_ms.max(past.forgotten_ms);
            for (&scope, &(began_ms, session)) in &past.last {
                here.note_last(scope, began_ms, session);
            }
        }
    }

    fn find(&mut self, signing: &[u8; 32], session: SessionId) -> Option<&mut Remembered> {
        self.0.get_mut(signing)?.sessions.iter_mut().find(|one| one.session == session)
    }

    /// Encodes the record as text, one line for each session.
    pub fn to_text(&self) -> String {
        let mut text = format!("{TITLE}\n");
        for (signing, past) in &self.0 {
            // Writing to a string does not fail.
            let _ = write!(text, "sender ");
            let _ = signing.iter().try_for_each(|octet| write!(text, "{octet:02x}"));
            let _ = past.forgotten_ms.iter().try_for_each(|ms| write!(text, " forgotten {ms}"));
            text.push('\n');
            for (scope, (ms, session)) in &past.last {
                let _ = writeln!(text, "last {:016x} {ms} {session}", u64::from_be_bytes(scope.0));
            }
            for one in &past.sessions {
                let state = if one.closed { "closed" } else { "open" };
                let _ = write!(
                    text,
                    "session {} {} {state} {} {} {:016x}",
                    one.session,
                    one.began_ms,
                    one.epoch,
                    one.counter,
                    u64::from_be_bytes(one.scope.0)
                );
                if one.alone {
                    text.push_str(" alone");
                }
                text.push('\n');
            }
        }
        text
    }

    /// Decodes the text of [`to_text`](Self::to_text); `None` for any other text.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut history = Self::default();
        if lines.next() != Some(TITLE) {
            return None;
        }
        let mut sender = None;
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                ["sender", signing, ref rest @ ..] if history.0.len() < SENDERS => {
                    let forgotten_ms = match rest {
                        [] => None,
                        ["forgotten", ms] => Some(ms.parse().ok()?),
                        _ => return None,
                    };
                    let signing = hex(signing)?;
                    history.0.entry(signing).or_default().forgotten_ms = forgotten_ms;
                    sender = Some(signing);
                }
                ["last", scope, ms, session] => {
                    let past = history.0.get_mut(&sender?).filter(|past| past.last.len() < SCOPES)?;
                    past.last.insert(Scope(hex(scope)?), (ms.parse().ok()?, SessionId(hex(session)?)));
                }
                ["session", session, began, state, epoch, counter, scope, ref rest @ ..] => {
                    let past = history.0.get_mut(&sender?).filter(|past| past.sessions.len() < SESSIONS)?;
                    let one = Remembered {
                        session: SessionId(hex(session)?),
                        began_ms: began.parse().ok()?,
                        scope: Scope(hex(scope)?),
                        alone: match rest {
                            [] => false,
                            ["alone"] => true,
                            _ => return None,
                        },
                        closed: match state {
                            "closed" => true,
                            "open" => false,
                            _ => return None,
                        },
                        epoch: epoch.parse().ok()?,
                        counter: counter.parse().ok()?,
                    };
                    past.sessions.push(one);
                    // A session without a later one in the text is itself the latest of its scope.
                    if past.last.len() < SCOPES {
                        past.note_last(one.scope, one.began_ms, one.session);
                    }
                }
                _ => return None,
            }
        }
        Some(history)
    }
}

impl Past {
    /// Returns `true` if a session of `scope` that began later is known. If two sessions began at the same time, the
    /// known one counts as the later.
    fn is_followed(&self, begun: SessionStart, scope: Scope) -> bool {
        match self.last.get(&scope) {
            Some(&(ms, session)) => session != begun.session && ms >= begun.began_ms,
            // A later session may be among those whose scope was dropped.
            None => self.last.len() >= SCOPES && self.forgotten_ms >= Some(begun.began_ms),
        }
    }

    /// Records that a session of `scope` began at `began_ms`. It closes all earlier sessions of the scope that are
    /// alone.
    fn note_last(&mut self, scope: Scope, began_ms: u64, session: SessionId) {
        let last = self.last.entry(scope).or_insert((began_ms, session));
        if last.0 < began_ms {
            *last = (began_ms, session);
        }
        let last_ms = last.0;
        for one in self.sessions.iter_mut().filter(|one| one.scope == scope && one.alone) {
            one.closed |= one.began_ms < last_ms;
        }
        if self.last.len() > SCOPES {
            let earliest = self.last.iter().min_by_key(|(_, last)| last.0).map(|(&scope, _)| scope);
            if let Some((ms, _)) = earliest.and_then(|scope| self.last.remove(&scope)) {
                self.forgotten_ms = self.forgotten_ms.max(Some(ms));
            }
        }
    }
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut octets = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (n, octet) in octets.iter_mut().enumerate() {
        *octet = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: [u8; 32] = [1; 32];

    fn session(n: u8) -> SessionId {
        SessionId([n; 16])
    }

    fn at(epoch: u8, counter: u64) -> Admitted {
        Admitted { epoch, counter, followed: false }
    }

    fn begun(n: u8, began_ms: u64) -> SessionStart {
        SessionStart { session: session(n), began_ms, scope: Scope([0; 8]), alone: false }
    }

    #[test]
    fn what_was_followed_by_another_is_over() {
        let of = |n: u8, scope| SessionStart { scope: Scope([scope; 8]), alone: true, ..begun(n, n.into()) };
        let apart = |n, scope| SessionStart { alone: false, ..of(n, scope) };
        let mut history = History::default();
        for one in [of(5, 1), of(7, 1), of(3, 2), apart(9, 3)] {
            history.began(&ANN, one);
        }
        // A receiver of sessions for scopes 1 and 3.
        let admitted = |history: &History, begun| history.admit(&ANN, begun, &[Scope([1; 8]), Scope([3; 8])]);
        assert_eq!(admitted(&history, of(5, 1)), Err(Refusal::OldSession), "another has begun since");
        for earlier in [of(6, 1), of(7, 1), of(8, 1), of(8, 3), of(2, 1)] {
            assert_eq!(admitted(&history, earlier), Err(Refusal::EarlierSession), "{earlier:?}");
        }
        assert_eq!(admitted(&history, apart(8, 1)), Ok(Admitted { followed: true, ..at(0, 0) }));
        assert_eq!(
            admitted(&history, SessionStart { session: session(8), ..of(9, 1) }),
            Err(Refusal::EarlierSession)
        );
        for last in [of(10, 1), apart(9, 3), apart(10, 1)] {
            assert_eq!(admitted(&history, last), Ok(at(0, 0)), "{last:?}");
        }
        // The record says nothing about other scopes, or about another sender.
        assert_eq!(history.admit(&ANN, of(7, 1), &[Scope([1; 8])]), Ok(at(0, 0)));
        assert_eq!(history.admit(&ANN, of(2, 4), &[Scope([4; 8])]), Ok(at(0, 0)));
        assert_eq!(history.admit(&[2; 32], of(1, 1), &[Scope([1; 8])]), Ok(at(0, 0)));
        // The latest session stays the latest, whatever begins, and after a merge.
        let mut there = History::default();
        there.began(&ANN, of(6, 1));
        there.merge(&history);
        history.merge(&there);
        let for_one = |history: &History, begun| history.admit(&ANN, begun, &[Scope([1; 8])]);
        for one in [&history, &there] {
            assert_eq!(for_one(one, of(6, 1)), Err(Refusal::OldSession));
            assert_eq!(for_one(one, of(7, 1)), Ok(at(0, 0)));
        }
        for n in 100..200 {
            history.began(&ANN, of(n, 9));
        }
        assert_eq!(for_one(&history, of(2, 1)), Err(Refusal::EarlierSession));
        assert_eq!(for_one(&history, of(7, 1)), Ok(at(0, 0)), "rather what is over is forgotten");
        assert_eq!(History::from_text(&history.to_text()), Some(history));
    }

    #[test]
    fn what_began_last_is_known_whatever_is_forgotten() {
        let of = |n: u8, scope| SessionStart { scope: Scope([scope; 8]), ..begun(n, n.into()) };
        let here = [Scope([1; 8])];
        for others in [1, 2] {
            let mut history = History::default();
            history.began(&ANN, of(200, 1));
            history.close(&ANN, session(200));
            // Missed sessions that are replayed in ascending order displace the closed one.
            for n in 1..=64 {
                history.began(&ANN, of(n, others));
            }
            assert_eq!(history.0[&ANN].forgotten_ms, Some(200));
            let history = History::from_text(&history.to_text()).expect("what was written");
            let mut other = History::default();
            other.merge(&history);
            for history in [history, other] {
                for n in 1..=64 {
                    let admitted = history.admit(&ANN, of(n, others), &here);
                    assert_eq!(admitted, Ok(Admitted { followed: true, ..at(0, 0) }), "{n}");
                }
                assert_eq!(history.admit(&ANN, of(200, 1), &here), Err(Refusal::OldSession));
                assert_eq!(history.admit(&ANN, of(201, 1), &here), Ok(at(0, 0)));
            }
        }
    }

    #[test]
    fn what_began_last_is_known_of_a_text_that_does_not_tell_it() {
        let mut history = History::default();
        history.began(&ANN, begun(7, 70));
        history.began(&ANN, begun(5, 50));
        let text: Vec<_> = history.to_text().lines().map(String::from).collect();
        let without = text.iter().filter(|line| !line.starts_with("last "));
        let without: Vec<_> = without.map(String::as_str).collect();
        assert!(without.len() < text.len());
        assert_eq!(History::from_text(&without.join("\n")), Some(history));
    }

    #[test]
    fn scopes_beyond_what_is_remembered_are_taken_for_followed() {
        let of = |n: u64| SessionStart { scope: Scope(n.to_be_bytes()), ..begun(1, n) };
        let mut history = History::default();
        for n in 0..=SCOPES as u64 {
            let name = SessionId(u128::from(n).to_be_bytes());
            history.began(&ANN, SessionStart { session: name, ..of(n) });
        }
        assert_eq!(history.0[&ANN].last.len(), SCOPES);
        let forgotten = history.0[&ANN].forgotten_ms.expect("some were");
        let admitted = |ms| history.admit(&ANN, SessionStart { began_ms: ms, ..of(0) }, &[of(0).scope]);
        assert_eq!(admitted(forgotten), Err(Refusal::OldSession));
        assert_eq!(admitted(forgotten + 1), Ok(at(0, 0)));
        assert_eq!(History::from_text(&history.to_text()), Some(history));
    }

    #[test]
    fn what_was_closed_stays_closed() {
        let mut history = History::default();
        assert_eq!(history.admit(&ANN, begun(1, 10), &[]), Ok(at(0, 0)));
        history.began(&ANN, begun(1, 10));
        history.heard(&ANN, session(1), 2, 77);
        assert_eq!(history.admit(&ANN, begun(1, 10), &[]), Ok(at(2, 77)));
        history.close(&ANN, session(1));
        assert_eq!(history.admit(&ANN, begun(1, 10), &[]), Err(Refusal::OldSession));
        assert_eq!(history.admit(&[2; 32], begun(1, 10), &[]), Ok(at(0, 0)), "another sender's");
        assert_eq!(
            history.admit(&ANN, begun(2, 9), &[]),
            Ok(at(0, 0)),
            "one that began before and was not heard"
        );
    }

    #[test]
    fn what_was_forgotten_stays_away() {
        let mut history = History::default();
        for n in 0..70 {
            history.began(&ANN, begun(n, 100 + u64::from(n)));
            history.close(&ANN, session(n));
        }
        for n in 0..70 {
            assert_eq!(history.admit(&ANN, begun(n, 100 + u64::from(n)), &[]), Err(Refusal::OldSession));
        }
        assert_eq!(history.admit(&ANN, begun(99, 106), &[]), Ok(at(0, 0)));
        assert_eq!(history.admit(&ANN, begun(99, 105), &[]), Err(Refusal::OldSession));
    }

    #[test]
    fn two_remember_for_each_other() {
        let (mut here, mut there) = (History::default(), History::default());
        for history in [&mut here, &mut there] {
            history.began(&ANN, begun(1, 10));
        }
        here.heard(&ANN, session(1), 2, 5);
        there.heard(&ANN, session(1), 0, 900);
        there.began(&ANN, begun(2, 20));
        there.close(&ANN, session(2));
        for n in 100..170 {
            there.began(&[7; 32], begun(n, u64::from(n)));
        }
        here.merge(&there);
        assert_eq!(here.admit(&ANN, begun(1, 10), &[]), Ok(at(2, 5)), "the later epoch");
        assert_eq!(here.admit(&ANN, begun(2, 20), &[]), Err(Refusal::OldSession));
        assert_eq!(here.admit(&[7; 32], begun(99, 103), &[]), Err(Refusal::OldSession), "forgotten there");
        let before = here.clone();
        here.merge(&there);
        here.merge(&before);
        assert_eq!(here, before);
    }

    #[test]
    fn one_that_goes_on_is_kept() {
        let mut history = History::default();
        history.began(&ANN, begun(200, 1));
        for n in 0..100 {
            history.began(&ANN, begun(n, 100 + u64::from(n)));
            history.close(&ANN, session(n));
        }
        assert_eq!(history.admit(&ANN, begun(200, 1), &[]), Ok(at(0, 0)));
    }

    #[test]
    fn text_and_back() {
        let mut history = History::default();
        for n in 0..70 {
            history.began(&ANN, begun(n, 100 + u64::from(n)));
            history.close(&ANN, session(n));
        }
        history.began(&[0xAB; 32], begun(1, u64::MAX));
        history.heard(&[0xAB; 32], session(1), 4, 1 << 40);
        let text = history.to_text();
        assert!(text.ends_with(&format!(
            "sender {}\nlast 0000000000000000 18446744073709551615 {one}\nsession {one} 18446744073709551615 open 4 1099511627776 \
             0000000000000000\n",
            "ab".repeat(32),
            one = "01".repeat(16)
        )));
        assert_eq!(History::from_text(&text), Some(history));
        assert_eq!(History::from_text(&format!("{TITLE}\n")), Some(History::default()));
        let cut: Vec<_> = text.lines().map(|line| &line[1..]).collect();
        for damaged in [
            "",
            "x",
            &text[1..],
            &cut.join("\n"),
            &format!("{TITLE}\nsession 1 2 open 3 4 0000000000000000\n"),
        ] {
            assert_eq!(History::from_text(damaged), None, "{damaged}");
        }
    }
}
