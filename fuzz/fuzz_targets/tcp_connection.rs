//! Two connections over an arbitrary path, with forged segments. Neither side panics, the invariants always hold, every
//! deadline makes progress, and the delivered octets are those that were written.
#![no_main]

use std::net::{Ipv4Addr, SocketAddr};

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::{Span, Time};
use farcast_tcp::{
    Algorithm, Config, Connection, DelayedAck, Event, Flags, Increase, InitialWindow, Options, Payload, ReceiveWindow,
    Recovery, Reduction, SackBlock, SackBlocks, Segment, SequenceNumber, State, Timestamps, Window,
};
use libfuzzer_sys::fuzz_target;

const INITIAL: [SequenceNumber; 2] = [SequenceNumber(5000), SequenceNumber(u32::MAX - 3000)];

#[derive(Arbitrary, Debug)]
struct Settings {
    preset: u8,
    recovery: u8,
    reduction: u8,
    switches: u16,
    window: u16,
    send_buffer: u16,
    mss: u16,
    increase: u8,
    delay: u8,
    initial: u8,
    tick: u8,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Write(bool, u16),
    Close(bool),
    Abort(bool),
    Consume(bool, u16),
    /// Delivers one of the segments in flight to this side.
    Deliver(bool, u8),
    Drop(bool, u8),
    Duplicate(bool, u8),
    DeliverAll(bool),
    Wait(u16),
    /// Advances to the next deadline of a side.
    Expire(bool),
    /// Injects a forged segment; its numbers are relative to the position of the streams.
    Inject {
        to: bool,
        sequence: i32,
        acknowledgment: i32,
        flags: u8,
        window: u16,
        len: u16,
        stamps: Option<(u32, u32)>,
        blocks: Vec<(i16, i16)>,
    },
}

impl Settings {
    fn config(&self) -> Config {
        let on = |bit: u32| self.switches >> bit & 1 == 1;
        let sack = on(0);
        let recoveries = [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack];
        let recovery = recoveries[usize::from(self.recovery) % if sack { 5 } else { 2 }];
        let base = match self.preset % 4 {
            0 => return Config::modern(),
            1 => return Config::linux_2_4(),
            _ => Config::default(),
        };
        let mss = 64 + self.mss % 1400;
        let first = on(11).then_some(Window::Octets(u64::from(mss)));
        Config {
            mss,
            recovery,
            sack,
            reduction: [Reduction::Immediate, Reduction::Proportional, Reduction::RateHalving]
                [usize::from(self.reduction) % 3],
            congestion: if on(1) { Algorithm::Cubic } else { Algorithm::Reno },
            increase: if self.increase == 0 {
                Increase::PerAcknowledgment
            } else {
                Increase::Octets(self.increase.into())
            },
            hystart: on(2),
            initial_window: InitialWindow::Segments(1 + u32::from(self.initial % 40)),
            halve_window: on(3),
            limited_transmit: on(4),
            idle_restart: on(5),
            most_burst: on(6).then_some(3),
            frto: on(7),
            undo: on(8),
            tail_loss_probe: on(9),
            dsack: on(10),
            delayed_ack: match self.delay % 3 {
                0 => DelayedAck::Off,
                1 => DelayedAck::Delayed { delay: Span::from_millis(u64::from(self.delay)) },
                _ => DelayedAck::Quick {
                    segments: 4,
                    least: Span::from_millis(40),
                    most: Span::from_millis(200),
                },
            },
            receive_window: ReceiveWindow { size: Window::Octets(u64::from(self.window).max(mss.into())), first },
            send_buffer: u64::from(self.send_buffer).max(mss.into()),
            window_scaling: on(12),
            timestamps: on(13).then_some(Span::from_millis(1 + u64::from(self.tick))),
            nagle: on(14),
            most_retries: 5,
            ..base
        }
    }
}

/// Returns an octet of a side's stream, whether it was written or not.
fn octet(side: usize, offset: u64) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (40 + 8 * side)) as u8
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1 + side as u8).into(), [40_000, 80][side])
}

struct World {
    now: Time,
    sides: [Connection; 2],
    /// Segments in flight to each side.
    flying: [Vec<Segment>; 2],
    arrived: [Vec<u8>; 2],
    compared: [usize; 2],
}

impl World {
    fn take(&mut self, side: usize, segment: &Segment) {
        let from = Arrival::new(address(1 - side), address(side));
        let _ = self.sides[side].handle(self.now, &from, segment);
        // Positions count from the SYN, so that the first octet has position 1.
        let first = segment.sequence.0.wrapping_sub(INITIAL[1 - side].0).wrapping_sub(1);
        self.tell(side, first);
        self.drain(side);
    }

    fn tell(&mut self, side: usize, first: u32) {
        while let Some(event) = self.sides[side].poll_event() {
            let Event::Store { offset, skip, len } = event else { continue };
            let end = offset as usize + usize::from(len);
            let arrived = &mut self.arrived[side];
            arrived.resize(arrived.len().max(end), 0);
            for (n, place) in arrived[offset as usize..end].iter_mut().enumerate() {
                let at = first.wrapping_add(u32::from(skip)).wrapping_add(n as u32);
                *place = octet(1 - side, at.into());
            }
        }
    }

    fn drain(&mut self, side: usize) -> usize {
        let mut sent = 0;
        while let Some(transmit) = self.sides[side].poll_transmit(self.now, Time::NEVER) {
            let segment = transmit.message;
            let end = segment.payload.offset + u64::from(segment.payload.len);
            assert!(end <= self.sides[side].written(), "it sends what was never written");
            self.flying[1 - side].push(segment);
            sent += 1;
            assert!(sent < 100_000, "it sends without end");
        }
        self.tell(side, 0);
        self.sides[side].check();
        let received = self.sides[side].received() as usize;
        for at in self.compared[side]..received {
            assert_eq!(self.arrived[side][at], octet(1 - side, at as u64), "octet {at} is another");
        }
        self.compared[side] = received;
        sent
    }

    fn expire(&mut self, side: usize) {
        let Some(due) = self.sides[side].poll_timeout() else { return };
        self.now = self.now.max(due.at);
        self.sides[side].handle_timeout(self.now);
        let sent = self.drain(side);
        let next = self.sides[side].poll_timeout();
        assert!(sent > 0 || next.is_none_or(|next| next.at > self.now), "{due:?} makes no progress");
    }

    /// Handles the deadlines that are due now, before time advances.
    fn catch_up(&mut self) {
        for side in 0..2 {
            if self.sides[side].poll_timeout().is_some_and(|due| due.at <= self.now) {
                self.expire(side);
            }
        }
    }

    fn inject(&mut self, step: &Step) {
        let Step::Inject { to, sequence, acknowledgment, flags, window, len, stamps, blocks } = step else { return };
        let (side, other) = (usize::from(*to), 1 - usize::from(*to));
        let received = self.sides[side].received() as u32;
        let acknowledged = self.sides[side].acknowledged() as u32;
        let mut sack = SackBlocks::default();
        for &(left, right) in blocks {
            let number = |distance: i16| INITIAL[side].plus(1).plus(acknowledged).plus(i32::from(distance) as u32);
            sack.push(SackBlock { left: number(left), right: number(right) });
        }
        // A forged SYN would be believed, and move all numbers.
        let opening = matches!(self.sides[side].state(), State::Listen | State::SynSent);
        let flags = if opening { flags & !Flags::SYN.0 } else { *flags };
        let segment = Segment {
            source_port: address(other).port(),
            destination_port: address(side).port(),
            sequence: INITIAL[other].plus(1).plus(received).plus(*sequence as u32),
            acknowledgment: INITIAL[side].plus(1).plus(acknowledged).plus(*acknowledgment as u32),
            flags: Flags(flags),
            window: *window,
            options: Options {
                timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
                sack,
                ..Options::default()
            },
            payload: Payload { offset: 0, len: len % 1500 },
            ..Segment::default()
        };
        self.take(side, &segment);
    }

    fn pick(&self, side: usize, index: u8) -> Option<usize> {
        let count = self.flying[side].len();
        (count > 0).then(|| usize::from(index) % count)
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Write(side, len) => {
                self.sides[usize::from(side)].write(len.into());
                self.drain(side.into());
            }
            Step::Close(side) => {
                self.sides[usize::from(side)].close();
                self.drain(side.into());
            }
            Step::Abort(side) => {
                self.sides[usize::from(side)].abort();
                self.drain(side.into());
            }
            Step::Consume(side, len) => {
                self.sides[usize::from(side)].consume(len.into());
                self.drain(side.into());
            }
            Step::Deliver(side, index) => {
                if let Some(index) = self.pick(side.into(), index) {
                    let segment = self.flying[usize::from(side)].remove(index);
                    self.take(side.into(), &segment);
                }
            }
            Step::Drop(side, index) => {
                if let Some(index) = self.pick(side.into(), index) {
                    self.flying[usize::from(side)].remove(index);
                }
            }
            Step::Duplicate(side, index) => {
                if let Some(index) = self.pick(side.into(), index) {
                    let segment = self.flying[usize::from(side)][index];
                    self.take(side.into(), &segment);
                }
            }
            Step::DeliverAll(side) => {
                for segment in std::mem::take(&mut self.flying[usize::from(side)]) {
                    self.take(side.into(), &segment);
                }
            }
            Step::Wait(milliseconds) => {
                self.now += Span::from_millis(milliseconds.into());
                self.catch_up();
            }
            Step::Expire(side) => {
                self.expire(side.into());
                self.catch_up();
            }
            Step::Inject { .. } => self.inject(step),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok([one, other]) = <[Settings; 2]>::arbitrary(&mut input) else { return };
    let (Ok(client), Ok(server)) = (
        Connection::connect(one.config(), address(0), address(1), INITIAL[0]),
        Connection::listen(other.config(), address(1), INITIAL[1]),
    ) else {
        return;
    };
    let mut world = World {
        now: Time::ZERO,
        sides: [client, server],
        flying: [Vec::new(), Vec::new()],
        arrived: [Vec::new(), Vec::new()],
        compared: [0; 2],
    };
    world.drain(0);
    // Most of the time the handshake is not what is looked at.
    if one.preset < 192 {
        for side in [1, 0, 1] {
            world.now += Span::from_millis(50);
            world.step(&Step::DeliverAll(side == 1));
        }
    }
    for _ in 0..500 {
        if input.is_empty() {
            break;
        }
        let Ok(step) = Step::arbitrary(&mut input) else { return };
        world.step(&step);
    }
});
