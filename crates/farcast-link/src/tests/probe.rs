//! A message whose datagrams are numbered, for tests of stages.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{Frame, Stage};
use farcast_core::{Run, Span, Time};

/// A run of datagrams of `octets` each; number `short`, the last that was made, has `last` octets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    pub(crate) run: Run,
    octets: usize,
    short: u32,
    last: usize,
}

impl Probe {
    pub(crate) fn new(first: u32, count: u32, octets: usize, last: usize) -> Self {
        let run = Run::new(first, count).expect("at least one");
        Self { run, octets, short: run.last(), last }
    }
}

impl Message for Probe {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::new(self.run.count()).expect("at least one")
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let (head, tail) = self.run.split(count);
        (Self { run: head, ..self.clone() }, tail.map(|run| Self { run, ..self }))
    }

    fn wire_len(&self, segment: u32) -> usize {
        if self.run.first() + segment == self.short { self.last } else { self.octets }
    }
}

/// Returns the time `nanoseconds` after the start.
pub(crate) fn ns(nanoseconds: u64) -> Time {
    Time::from_nanos(nanoseconds)
}

/// Creates a run of [`Probe`]s, `spacing` nanoseconds apart.
pub(crate) fn frame(first: u32, count: u32, octets: usize, last: usize, spacing: u64) -> Frame<Probe> {
    let spacing = Span::from_nanos(spacing);
    Frame { message: Probe::new(first, count, octets, last), overhead: 0, spacing }
}

/// Appends the present outputs of `stage`, datagram by datagram: time and number.
pub(crate) fn flatten(stage: &mut impl Stage<Probe>, out: &mut Vec<(Time, u32)>) {
    while let Some(output) = stage.poll_output() {
        let frame = output.frame;
        let each = (0u64..).zip(frame.message.run.segments());
        out.extend(each.map(|(k, number)| (output.at + frame.spacing * k, number)));
    }
}
