//! FTP: clients and servers against each other, against scripts of RFC 959, and against hostile octets; one file for
//! each kind of behaviour.

mod clocks;
mod hostile;
mod laws;
mod losses;
mod refusals;
mod rounds;
mod script;
mod transfers;
mod world;
