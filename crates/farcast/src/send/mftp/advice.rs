//! Advice on the rate, from the losses of the first pass.

use farcast_core::{BitRate, Span};
use farcast_mftp::{Judgement, Pace, Sender, SenderEvent, SenderOutcome, wire};
use serde_json::{Value, json};

use farcast_transfer::send::has_it;

use super::SendReport;
use super::view::{label, wire_bytes};
use crate::progress::{percent, size};

/// Suggested share of the rate that arrives. The path also carries announcements and requests, and the measured rate
/// has an error.
const SUGGESTED: f64 = 0.98;

/// Advice on the rate.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Advice {
    /// The path to all receivers carries less than the rate.
    Narrow {
        /// Rate that `--rate` sets.
        sent: BitRate,
        /// Rate that arrives at the receiver that gets least.
        received: BitRate,
        /// Rate without losses.
        suggested: BitRate,
        /// Set if there is more than one receiver.
        several: bool,
    },
    /// One receiver loses far more than the others, or a few receivers do.
    OneSlow {
        /// Receiver that loses most.
        receiver: String,
        /// Share that it loses, from 0 to 1.
        part: f64,
        /// Number of other receivers that also lose far more.
        others: u32,
    },
}

/// Returns `rate` rounded down to three significant digits.
fn rounded_down(rate: u64) -> u64 {
    let unit = 10_u64.pow(rate.checked_ilog10().unwrap_or(0).saturating_sub(2));
    rate / unit * unit
}

impl Advice {
    /// Returns the advice from the first pass so far, or `None` if there is none or receivers set the pace.
    pub(super) fn of(sender: &Sender) -> Option<Self> {
        let Pace::Rate { rate, .. } = sender.config().pace else { return None };
        let survey = sender.survey();
        match survey.judge() {
            Judgement::Narrow { received } => Self::narrow(rate, received, survey.members.len() > 1),
            Judgement::OneSlow { client, part, others } => {
                Some(Self::OneSlow { receiver: label(sender, client), part, others })
            }
            Judgement::Random | Judgement::Nothing => None,
        }
    }

    /// Returns the advice for a share `received` of the rate `sent` that arrives.
    fn narrow(sent: BitRate, received: f64, several: bool) -> Option<Self> {
        let arrives = sent.as_bps() as f64 * received;
        let suggested = BitRate::from_bps(rounded_down((arrives * SUGGESTED) as u64))?;
        Some(Self::Narrow { sent, received: BitRate::from_bps(arrives as u64)?, suggested, several })
    }

    /// Returns the advice in words, while the transfer runs.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Narrow { sent, received, suggested, several } => {
                let who = if *several { "the receivers get" } else { "the receiver gets" };
                format!(
                    "{who} {received} of the {sent} that are sent: the way is too narrow; --rate \"{suggested}\" loses \
                     nothing there"
                )
            }
            Self::OneSlow { receiver, part, others } => {
                let lost = percent((part * 1000.0) as u64, 1000);
                let (verb, more) = match others {
                    0 => ("loses", String::new()),
                    n => ("lose", format!(" and {n} more")),
                };
                format!(
                    "{receiver}{more} {verb} far more than the others, {lost}: what is amiss is there, or on the way's last \
                     part, and not the rate for all"
                )
            }
        }
    }

    /// Returns the advice in words, for the end of the transfer.
    pub(super) fn closing(&self, report: &SendReport, draft: bool) -> String {
        let Self::Narrow { sent, received, suggested, several } = self else { return self.sentence() };
        let who = if *several { "the receivers" } else { "the receiver" };
        let least = least_time(&report.sender, *suggested);
        let took = took(report, draft);
        let time = match took {
            Some(took) if least < took => format!("it takes about {least} instead of {took}"),
            // Repairs have used the path as well as it can be used.
            Some(_) => {
                let (once, sent) = (size(least_bytes(&report.sender)), size(wire_bytes(&report.sender)));
                format!("it takes about as long, and {once} are sent instead of {sent}")
            }
            None => format!("it takes about {least}"),
        };
        format!(
            "{who} got {received} of the {sent} that were sent: the way is too narrow; with --rate \"{suggested}\" {time}"
        )
    }

    /// Returns the advice for programs.
    pub(super) fn fields(&self) -> Value {
        match self {
            Self::Narrow { sent, received, suggested, .. } => json!({
                "judgement": "narrow",
                "rate_bps": sent.as_bps(),
                "received_bps": received.as_bps(),
                "suggested_bps": suggested.as_bps(),
            }),
            Self::OneSlow { receiver, part, others } => {
                json!({ "judgement": "one_slow", "receiver": receiver, "loss": part, "others": others })
            }
        }
    }

    /// Returns the fields of the summary, with the time that the transfer would take at the suggested rate.
    pub(super) fn summary(&self, sender: &Sender) -> Value {
        let mut fields = self.fields();
        if let (Self::Narrow { suggested, .. }, Value::Object(fields)) = (self, &mut fields) {
            fields.insert("suggested_time_s".into(), json!(least_time(sender, *suggested).as_secs_f64()));
        }
        fields
    }
}

/// Returns the bytes on the wire if all data is sent once.
fn least_bytes(sender: &Sender) -> u64 {
    let overhead = if sender.is_ipv6() { 48 } else { 28 };
    let geometry = sender.geometry();
    let dtu = wire::data_len(geometry.segment_size() as usize) as u64 + overhead;
    dtu.saturating_mul(geometry.segments().into())
}

/// Returns the time to send those bytes at `rate` and to receive the last answer.
fn least_time(sender: &Sender, rate: BitRate) -> Span {
    rate.time_of_bytes(least_bytes(sender)) + sender.round_trip()
}

/// Returns the time of data, if every receiver has everything.
fn took(report: &SendReport, draft: bool) -> Option<Span> {
    let whole = report.end == SenderEvent::Ended(SenderOutcome::Finished) && report.error.is_none();
    let everyone = || report.sender.members().all(|(_, member)| has_it(member, draft));
    (whole && everyone()).then_some(report.data_duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(rate: &str) -> BitRate {
        rate.parse().expect("a rate")
    }

    #[test]
    fn the_rate_that_is_suggested_is_one_to_give() {
        let suggested = |sent: &str, received: f64| {
            let advice = Advice::narrow(mbps(sent), received, true).expect("advice");
            let Advice::Narrow { suggested, .. } = &advice else { panic!("{advice:?}") };
            // The suggested rate is exact as printed. It is the rate that arrives or up to three per cent less.
            assert_eq!(suggested.to_string().parse(), Ok(*suggested), "{sent} {received}");
            let part = suggested.as_bps() as f64 / (mbps(sent).as_bps() as f64 * received);
            assert!(part <= SUGGESTED && part > SUGGESTED - 0.011, "{sent} {received}: {part}");
            suggested.to_string()
        };
        assert_eq!(suggested("8 Mbit/s", 0.2625), "2.05 Mbit/s");
        assert_eq!(suggested("20 Mbit/s", 0.95), "18.6 Mbit/s");
        assert_eq!(suggested("1 Gbit/s", 0.999), "979 Mbit/s");
        for rate in ["9.6 kbit/s", "64 kbit/s", "1.5 Mbit/s", "34.7 Mbit/s", "10 Gbit/s"] {
            for percent in 1..=95 {
                suggested(rate, f64::from(percent) / 100.0);
            }
        }
        assert_eq!(Advice::narrow(mbps("9.6 kbit/s"), 0.0, true), None);
    }

    #[test]
    fn sentences() {
        let narrow = |several| Advice::narrow(mbps("8 Mbit/s"), 0.2625, several).expect("advice").sentence();
        assert_eq!(
            narrow(true),
            "the receivers get 2.1 Mbit/s of the 8 Mbit/s that are sent: the way is too narrow; --rate \"2.05 Mbit/s\" \
             loses nothing there"
        );
        assert!(narrow(false).starts_with("the receiver gets 2.1 Mbit/s of"));
        let slow = |others| Advice::OneSlow { receiver: "oslo".into(), part: 0.254, others }.sentence();
        assert!(slow(0).starts_with("oslo loses far more than the others, 25.4 %:"));
        assert!(slow(2).starts_with("oslo and 2 more lose far more than the others, 25.4 %:"));
    }
}
