//! Tests of the engines of one-way delivery, one file for each behaviour.

mod common;
mod hostile;
mod laws;
mod population;
mod receiving;
mod sending;
mod withdrawn;
