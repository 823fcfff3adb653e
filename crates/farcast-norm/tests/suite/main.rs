//! NORM's engines, one file for each behaviour.

mod ahead;
mod asking;
mod commands;
mod common;
mod completion;
mod hostile;
mod laws;
mod repair;
mod several;
