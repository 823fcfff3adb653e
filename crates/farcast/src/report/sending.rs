//! What a sender sees.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_delivery::{FigureValue, Milestone, RequestCounts, SenderEngine, Words};
use farcast_net::{SendNotice, Traffic};
use farcast_report::transfer::{self, Close, Receiver, Totals};
use serde_json::Value;

use super::options::in_effect;
use super::{Chosen, PageFile, now, sentence};
use crate::args::PageArgs;
use crate::laboratory::VERSION;
use crate::output::Output;
use crate::{Exit, Failure};

/// What a sender sees, for its page.
pub(crate) struct Sending {
    file: PageFile,
    title: String,
    size: u64,
    began: String,
    options: Vec<Chosen>,
    seen: transfer::Sending,
}

/// How it ended.
#[derive(Default)]
pub(crate) struct End {
    /// What it came to, in a sentence.
    pub(crate) closing: Option<String>,
    /// What options came to, by their names.
    pub(crate) effective: Vec<(&'static str, String)>,
    /// How those stand who are known.
    pub(crate) receivers: Vec<Receiver>,
    /// The summary for programs.
    pub(crate) summary: Value,
}

impl Sending {
    /// Of `name`, so many octets, to `to`, if a page is asked for.
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

    /// Notes what is told.
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

    /// Whether it is time to [look](Self::look) at receivers.
    pub(crate) fn wants_look(&self, now: Time) -> bool {
        self.seen.wants_look(now.as_secs_f64())
    }

    /// Notes what part of all each receiver has.
    pub(crate) fn look<'a>(&mut self, now: Time, receivers: impl Iterator<Item = (&'a str, f64)>) {
        self.seen.look(now.as_secs_f64(), receivers);
    }

    /// Notes what had passed at the end of it; segments that were sent in each round.
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

/// How it went, in a sentence.
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
