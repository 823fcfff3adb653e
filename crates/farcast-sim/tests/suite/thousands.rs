//! Thousands of receivers behind a thin return: everyone has the product soon, and its confirmation takes about as long as
//! the return needs to carry it.

use farcast_sim::outcome::Replication;

use crate::worlds::{THIN, once, transfer};

/// BGAN's bearers, for whose return receivers contend.
const CONTENDED: &str = r#"
receivers = 1000
[protocol]
file = "1 MB"
rate = "300 kbit/s"
[link.forward]
kind = "bgan"
per = 0.001
packing = "packet_aligned"
queue = "unlimited"
propagation = "450 ms"
[link.return]
kind = "bgan"
c_slots = 4
r_slots = 3
r_slot_octets = 168
propagation = "450 ms"
processing = "100 ms"
backoff_frames = 12
queue = "unlimited"
"#;

/// Octets of a receiver's confirmation, IP and UDP headers included, as `docs/src/mftp.md` says.
const CONFIRMATION: f64 = 100.0;

/// Bound for a transfer to thousands.
struct Bound<'a> {
    text: &'a str,
    /// Setting of the product's size.
    size: &'a str,
    settings: &'a [&'a str],
    receivers: f64,
    /// Seconds within which everyone has the product.
    complete_s: f64,
    /// Rate of the return in bit/s, or what its slots carry.
    return_bps: f64,
    /// Multiple of the shortest time in which the return can carry all confirmations.
    spent: f64,
}

impl Bound<'_> {
    /// Runs the transfer, asserts that it keeps the bound, and returns it.
    fn holds(&self) -> Replication {
        let receivers = format!("receivers={}", self.receivers);
        let common = [
            receivers.as_str(),
            "time_limit=1 h",
            "protocol.name=mftp",
            "protocol.group=open_limited",
            self.size,
        ];
        let run = once(self.text, &[&common, self.settings].concat());
        let told = format!("{receivers} {:?}", self.settings);
        let (all, outcome) = (run.completion_time_s.unwrap_or(f64::INFINITY), transfer(&run));
        assert!(all <= self.complete_s, "{told}: all have it after {all} s");
        assert_eq!(outcome.confirmed, self.receivers as u64, "{told}");
        let confirmed = outcome.confirmed_time_s.unwrap_or(f64::INFINITY);
        let most = all + self.spent * self.receivers * CONFIRMATION * 8.0 / self.return_bps;
        assert!(confirmed <= most, "{told}: all are confirmed after {confirmed} s, {most} s are the most");
        run
    }
}

#[test]
fn a_return_that_is_given_is_filled_and_never_overflows() {
    let bound = Bound {
        text: THIN,
        size: "protocol.file=10 MB",
        settings: &["protocol.return_rate=64 kbit/s"],
        receivers: 10_000.0,
        complete_s: 50.0,
        return_bps: 64_000.0,
        spent: 1.5,
    };
    let run = bound.holds();
    assert!(run.back.dropped <= 4, "{} datagrams dropped", run.back.dropped);
    let thin = ["link.return.rate=9.6 kbit/s", "protocol.return_rate=9.6 kbit/s"];
    let run = Bound { settings: &thin, return_bps: 9_600.0, complete_s: 55.0, ..bound }.holds();
    assert!(run.back.dropped <= 4, "{} datagrams dropped", run.back.dropped);
}

#[test]
fn a_return_that_is_not_given_is_found() {
    let bound = Bound {
        text: THIN,
        size: "protocol.file=10 MB",
        settings: &[],
        receivers: 10_000.0,
        complete_s: 50.0,
        return_bps: 64_000.0,
        spent: 1.5,
    };
    bound.holds();
    Bound { settings: &["link.return.rate=9.6 kbit/s"], return_bps: 9_600.0, complete_s: 55.0, ..bound }
        .holds();
}

/// A slotted channel with contention carries at most 37 % of its slots: here 18 datagrams a second. Too many at once would
/// collide again and again, so that none comes through any more.
#[test]
fn receivers_that_contend_do_not_jam_their_return() {
    let slots = 18.0 * CONFIRMATION * 8.0;
    let bound = Bound {
        text: CONTENDED,
        size: "protocol.file=1 MB",
        settings: &[],
        receivers: 1_000.0,
        complete_s: 50.0,
        return_bps: slots,
        spent: 2.5,
    };
    bound.holds();
    Bound { settings: &["protocol.return_rate=14 kbit/s"], spent: 1.6, ..bound }.holds();
    Bound { settings: &["protocol.return_rate=14 kbit/s"], receivers: 10_000.0, spent: 1.6, ..bound }.holds();
}
