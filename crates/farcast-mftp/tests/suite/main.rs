//! MFTP's engines, one file for each behaviour; RULES.md beside `src` numbers what is tested here.

mod common;
mod completion;
mod laws;
mod passes;
