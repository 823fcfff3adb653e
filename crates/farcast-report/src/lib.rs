//! What people look at: pages and tables.
//!
//! What is drawn arrives as plain data: this crate knows no engine and no simulator.
#![forbid(unsafe_code)]

pub mod timeline;
