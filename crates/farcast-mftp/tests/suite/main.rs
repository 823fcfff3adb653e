//! Tests of MFTP's engines, one file for each behaviour; RULES.md beside `src` numbers the rules under test.

mod absent;
mod alone;
mod announced;
mod claims;
mod common;
mod comparing;
mod completion;
mod early;
mod fixed_timer;
mod foreseen;
mod groups;
mod hostile;
mod latecomers;
mod laws;
mod leaving;
mod losses;
mod merging;
mod narrow;
mod outages;
mod passes;
mod population;
mod proofs;
mod repair;
mod survey;
mod turns;
mod turns_end;
