//! UMTS Radio Link Control (RLC) in Acknowledged Mode: 3GPP TS 25.322, without I/O.
//!
//! [`pdu`] has what entities send each other.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod pdu;
