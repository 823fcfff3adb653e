//! Record of a reception, for its page.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use farcast_core::{Span, Time};
use farcast_delivery::{ObjectId, Offer, Received, ReceiverEngine, Words};
use farcast_files::shown_name;
use farcast_net::{ReceiveNotice, ReceiveReport};
use farcast_report::transfer::{self, Came, Close, Product};
use serde_json::Value;

use super::{PageFile, now, sentence};
use crate::args::PageArgs;
use crate::laboratory::VERSION;
use crate::options::{Chosen, in_effect};

/// Longest time that the page of a complete product waits for products that are under way.
const WAIT: Span = Span::from_secs(5);

/// Record of a reception, and the page that is written from it.
pub(crate) struct Receiving {
    file: PageFile,
    title: String,
    name: String,
    began: String,
    options: Vec<Chosen>,
    seen: transfer::Receiving,
    /// Sentence about the end of the last product.
    last: Option<String>,
    summary: Value,
    /// Time since which the page has been out of date.
    stale: Option<Time>,
    /// Thread that writes the page while receiving goes on: a disk may be slow.
    writer: Option<JoinHandle<bool>>,
}

impl Receiving {
    /// Makes the record of the receiver `name` that listens at `from`, if a page is asked for.
    pub(crate) fn new(args: &PageArgs, words: Words, name: String, from: SocketAddr) -> Option<Self> {
        Some(Self {
            file: PageFile(args.report.clone()?),
            title: format!("{name}: what came to {from} ({})", args.protocol),
            name,
            began: now(),
            options: args.options.clone(),
            seen: transfer::Receiving::new(words),
            last: None,
            summary: Value::Null,
            stale: None,
            writer: None,
        })
    }

    /// Records a notice, except the end of an object.
    pub(crate) fn observe<R: ReceiverEngine>(
        &mut self,
        now: Time,
        receiver: &R,
        notice: &ReceiveNotice<'_, R::Event>,
    ) {
        match notice {
            ReceiveNotice::Joined { offer, held } => {
                self.seen.joined(now.as_secs_f64(), offer.object.get(), product(offer, *held));
            }
            ReceiveNotice::Tick => {
                for object in self.seen.objects() {
                    let id = ObjectId::new(object);
                    if let Some(have) = receiver.have(id) {
                        let came = came(have.count(), &receiver.received(id));
                        self.seen.look(now.as_secs_f64(), object, came);
                    }
                }
                if self.stale.is_some_and(|since| !self.seen.is_busy() || now >= since + WAIT) {
                    self.write("It goes on listening.");
                }
            }
            _ => {}
        }
    }

    /// Records the end of an object, with a sentence and a summary for programs.
    pub(crate) fn ended<E>(&mut self, now: Time, report: &ReceiveReport<E>, outcome: &str, summary: &Value) {
        let ended = Product {
            outcome: outcome.to_owned(),
            complete: report.is_complete(),
            time_s: report.duration.as_secs_f64(),
            came: came(report.have, &report.received),
            ..product(&report.offer, report.held)
        };
        self.seen.ended(now.as_secs_f64(), report.offer.object.get(), ended);
        self.last = Some(sentence(outcome));
        self.summary = summary.clone();
        self.stale.get_or_insert(now);
    }

    /// Writes the page for the last time. `why` is the reason for the end.
    pub(crate) fn finish(mut self, why: &str) {
        self.write(why);
        self.wait();
    }

    /// Starts to write the page. `then` tells what comes next.
    fn write(&mut self, then: &str) {
        self.wait();
        self.stale = None;
        let mut lead: Vec<String> = self.last.iter().cloned().collect();
        let then = sentence(then);
        if !lead.contains(&then) {
            lead.push(then);
        }
        lead.push(format!("It listened from {} on.", self.began));
        let close = Close {
            title: self.title.clone(),
            lead,
            settings: in_effect(&self.options, &[("name", self.name.clone())]),
            summary: format!("{:#}", self.summary),
            made_by: format!("farcast {VERSION}"),
            ..Close::default()
        };
        let (file, page) = (self.file.clone(), self.seen.page(&close));
        let writing = std::thread::Builder::new().name("page".into());
        match writing.spawn(move || file.write(&page)) {
            Ok(writer) => self.writer = Some(writer),
            // The next product starts the next attempt.
            Err(error) => crate::stdio::lose(&format!("cannot write the page: {error}")),
        }
    }

    /// Waits until the page is written.
    fn wait(&mut self) {
        if let Some(writer) = self.writer.take() {
            // The thread reports its own errors.
            let _ = writer.join();
        }
    }
}

fn product(offer: &Offer, held: u32) -> Product {
    Product {
        name: shown_name(&offer.name),
        sender: offer.sender.to_string(),
        size: offer.geometry.size(),
        segment_size: offer.geometry.segment_size().into(),
        held,
        ..Product::default()
    }
}

fn came(have: u32, received: &Received) -> Came {
    Came {
        have,
        segments: received.segments,
        parity: received.parity,
        duplicates: received.duplicates,
        requests: received.naks,
        asked: received.lost,
    }
}
