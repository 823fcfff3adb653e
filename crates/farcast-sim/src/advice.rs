//! Advice before a transfer: where its settings cannot work over its links, and the settings that help.
//!
//! A protocol says what its receivers will say ([`Forecast`]), and the links say what they carry. Each rule here compares
//! the two, and is silent unless simulations show that its advice helps (the page `simulate.md` of the book has
//! them).

mod blocks;
mod words;

use farcast_core::setting::SettingValue;
use farcast_core::units::Probability;
use farcast_core::{BitRate, Span};
use farcast_delivery::{Change, Datagrams, Forecast, MoreAhead, NewValue, Order, Requests};
use farcast_scenario::Links;
use farcast_scenario::links::ReturnCapacity;
use farcast_scenario::receivers::Group;

pub use words::Naming;
use words::{amount, count, least, percent};

/// Time that answers may take together before anything is said about them.
const PATIENCE: Span = Span::from_secs(10);
/// Time of confirmations from which it is told.
const LONG: Span = Span::from_secs(30);
/// Time of answers from which a sender has to know the rate of a return for which receivers contend.
const CONTENDING: Span = Span::from_secs(4);
/// Requests that arrive in the time of a block may exceed what the return carries by this factor: the sender repairs
/// several losses at once, and needs no more than some of them.
const SURPLUS: f64 = 4.0;
/// Number of receivers that lack something of each block, from which parity ahead takes less time than their requests.
const ASKING: f64 = 4.0;
/// Part of all segments that some receiver loses, from which repair without parity sends much twice.
const REPEATED: f64 = 0.3;
/// Excess of the expected loss over the link's, for the unluckiest of many receivers.
const UNLUCKY: f64 = 1.5;
/// Part of the time for an answer that receivers have to expect.
const TOO_SOON: f64 = 0.6;

/// Facts about a transfer and what carries it.
struct Case<'a> {
    forecast: &'a Forecast,
    receivers: u64,
    /// Narrowest part of the return, if it has a limit.
    back: Option<ReturnCapacity>,
    links: Option<&'a Links>,
    /// Share of the datagrams that a receiver loses, by their octets.
    loss: &'a dyn Fn(u64) -> f64,
    naming: Naming,
}

/// Returns advice on a transfer over `links` to the receivers in `groups`, one sentence each.
pub(crate) fn over_links(
    forecast: &Forecast,
    links: &Links,
    groups: &[Group],
    naming: Naming,
) -> Vec<String> {
    let receivers: u64 = groups.iter().map(|group| u64::from(group.receivers)).sum();
    let loss = |octets: u64| {
        let lost = |group: &Group| {
            let share = group.losses.as_ref().unwrap_or(&links.losses).share(octets);
            share * f64::from(group.receivers)
        };
        (groups.iter().map(lost).sum::<f64>() / receivers.max(1) as f64).min(0.99)
    };
    let back = links.return_capacity();
    Case { forecast, receivers, back, links: Some(links), loss: &loss, naming }.advice()
}

/// Returns advice on a transfer to `receivers` over a return of this rate. Nothing else is known of the links.
pub fn over_return(forecast: &Forecast, receivers: u64, rate: BitRate, naming: Naming) -> Vec<String> {
    let back = Some(ReturnCapacity { place: String::new(), rate, messages_per_s: None });
    Case { forecast, receivers, back, links: None, loss: &|_| 0.0, naming }.advice()
}

impl Case<'_> {
    fn advice(&self) -> Vec<String> {
        let (datagram, blocks) = self.whole_blocks();
        let loss = (self.loss)(datagram.octets().into());
        let requests = self.forecast.requests.as_ref();
        let at_once = self.registrations().or_else(|| self.requests_at_once(requests?, loss));
        let parity = match &at_once {
            // The first change that helps against the answers is parity.
            Some(_) => None,
            None => requests.and_then(|requests| self.without_parity(requests, loss)),
        };
        let ahead = requests.and_then(|requests| self.parity_ahead(requests, loss));
        [at_once, parity, blocks, ahead, self.contention(), self.confirmations(), self.round_trip()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns advice if all receivers register at once, and the return takes long to carry that.
    fn registrations(&self) -> Option<String> {
        let Order::AtOnce(changes) = &self.forecast.order else { return None };
        let (octets, back) = (self.forecast.registration?, self.back.as_ref()?);
        let takes = back.time_of(self.receivers as f64, octets.into());
        (takes > PATIENCE && !changes.is_empty()).then(|| {
            format!(
                "{} receivers would register at once, with {}, and {} {}: that takes at least {}; {}",
                count(self.receivers),
                amount(self.receivers as f64 * f64::from(octets)),
                self.place(),
                words::carries(back),
                least(takes),
                self.either(changes),
            )
        })
    }

    /// Returns advice if all receivers that lack something ask for it at once, and the return does not carry that.
    fn requests_at_once(&self, requests: &Requests, loss: f64) -> Option<String> {
        let Order::AtOnce(changes) = &self.forecast.order else { return None };
        // Turns at a given rate do not shorten what all receivers have to ask for.
        let changes: Vec<Change> =
            changes.iter().filter(|change| change.value != NewValue::ReturnRate).cloned().collect();
        if requests.overheard || changes.is_empty() {
            return None;
        }
        let (back, datagrams) = (self.back.as_ref()?, &self.forecast.datagrams);
        let rate = datagrams.rate.map(|(rate, _)| rate).or_else(|| self.links?.forward_rate())?;
        let askers = requests.askers(self.receivers, loss);
        let block = rate.time_of_bytes(u64::from(datagrams.octets()) * u64::from(requests.block));
        let takes = back.time_of(askers, requests.octets.into());
        let blocks = self.forecast.segments.div_ceil(u64::from(requests.block.max(1)));
        let exceeds = takes.as_secs_f64() > SURPLUS * block.as_secs_f64() && takes * blocks > PATIENCE;
        exceeds.then(|| {
            format!(
                "with a loss of {} about {} of {} receivers would ask for repair after each block, every {}, and {} takes \
                 at least {} for that; {}",
                percent(loss),
                count(askers as u64),
                count(self.receivers),
                least(block),
                self.place(),
                least(takes),
                self.either(&changes),
            )
        })
    }

    /// Returns advice if segments that somebody lost are sent again one by one, although parity could serve many
    /// receivers at once.
    fn without_parity(&self, requests: &Requests, loss: f64) -> Option<String> {
        let change = requests.to_parity.as_ref()?;
        let repeated = 1.0 - (1.0 - loss).powf(self.receivers as f64);
        (repeated > REPEATED).then(|| {
            format!(
                "with a loss of {} one or more of {} receivers lose {} of all segments, and without parity each of these \
                 is sent again; {}",
                percent(loss),
                count(self.receivers),
                percent(repeated),
                self.change(change),
            )
        })
    }

    /// Returns advice if receivers have to ask for nearly every block, and parity ahead would serve them before.
    fn parity_ahead(&self, requests: &Requests, loss: f64) -> Option<String> {
        let back = self.back.as_ref()?;
        let (askers, wanted) = (requests.askers(self.receivers, loss), requests.wanted(self.receivers, loss));
        let contends = back.messages_per_s.is_some() && wanted > 0.5;
        let (tells, changes) = match requests.more_ahead? {
            MoreAhead::Symbols(setting, most) => {
                let symbols = requests.enough_ahead(self.receivers, loss, most);
                let more = symbols > requests.ahead && symbols < most;
                let change = (setting, Some(SettingValue::Integer(symbols.into())));
                (more && (askers >= ASKING || contends), vec![change])
            }
            // Where receivers do not contend, they ask little for blocks as long as those.
            MoreAhead::Loss { loss: setting, receivers: (group, assumed) } => {
                let few = f64::from(requests.ahead) < f64::from(requests.block) * loss;
                let share = Probability::new((loss * UNLUCKY * 1000.0).ceil() / 1000.0)?;
                let number = (group, Some(SettingValue::Integer(self.receivers)));
                let other = assumed > self.receivers * 2 || assumed * 2 < self.receivers;
                let changes = [(setting, Some(SettingValue::Probability(share)))];
                (contends && few, changes.into_iter().chain(other.then_some(number)).collect())
            }
        };
        tells.then(|| {
            format!(
                "with a loss of {} one or more of {} receivers lack something of {} of the blocks, and ask for it; {}, so \
                 that parity comes before anybody asks",
                percent(loss),
                count(self.receivers),
                percent(wanted),
                self.naming.set(&changes),
            )
        })
    }

    /// Returns advice if receivers contend for the return, and the sender does not know how much it carries.
    fn contention(&self) -> Option<String> {
        let Order::ByTurns(Some(setting)) = self.forecast.order else { return None };
        let (octets, back) = (self.forecast.confirmation?, self.back.as_ref()?);
        let messages = back.messages_per_s?;
        let takes = back.time_of(self.receivers as f64, octets.into());
        let rate = words::rounded_down(messages * f64::from(octets) * 8.0)?;
        (takes > CONTENDING).then(|| {
            format!(
                "receivers contend for {}, which carries at most {messages:.0} of their messages a second; {}, so that the \
                 sender need not find that out",
                self.place(),
                self.change(&Change::to(setting, SettingValue::Rate(rate))),
            )
        })
    }

    /// Returns the time that confirmations take, if it is long.
    fn confirmations(&self) -> Option<String> {
        let (octets, back) = (self.forecast.confirmation?, self.back.as_ref()?);
        let takes = back.time_of(self.receivers as f64, octets.into());
        (takes >= LONG).then(|| {
            format!(
                "confirming {} receivers takes at least {} over {}, which {}",
                count(self.receivers),
                least(takes),
                self.place(),
                words::carries(back),
            )
        })
    }

    /// Returns advice if receivers expect answers sooner than the links can bring them, and so ask again and again.
    fn round_trip(&self) -> Option<String> {
        let ((expected, setting), links) = (self.forecast.round_trip?, self.links?);
        let (takes, loss) = (links.answer_time(), (self.loss)(self.forecast.datagrams.octets().into()));
        let soon = expected.as_secs_f64() < takes.as_secs_f64() * TOO_SOON;
        (soon && loss > 0.0).then(|| {
            let whole = Span::from_millis(takes.as_nanos().div_ceil(500_000_000) * 500);
            format!(
                "an answer and what follows it take {} over these links, and receivers expect {} and ask again; {}",
                least(takes),
                least(expected),
                self.change(&Change::to(setting, SettingValue::Span(whole))),
            )
        })
    }

    /// Returns the datagrams that fit the blocks of the forward link, and the advice to send those.
    fn whole_blocks(&self) -> (Datagrams, Option<String>) {
        let datagrams = self.forecast.datagrams;
        let config = self.links.and_then(Links::whole_blocks);
        match config.and_then(|config| blocks::better(&datagrams, config)) {
            None => (datagrams, None),
            Some(better) => (better.datagrams, Some(better.sentence(&datagrams, self.naming))),
        }
    }

    /// Returns the name of the return.
    fn place(&self) -> String {
        let named = self.back.as_ref().filter(|back| !back.place.is_empty());
        named.map_or_else(|| "the return".into(), |back| back.place.clone())
    }

    fn change(&self, change: &Change) -> String {
        let of_return = self.back.as_ref().map(|back| back.rate);
        let value = match &change.value {
            NewValue::Fixed(value) => Some(value.clone()),
            NewValue::ReturnRate => of_return.map(SettingValue::Rate),
            NewValue::ForwardRate => self.links.and_then(Links::forward_rate).map(SettingValue::Rate),
            NewValue::Absent => return self.naming.leave_out(change.setting),
        };
        self.naming.set(&[(change.setting, value)])
    }

    /// Returns the changes of which each helps.
    fn either(&self, changes: &[Change]) -> String {
        let changes: Vec<String> = changes.iter().map(|change| self.change(change)).collect();
        changes.join(", or ")
    }
}
