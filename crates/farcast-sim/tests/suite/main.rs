//! The simulated world against itself in another form, and against closed forms.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod law11;
