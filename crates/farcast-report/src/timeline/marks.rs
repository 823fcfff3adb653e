//! Marks: each kind of event has a shape of its own besides its colour.

use farcast_delivery::Words;

use super::NakFate;
use crate::svg::Svg;

/// Kind of event for which a mark stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    Request,
    Sent,
    Reached(NakFate),
    Lost,
    Complete,
    Milestone,
}

impl Mark {
    /// Returns the class of the mark, which sets its colour, and its shape around a point.
    fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Request => ("request", "m-5 -5h10l-5 10z"),
            Self::Sent => ("sent", "m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0z"),
            Self::Reached(NakFate::Used) => ("used", "m0 -5l5 9h-10z"),
            Self::Reached(NakFate::Known) => ("known", "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"),
            Self::Reached(NakFate::Late) => ("late", "m-4 -4l8 8m0 -8l-8 8"),
            Self::Lost => ("lost", "m0 -5v10"),
            Self::Complete => ("complete", "m0 -5l5 5l-5 5l-5 -5z"),
            Self::Milestone => ("milestone", "m0 -4v8l7 -4z"),
        }
    }

    /// Returns the class of the mark.
    pub(super) fn class(self) -> &'static str {
        self.look().0
    }

    pub(super) fn draw(self, svg: &mut Svg, at: (f64, f64), tip: &str) {
        let (class, path) = self.look();
        svg.shape(class, at, path, tip);
    }
}

/// Fates of NAKs with their names, in the order of display.
pub(super) const FATES: [(NakFate, &str); 3] =
    [(NakFate::Used, "used"), (NakFate::Known, "known"), (NakFate::Late, "late")];

/// Returns the explanation of a fate.
pub(super) fn meaning(fate: NakFate, words: &Words) -> String {
    match fate {
        NakFate::Used => format!("the sender scheduled {} for it", words.segment.many),
        NakFate::Known => "all that it asked for was scheduled already".to_owned(),
        NakFate::Late => format!("a later {} had begun", words.round.one),
    }
}
