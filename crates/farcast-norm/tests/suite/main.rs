//! NORM's engines, one file for each behaviour.

mod ahead;
mod asking;
mod bottleneck;
mod bounds;
mod commands;
mod common;
mod completion;
mod congestion;
mod crowd;
mod hostile;
mod laws;
mod pieces;
mod repair;
mod several;
