//! The simplest thing on the way that the driver can be tried with, and no more than that: it puts its own address into
//! SPMs, confirms each request, and repairs what it has kept or passes the request on.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Deadline, Engine, Reject, RejectCounts, Transmit};
use farcast_delivery::{Content, ElementEngine, ElementRequest, Figure};
use farcast_pgm::message::{Data, DataKind, Nak, NakKind, Origin};
use farcast_pgm::{Body, Message, Sqn};

/// One session at a time; port 1 is upstream.
#[derive(Debug)]
pub(crate) struct Double {
    ports: Vec<IpAddr>,
    /// Whether it keeps data.
    keeps: bool,
    upstream: Option<SocketAddr>,
    /// Its source, and its group.
    session: Option<(SocketAddr, SocketAddr)>,
    kept: BTreeMap<u32, (u64, Data)>,
    events: VecDeque<ElementRequest>,
    out: VecDeque<Transmit<Message>>,
    rejects: RejectCounts,
    served: u64,
}

impl Double {
    pub(crate) fn new(ports: Vec<IpAddr>, keeps: bool) -> Self {
        Self {
            ports,
            keeps,
            upstream: None,
            session: None,
            kept: BTreeMap::new(),
            events: VecDeque::new(),
            out: VecDeque::new(),
            rejects: RejectCounts::default(),
            served: 0,
        }
    }

    fn down(&mut self, port: u32, message: Message) {
        let Some((source, group)) = self.session else { return };
        self.out.push_back(Transmit {
            source: Some(source),
            interface: port,
            router_alert: true,
            ..Transmit::new(message, group)
        });
    }

    fn nak(&mut self, port: u32, message: &Message, nak: &Nak) -> Result<(), Reject> {
        let upstream = self.upstream.ok_or(Reject::Unexpected)?;
        let confirmation = Nak { kind: NakKind::Confirmation, ..nak.clone() };
        self.down(port, Message { body: Body::Nak(confirmation), ..message.clone() });
        let missing: Vec<Sqn> = nak.sqns().filter(|sqn| !self.kept.contains_key(&sqn.0)).collect();
        for sqn in nak.sqns() {
            let Some((key, data)) = self.kept.get(&sqn.0).cloned() else { continue };
            let origin = Origin(Content::Kept { key });
            let data = Data { kind: DataKind::Repair, origin, ..data };
            self.served += 1;
            self.down(port, Message { body: Body::Data(data), ..message.clone() });
        }
        if let Some((&sqn, also)) = missing.split_first() {
            let nak = Nak { sqn, also: also.to_vec(), ..nak.clone() };
            let message = Message { body: Body::Nak(nak), ..message.clone() };
            self.out.push_back(Transmit { interface: 1, ..Transmit::new(message, upstream) });
        }
        Ok(())
    }
}

impl Engine for Double {
    type Message = Message;
    type Event = ElementRequest;

    fn handle(&mut self, _: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let result = match (&message.body, from.interface) {
            (Body::Spm(spm), 1) => {
                self.session = Some((from.source, from.destination));
                self.upstream = Some(SocketAddr::new(spm.path, from.source.port()));
                for port in 2..=self.ports.len() as u32 {
                    let mut spm = spm.clone();
                    spm.path = self.ports[port as usize - 1];
                    self.down(port, Message { body: Body::Spm(spm), ..message.clone() });
                }
                Ok(())
            }
            (Body::Data(data), 1) => {
                if self.keeps {
                    let key = u64::from(data.sqn.0);
                    self.kept.insert(data.sqn.0, (key, data.clone()));
                    self.events.push_back(ElementRequest::Keep { keys: key..key + 1, offset: 0 });
                }
                for port in 2..=self.ports.len() as u32 {
                    if data.kind == DataKind::Repair {
                        let origin = Origin(Content::Passing { datagram: 0 });
                        let data = Data { origin, ..data.clone() };
                        self.down(port, Message { body: Body::Data(data), ..message.clone() });
                    }
                }
                Ok(())
            }
            (Body::Nak(nak), port) if port > 1 && nak.kind == NakKind::Nak => self.nak(port, message, nak),
            _ => Err(Reject::Unexpected),
        };
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, _: Time) -> Option<Transmit<Message>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn poll_event(&mut self) -> Option<ElementRequest> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }

    fn prefix(&self, _: &Message) -> NonZeroU32 {
        NonZeroU32::MIN
    }
}

impl ElementEngine for Double {
    fn request(event: &ElementRequest) -> Option<ElementRequest> {
        Some(event.clone())
    }

    fn overhears(&self) -> bool {
        self.keeps
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::count("served", self.served)]
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}
