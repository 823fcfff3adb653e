//! Bit errors on a line.

use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;

use farcast_core::Probability;
use farcast_core::random::RandomStream;

use super::error::PppError;

/// Cause of bit errors on a line. The 8 data bits of each octet are exposed, start and stop bits are not.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum LineErrors {
    /// No errors.
    #[default]
    None,
    /// Independent errors: every bit is in error with this probability.
    Ber(Probability),
    /// A repeated error vector, xored with the stream of octets as in a space-to-ground link simulator. It moves on by
    /// 8 bits with each octet that passes, and stands still while the line is idle or cut off.
    Vector {
        /// The vector.
        vector: ErrorVector,
        /// The bit that the first octet meets first; drawn if `None`.
        start: Option<u64>,
    },
}

impl LineErrors {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`PppError::VectorStart`] if a vector begins beyond its end.
    pub const fn check(&self) -> Result<(), PppError> {
        match self {
            Self::Vector { vector, start: Some(start) } if *start >= vector.bits => {
                Err(PppError::VectorStart { start: *start, bits: vector.bits })
            }
            _ => Ok(()),
        }
    }
}

/// A string of bits, few of which are errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorVector {
    bits: u64,
    /// The positions of errors, ascending.
    errors: Vec<u64>,
}

impl ErrorVector {
    /// Creates a vector of `bits` with errors at these positions, from 0 and ascending.
    ///
    /// # Errors
    /// [`PppError::EmptyVector`], [`PppError::VectorOrder`] or [`PppError::VectorPosition`] if there is no such vector.
    pub fn new(bits: u64, errors: Vec<u64>) -> Result<Self, PppError> {
        if bits == 0 {
            return Err(PppError::EmptyVector);
        }
        if let Some(pair) = errors.windows(2).find(|pair| pair[1] <= pair[0]) {
            return Err(PppError::VectorOrder(pair[1]));
        }
        match errors.last() {
            Some(&position) if position >= bits => Err(PppError::VectorPosition { position, bits }),
            _ => Ok(Self { bits, errors }),
        }
    }

    /// Draws a vector of `bits` with errors at `count` different places. Every choice of places is equally likely
    /// (Floyd's sampling, CACM 30(9), 1987).
    ///
    /// # Errors
    /// [`PppError::EmptyVector`] or [`PppError::VectorErrors`] if there is no such vector.
    pub fn random(bits: u64, count: u64, stream: &mut RandomStream) -> Result<Self, PppError> {
        let rest = bits.checked_sub(count).ok_or(PppError::VectorErrors { count, bits })?;
        let mut places = BTreeSet::new();
        for last in rest..bits {
            let place = stream.below(last.saturating_add(1));
            if !places.insert(place) {
                places.insert(last);
            }
        }
        Self::new(bits, places.into_iter().collect())
    }

    /// Reads the bits themselves: `0` for a bit that passes, `1` for a bit in error. White space is skipped.
    ///
    /// # Errors
    /// [`PppError::VectorSymbol`] for any other character, [`PppError::EmptyVector`] if there are no bits.
    pub fn from_bits(text: &str) -> Result<Self, PppError> {
        let mut bits = 0;
        let mut errors = Vec::new();
        for symbol in text.chars().filter(|symbol| !symbol.is_whitespace()) {
            match symbol {
                '0' => {}
                '1' => errors.push(bits),
                other => return Err(PppError::VectorSymbol(other.to_string())),
            }
            bits += 1;
        }
        Self::new(bits, errors)
    }

    /// Reads the positions of errors in a vector of `bits`: whole numbers from 0, ascending, with white space or commas
    /// between them.
    ///
    /// # Errors
    /// [`PppError::VectorSymbol`] for a word that is no number, and the errors of [`ErrorVector::new`].
    pub fn from_positions(bits: u64, text: &str) -> Result<Self, PppError> {
        let words = text.split(|symbol: char| symbol.is_whitespace() || symbol == ',');
        let position = |word: &str| word.parse().map_err(|_| PppError::VectorSymbol(word.to_string()));
        let errors = words.filter(|word| !word.is_empty()).map(position).collect::<Result<_, _>>()?;
        Self::new(bits, errors)
    }

    /// Returns the length in bits, at least 1.
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the positions of the errors, ascending.
    pub fn errors(&self) -> &[u64] {
        &self.errors
    }

    /// Returns the first bit in error among `count` bits from `from` on, counted from `from`; `None` if there is no
    /// error. The vector repeats, and `from` is below `bits`.
    fn hit(&self, from: u64, count: u64) -> Option<u64> {
        let &first = self.errors.first()?;
        let next = self.errors.get(self.errors.partition_point(|&error| error < from));
        let distance = next.map_or_else(|| self.bits - from + first, |&next| next - from);
        Some(distance).filter(|&distance| distance < count)
    }
}

/// Bit errors of one line, drawn as its octets pass.
#[derive(Clone, Debug)]
pub(super) enum Exposure {
    None,
    /// Independent errors: a geometric number of bits passes before the next.
    Random {
        ber: f64,
        spared: u64,
        stream: RandomStream,
    },
    Repeated {
        vector: ErrorVector,
        /// The bit that the next octet meets first.
        at: u64,
    },
}

impl Exposure {
    pub(super) fn new(errors: LineErrors, mut stream: RandomStream) -> Self {
        match errors {
            LineErrors::None => Self::None,
            LineErrors::Ber(ber) if ber == Probability::ZERO => Self::None,
            LineErrors::Ber(ber) => {
                let ber = ber.get();
                let spared = stream.failures_before_success(ber);
                Self::Random { ber, spared, stream }
            }
            LineErrors::Vector { vector, start } => {
                let at = start.unwrap_or_else(|| stream.below(vector.bits));
                Self::Repeated { vector, at }
            }
        }
    }

    /// Lets `octets` pass. Returns the first of their bits that is in error, if there is one.
    pub(super) fn pass(&mut self, octets: u64) -> Option<u64> {
        let bits = octets.saturating_mul(8);
        match self {
            Self::None => None,
            Self::Random { ber, spared, stream } => {
                let hit = Some(*spared).filter(|&spared| spared < bits);
                // Bits have no memory: behind these octets the next error is drawn anew.
                *spared = if hit.is_some() { stream.failures_before_success(*ber) } else { *spared - bits };
                hit
            }
            Self::Repeated { vector, at } => {
                let hit = vector.hit(*at, bits);
                let moved = u128::from(*at) + u128::from(bits);
                *at = (moved % u128::from(vector.bits)) as u64;
                hit
            }
        }
    }
}
