//! Record of a transmission, for its page.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_delivery::{FigureValue, Milestone, RequestCounts, SenderEngine, Words};
use farcast_net::{SendNotice, Traffic};
use farcast_report::transfer::{self, Close, Receiver, Totals};
use serde_json::Value;

use super::{PageFile, now, sentence};
use crate::args::PageArgs;
use crate::laboratory::VERSION;
use crate::options::{Chosen, in_effect};
use crate::output::Output;
use crate::{Exit, Failure};

/// Record of a transmission, from which its page is written.
pub(crate) struct Sending {
    file: PageFile,
    title: String,
    size: u64,
    began: String,
    options: Vec<Chosen>,
    seen: transfer::Sending,
}

/// End of a transmission.
#[derive(Default)]
pub(crate) struct End {
    /// Result, in a sentence.
    pub(crate) closing: Option<String>,
    /// Values that came into effect, by the names of their options.
    pub(crate) effective: Vec<(&'static str, String)>,
    /// States of the known receivers.
    pub(crate) receivers: Vec<Receiver>,
    /// Summary for programs.
    pub(crate) summary: Value,
}

impl Sending {
    /// Makes the record of a transmission to `to`, if a page is asked for. `what` is its name and its size in octets.
    pub(crate) fn new(args: &PageArgs, words: Words, what: (&str, u64), to: SocketAddr) -> Option<Self> {
        let (name, size) = what;
        let path = args.report.clone()?;
        Some(Self {
            file: PageFile(path),
            title: format!("{name} to {to} ({})", args.protocol),
            size,
            began: now(),
            options: args.options.clone(),
            seen: transfer::Sending::new(words),
        })
    }

    /// Records a notice.
    pub(crate) fn observe<S: SenderEngine>(&mut self, now: Time, notice: &SendNotice<'_, S::Event>) {
        match notice {
            SendNotice::Tick(traffic) => self.passed(now, traffic),
            SendNotice::Event(event) => {
                if let Some(Milestone::Round { round, .. }) = S::milestone(event) {
                    self.seen.round(now.as_secs_f64(), round);
                }
            }
            _ => {}
        }
    }

    fn passed(&mut self, now: Time, traffic: &Traffic) {
        let Traffic { sent, heard, requests, asked } = *traffic;
        let farcast_net::Kinds { data, repairs, parity, control } = sent.kinds;
        let totals = Totals { data, repairs, parity, control, heard, requests, asked };
        self.seen.passed(now.as_secs_f64(), totals);
    }

    /// Returns `true` if it is time to [look](Self::look) at receivers.
    pub(crate) fn wants_look(&self, now: Time) -> bool {
        self.seen.wants_look(now.as_secs_f64())
    }

    /// Records each receiver's share of all data.
    pub(crate) fn look<'a>(&mut self, now: Time, receivers: impl Iterator<Item = (&'a str, f64)>) {
        self.seen.look(now.as_secs_f64(), receivers);
    }

    /// Records the traffic at the end. Returns the number of segments that were sent in each round.
    pub(crate) fn over<S: SenderEngine>(&mut self, report: &farcast_net::SendReport<S>) -> Vec<u64> {
        self.passed(Time::ZERO + report.duration, &report.traffic);
        let counts = report.sender.figures(&RequestCounts::default()).into_iter().find_map(|figure| {
            if let FigureValue::Counts(counts) = figure.value { Some(counts) } else { None }
        });
        counts.unwrap_or_default()
    }

    /// Writes the page.
    pub(crate) fn write(
        self,
        sent_per_round: Vec<u64>,
        end: End,
        how: &Result<Exit, Failure>,
        output: &Output,
    ) {
        let mut lead = vec![verdict(how, &end.receivers)];
        lead.extend(end.closing.map(|closing| sentence(&closing)));
        lead.push(format!("It began at {}.", self.began));
        let close = Close {
            title: self.title,
            lead,
            settings: in_effect(&self.options, &end.effective),
            receivers: end.receivers,
            size: self.size,
            sent_per_round,
            summary: format!("{:#}", end.summary),
            made_by: format!("farcast {VERSION}"),
        };
        if self.file.write(&self.seen.page(&close)) {
            output.line(&format!("{} shows it", self.file.0.display()));
        }
    }
}

/// Returns the result of the transmission, in a sentence.
fn verdict(how: &Result<Exit, Failure>, receivers: &[Receiver]) -> String {
    match (how, receivers.len()) {
        (Err(failure), _) if failure.exit == Exit::Incomplete => {
            format!("Incomplete: {}", sentence(&failure.sentence))
        }
        (Err(failure), _) => format!("Failed: {}", sentence(&failure.sentence)),
        (Ok(Exit::Unknown), _) => {
            "Everything was sent; receivers cannot answer, so who has it nobody here can tell.".into()
        }
        (Ok(_), 0) => "Everything was sent; nobody is known, so who has it is not known either.".into(),
        (Ok(_), 1) => "The one receiver has everything.".into(),
        (Ok(_), 2) => "Both receivers have everything.".into(),
        (Ok(_), all) => format!("All {all} receivers have everything."),
    }
}
