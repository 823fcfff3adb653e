//! Host off the path that hears the group and forges messages.

use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, Transmit};
use farcast_core::{Run, Span, Time};
use farcast_norm::message::{
    Answer, Data, Form, FromReceiver, FromSender, Info, Level, Point, Request, Symbol, Terms,
};
use farcast_norm::{Body, Fec, Message, NodeId};
use farcast_testkit::drawn::Draw;

use crate::parcel::{Parcel, over_the_wire};
use crate::plan::{Attack, Plan, SENDER, address, group, server};

/// Kind of a forged message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forgery {
    Nack,
    Acknowledgement,
    Data,
    Info,
    Flush,
    End,
    Squelch,
}

impl Forgery {
    pub(crate) const ALL: [Self; 7] =
        [Self::Nack, Self::Acknowledgement, Self::Data, Self::Info, Self::Flush, Self::End, Self::Squelch];
}

/// Attacker at work, and what it has seen on the group.
pub(crate) struct Attacker {
    attack: Attack,
    draw: Draw,
    sites: u64,
    next: Time,
    sent: u32,
    source: SocketAddr,
    terms: Option<Terms>,
    data: Option<Data>,
    info: Option<Info>,
    point: Option<Point>,
}

impl Attacker {
    pub(crate) fn new(plan: &Plan, attack: Attack) -> Self {
        Self {
            next: attack.during.start,
            attack,
            draw: Draw::new(plan.seed, &[5]),
            sites: plan.sites.len() as u64,
            sent: 0,
            source: server(0),
            terms: None,
            data: None,
            info: None,
            point: None,
        }
    }

    fn is_over(&self) -> bool {
        self.sent >= self.attack.most || self.next >= self.attack.during.end
    }

    /// Returns the seen number most times, and otherwise one beside it or any.
    fn number(&mut self, seen: u32) -> u32 {
        match self.draw.below(10) {
            0 => seen.wrapping_add(1),
            1 => seen.wrapping_sub(1),
            2 => self.draw.0.bits() as u32,
            3 => self.draw.below(20) as u32,
            _ => seen,
        }
    }

    fn point(&mut self) -> Option<Point> {
        let (fec, object) = (Fec::ReedSolomon8, 0);
        let symbol = self.data.as_ref().map(|data| Symbol {
            block: data.block,
            block_len: None,
            symbol: data.symbols.first() as u16,
        });
        let point = self.point.or(symbol.map(|symbol| Point { fec, object, symbol }))?;
        let block = self.number(point.symbol.block) & 0x00ff_ffff;
        let symbol = self.number(point.symbol.symbol.into()) as u16 & 0xff;
        let object = self.number(point.object.into()) as u16;
        Some(Point { fec: point.fec, object, symbol: Symbol { block, block_len: None, symbol } })
    }

    fn forge(&mut self) -> Option<Transmit<Parcel>> {
        self.sent += 1;
        self.next += self.attack.gap * self.draw.below(2001) / 1000 + Span::from_nanos(1);
        let forgery = self.draw.pick(&self.attack.forgeries.clone());
        let terms = self.terms?;
        let site = self.draw.below(self.sites);
        let of_receiver = matches!(forgery, Forgery::Nack | Forgery::Acknowledgement);
        let body = if of_receiver {
            let answer = self.answer(forgery)?;
            let (response, feedback, instance) = (None, None, terms.instance);
            Body::Receiver(FromReceiver { sender: SENDER, instance, response, feedback, answer })
        } else {
            Body::Sender(terms, self.said(forgery)?)
        };
        let source = if of_receiver { NodeId(2 + site as u32) } else { SENDER };
        let message = Message { source, sequence: self.draw.0.bits() as u16, body };
        let parcel = Parcel { message: Rc::new(over_the_wire(&message)?), spoiled: true, forged: true };
        let to = if of_receiver && self.draw.chance(0.7) { self.source } else { group() };
        let mut transmit = Transmit::new(parcel, to);
        let claimed = if of_receiver { address(site as usize, 0) } else { self.source };
        transmit.source = Some(if self.draw.chance(0.9) { claimed } else { server(9) });
        Some(transmit)
    }

    fn answer(&mut self, forgery: Forgery) -> Option<Answer> {
        let point = self.point()?;
        if forgery == Forgery::Acknowledgement {
            return Some(Answer::Flushed {
                id: 0,
                point: self.point.filter(|_| self.draw.chance(0.7)).unwrap_or(point),
            });
        }
        let level = self.draw.pick(&[Level::SEGMENT, Level::BLOCK, Level::INFO, Level::OBJECT]);
        let last = self.point()?;
        let (form, points) = match self.draw.below(3) {
            0 => (Form::Items, vec![point]),
            1 => (Form::Ranges, vec![point, last]),
            _ => (Form::Erasures, vec![point]),
        };
        Some(Answer::Nack(vec![Request { form, level, points }]))
    }

    fn said(&mut self, forgery: Forgery) -> Option<FromSender> {
        Some(match forgery {
            Forgery::Data => {
                let mut data = self.data.clone()?;
                data.block = self.number(data.block) & 0x00ff_ffff;
                data.symbols = Run::one(self.number(data.symbols.first()) & 0xff);
                data.len = (self.number(data.len.into()) % 1400) as u16;
                data.last_len = data.len;
                FromSender::Data(data)
            }
            Forgery::Info => {
                let mut info = self.info.clone()?;
                if let Some(fti) = &mut info.fti {
                    fti.size = u64::from(self.number(fti.size as u32));
                }
                if self.draw.chance(0.3) {
                    info.vouched = None;
                }
                info.content = vec![b'x'; self.draw.below(40) as usize];
                FromSender::Info(info)
            }
            Forgery::Flush => {
                let ackers = (0..self.draw.below(4)).map(|n| NodeId(n as u32 + 2)).collect();
                FromSender::Flush { point: self.point()?, ackers }
            }
            Forgery::Squelch => FromSender::Squelch { point: self.point()?, invalid: Vec::new() },
            _ => FromSender::Eot,
        })
    }
}

impl Engine for Attacker {
    type Message = Parcel;
    type Event = ();

    fn handle(&mut self, _: Time, from: &Arrival, parcel: &Parcel) -> Result<(), Reject> {
        if parcel.forged || !from.destination.ip().is_multicast() {
            return Ok(());
        }
        if let Body::Sender(terms, said) = &parcel.message.body {
            (self.terms, self.source) = (Some(*terms), from.source);
            match said {
                FromSender::Data(data) => self.data = Some(data.clone()),
                FromSender::Info(info) => self.info = Some(info.clone()),
                FromSender::Flush { point, .. } => self.point = Some(*point),
                _ => {}
            }
        }
        Ok(())
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, now: Time, _: Time) -> Option<Transmit<Parcel>> {
        while !self.is_over() && self.next <= now {
            if let Some(transmit) = self.forge() {
                return Some(transmit);
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        (!self.is_over()).then_some(Deadline { at: self.next, timer: "forge" })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }
}
