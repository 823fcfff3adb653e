//! Losses by given bit strings.

use alloc::vec::Vec;

use farcast_core::{Bitmap, Run, Time};

use super::{Among, Losses, sorted};
use crate::LinkError;

/// Rule for the frames behind the end of the error vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtEnd {
    /// The vectors begin again; all must have the same length.
    Repeat,
    /// Nothing more is lost.
    Keep,
}

/// Explicit losses: a bit string for each receiver, one bit for each frame of the channel, 1 where it is lost.
///
/// Frames are counted for the channel, by draws: every receiver's vector moves on with every frame, whichever receivers
/// are drawn. So a fate depends on nothing but the number of the frame, and the process counts as memoryless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorVectors {
    /// Receivers that lose something, frame by frame, ascending within each frame.
    losers: Vec<u32>,
    /// Index in `losers` at which each frame's part begins, and the end of the last part.
    begins: Vec<usize>,
    at_end: AtEnd,
    /// The number of the next frame.
    next: u64,
}

impl ErrorVectors {
    /// Creates losses in which receiver i loses the frames that are set in `vectors[i]`. Receivers past the last vector
    /// lose nothing.
    ///
    /// # Errors
    /// [`LinkError::VectorLength`] if the vectors are to repeat and differ in length or are empty.
    pub fn new(vectors: &[Bitmap], at_end: AtEnd) -> Result<Self, LinkError> {
        let frames = vectors.iter().map(Bitmap::len).max().unwrap_or(0);
        if at_end == AtEnd::Repeat && (frames == 0 || vectors.iter().any(|vector| vector.len() != frames)) {
            return Err(LinkError::VectorLength);
        }
        let mut begins = alloc::vec![0; frames as usize + 1];
        let marks = |vector: &Bitmap| vector.iter_runs().flat_map(Run::segments).collect::<Vec<_>>();
        for frame in vectors.iter().flat_map(marks) {
            begins[frame as usize + 1] += 1;
        }
        for frame in 1..begins.len() {
            begins[frame] += begins[frame - 1];
        }
        let mut ends = begins.clone();
        let mut losers = alloc::vec![0; ends[frames as usize]];
        for (receiver, vector) in (0u32..).zip(vectors) {
            for frame in marks(vector) {
                losers[ends[frame as usize]] = receiver;
                ends[frame as usize] += 1;
            }
        }
        Ok(Self { losers, begins, at_end, next: 0 })
    }

    /// Returns the receivers that lose frame `number`, ascending.
    fn losers(&self, number: u64) -> &[u32] {
        let frames = self.begins.len() as u64 - 1;
        let frame = if self.at_end == AtEnd::Repeat { number % frames } else { number };
        if frame < frames {
            &self.losers[self.begins[frame as usize]..self.begins[frame as usize + 1]]
        } else {
            &[]
        }
    }
}

impl Losses for ErrorVectors {
    fn draw(&mut self, _now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        sorted::answer(self.losers(self.next), among, lost);
        self.next = self.next.saturating_add(1);
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

/// Reads an error vector from text: `0` for a frame that is kept, `1` for a frame that is lost. White space is skipped.
///
/// # Errors
/// [`LinkError::VectorSymbol`] for any other character.
pub fn parse_error_vector(text: &str) -> Result<Bitmap, LinkError> {
    let symbols = || text.chars().filter(|symbol| !symbol.is_whitespace());
    let mut vector = Bitmap::new(u32::try_from(symbols().count()).unwrap_or(u32::MAX));
    for (frame, symbol) in (0..vector.len()).zip(symbols()) {
        match symbol {
            '0' => {}
            '1' => {
                vector.insert(frame);
            }
            other => return Err(LinkError::VectorSymbol(other)),
        }
    }
    Ok(vector)
}

#[cfg(test)]
mod tests;
