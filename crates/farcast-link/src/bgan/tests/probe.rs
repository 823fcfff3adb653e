//! A message for tests: a run of segments whose lengths follow a table.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::stage::{Frame, Output};
use farcast_core::{Message, Run, Span, Stage, Time};

/// Segments of an object; segment s has the length `lengths[s % lengths.len()]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::bgan) struct Probe {
    pub(in crate::bgan) run: Run,
    pub(in crate::bgan) lengths: Arc<[usize]>,
}

impl Message for Probe {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::new(self.run.count()).expect("a run is not empty")
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Self { run, lengths } = self;
        let (head, tail) = run.split(count);
        (Self { run: head, lengths: lengths.clone() }, tail.map(|run| Self { run, lengths }))
    }

    fn wire_len(&self, segment: u32) -> usize {
        self.lengths[(self.run.first() + segment) as usize % self.lengths.len()]
    }
}

/// Segments `first .. first + count`, `spacing` apart.
pub(in crate::bgan) fn run(first: u32, count: u32, lengths: &[usize], spacing: Span) -> Frame<Probe> {
    let run = Run::new(first, count).expect("a valid run");
    Frame { message: Probe { run, lengths: lengths.into() }, overhead: 0, spacing }
}

/// One packet, number `id`, of `octets`.
pub(in crate::bgan) fn packet(id: u32, octets: usize) -> Frame<Probe> {
    run(id, 1, &[octets], Span::ZERO)
}

/// Returns the outputs, segment by segment: time and number.
pub(in crate::bgan) fn drain(stage: &mut impl Stage<Probe>) -> Vec<(Time, u32)> {
    let mut left = Vec::new();
    while let Some(output) = stage.poll_output() {
        left.extend(segments(&output));
    }
    left
}

fn segments(output: &Output<Probe>) -> impl Iterator<Item = (Time, u32)> {
    let (at, spacing, first) = (output.at, output.frame.spacing, output.frame.message.run.first());
    output
        .frame
        .message
        .run
        .segments()
        .map(move |segment| (at + spacing * u64::from(segment - first), segment))
}

/// Serves every timer up to `until` and returns what has left.
pub(in crate::bgan) fn drive(stage: &mut impl Stage<Probe>, until: Time) -> Vec<(Time, u32)> {
    let mut left = drain(stage);
    while let Some(deadline) = stage.poll_timeout().filter(|deadline| deadline.at <= until) {
        stage.handle_timeout(deadline.at);
        left.extend(drain(stage));
    }
    left
}

pub(in crate::bgan) fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}
