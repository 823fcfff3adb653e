//! MFTP's engines, one file for each behaviour; RULES.md beside `src` numbers what is tested here.

mod common;
mod completion;
mod groups;
mod hostile;
mod laws;
mod leaving;
mod passes;
mod repair;
