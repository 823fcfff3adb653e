//! Content and length of status reports, without their octets.

use core::slice;

use crate::pdu::{MODULUS, RelativeList, SequenceNumber, Status, StatusBitmap, SuperField};

/// Bits before the first super field: D/C (or R2) and the PDU type (TS 25.322 section 9.2.1.5).
pub const STATUS_HEADER_BITS: usize = 4;
/// The code word of the error burst indicator: the next number counts a burst (section 9.2.2.11.6).
pub(crate) const ERROR_BURST: u8 = 0b0001;

impl SuperField {
    /// Returns the length in bits, the type included.
    pub fn bits(&self) -> usize {
        4 + match self {
            Self::Window(_) | Self::Ack(_) | Self::Poll(_) => 12,
            Self::List(pairs) => 4 + 16 * pairs.len(),
            Self::Bitmap(bitmap) => 4 + 12 + 8 * bitmap.octets.len(),
            Self::RelativeList(list) => 4 + 12 + 4 * list.words.len(),
            Self::MoveWindow(window) => 4 + 12 * window.sns.len() + 4,
            Self::MoveWindowAck { .. } => 4 + 12,
        }
    }

    /// Returns the PDUs that the field reports as missing: the first of each run and its length, in the field's order,
    /// at most [`MODULUS`] numbers in all. Fields other than LIST, BITMAP and RLIST report none.
    pub fn missing(&self) -> impl Iterator<Item = (SequenceNumber, u16)> + Clone + '_ {
        match self {
            Self::List(pairs) => Runs::List(pairs.iter()),
            Self::Bitmap(bitmap) => Runs::Bitmap(BitmapRuns { bitmap, at: 0 }),
            Self::RelativeList(list) => Runs::Relative(RelativeRuns::new(list)),
            _ => Runs::None,
        }
    }
}

impl Status {
    /// Returns the bits that the report needs: its header and its super fields. `NO_MORE` follows if the last field is
    /// not an ACK and the space does not end there.
    pub fn bits(&self) -> usize {
        STATUS_HEADER_BITS + self.fields.iter().map(SuperField::bits).sum::<usize>()
    }

    /// Returns the octets that the report needs.
    pub fn octets(&self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Returns the number of the ACK: LSN.
    pub fn ack(&self) -> Option<SequenceNumber> {
        self.fields.iter().find_map(|field| match field {
            SuperField::Ack(sn) => Some(*sn),
            _ => None,
        })
    }

    /// Returns the PDUs that the report names as missing, field by field: the first of each run and its length.
    pub fn missing(&self) -> impl Iterator<Item = (SequenceNumber, u16)> + Clone + '_ {
        self.fields.iter().flat_map(SuperField::missing)
    }
}

impl RelativeList {
    /// Returns the PDUs that the list names as missing: the first of each run and its length.
    ///
    /// The numbers in the code words come least significant digit first: a word that ends a number has its most
    /// significant three bits (section 9.2.2.11.6). A number is the distance from the last missing PDU to the next one.
    /// Behind the error burst indicator it is the number of PDUs that follow the last one without a gap. PDUs
    /// [`MODULUS`] or more behind the first are left out.
    pub fn missing(&self) -> impl Iterator<Item = (SequenceNumber, u16)> + Clone + '_ {
        RelativeRuns::new(self)
    }

    /// Returns `true` if the code words are numbers and nothing else: the last word ends a number, an error burst
    /// indicator stands before a number, and the list does not reach round to its own beginning.
    pub(crate) fn is_valid(&self) -> bool {
        let mut words = RelativeNumbers(self.words.iter());
        let mut reach = 0;
        while !words.0.as_slice().is_empty() {
            let Some((_, number)) = words.next() else { return false };
            reach += u32::from(number);
        }
        reach < u32::from(MODULUS)
    }
}

/// The runs of a super field.
#[derive(Clone)]
enum Runs<'a> {
    None,
    List(slice::Iter<'a, (SequenceNumber, u8)>),
    Bitmap(BitmapRuns<'a>),
    Relative(RelativeRuns<'a>),
}

impl Iterator for Runs<'_> {
    type Item = (SequenceNumber, u16);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::None => None,
            Self::List(pairs) => pairs.next().map(|&(first, more)| (first, u16::from(more) + 1)),
            Self::Bitmap(runs) => runs.next(),
            Self::Relative(runs) => runs.next(),
        }
    }
}

/// The runs of zeros in a bitmap.
#[derive(Clone)]
struct BitmapRuns<'a> {
    bitmap: &'a StatusBitmap,
    at: u16,
}

impl Iterator for BitmapRuns<'_> {
    type Item = (SequenceNumber, u16);

    fn next(&mut self) -> Option<Self::Item> {
        let len = self.bitmap.len();
        let start = (self.at..len).find(|&offset| self.bitmap.is_missing(offset))?;
        let end = (start..len).find(|&offset| !self.bitmap.is_missing(offset)).unwrap_or(len);
        self.at = end;
        Some((self.bitmap.first.plus(start), end - start))
    }
}

/// The numbers of a relative list, each with `true` if it counts a burst. Ends early where the words make no sense;
/// then words are left, or the last was taken without making a number.
#[derive(Clone)]
struct RelativeNumbers<'a>(slice::Iter<'a, u8>);

impl Iterator for RelativeNumbers<'_> {
    type Item = (bool, u16);

    fn next(&mut self) -> Option<Self::Item> {
        let mut word = *self.0.next()?;
        let burst = word == ERROR_BURST;
        if burst {
            word = *self.0.next()?;
        }
        let mut number = 0;
        // Four words make 12 bits: there is no larger distance.
        for digit in 0..4 {
            if word == ERROR_BURST {
                return None;
            }
            number |= u16::from(word >> 1 & 7) << (3 * digit);
            if word & 1 == 1 {
                return Some((burst, number));
            }
            word = *self.0.next()?;
        }
        None
    }
}

/// The runs of a relative list.
#[derive(Clone)]
struct RelativeRuns<'a> {
    first: SequenceNumber,
    numbers: RelativeNumbers<'a>,
    /// The run that is not complete: its start and its end, as offsets from `first`.
    open: Option<(u16, u16)>,
}

impl<'a> RelativeRuns<'a> {
    fn new(list: &'a RelativeList) -> Self {
        Self { first: list.first, numbers: RelativeNumbers(list.words.iter()), open: Some((0, 1)) }
    }
}

impl Iterator for RelativeRuns<'_> {
    type Item = (SequenceNumber, u16);

    fn next(&mut self) -> Option<Self::Item> {
        let (start, mut end) = self.open.take()?;
        for (burst, number) in self.numbers.by_ref() {
            // Neither number is above 4096.
            let next = (end + number).min(MODULUS);
            if burst || number == 1 {
                end = next;
            } else {
                self.open = Some((next - 1, next)).filter(|_| end + number <= MODULUS);
                break;
            }
        }
        Some((self.first.plus(start), end - start))
    }
}

#[cfg(test)]
mod tests;
