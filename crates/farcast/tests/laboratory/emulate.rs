//! `farcast emulate` with real programs: ping, iperf3, curl, vsftpd and lftp, uftp, the kernel's TCP. Their
//! measurements are compared with closed formulas and with recorded values.

mod behind;
mod delay;
mod endings;
mod files;
mod kernel_tcp;
mod live;
mod multicast;
mod rate;
mod rights;
mod run;
mod terminal;
mod timeline;
mod uftp;
