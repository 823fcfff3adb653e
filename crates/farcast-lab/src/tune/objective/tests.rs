use super::*;
use crate::{World, shipped};

#[test]
fn a_statistic_stands_behind_the_last_dot() {
    let read = |text: &str| text.parse::<Measured>().unwrap();
    assert_eq!(
        read("completion_time_s.p95"),
        Measured { figure: "completion_time_s".into(), statistic: Statistic::Quantile(95) }
    );
    assert_eq!(
        read("forward.octets"),
        Measured { figure: "forward.octets".into(), statistic: Statistic::Mean }
    );
    assert_eq!(read("receiver_time_s.p50.max").statistic, Statistic::Greatest);
    assert_eq!(read("naks.sent").to_string(), "naks.sent.mean");
    assert!("".parse::<Measured>().is_err() && "a b".parse::<Measured>().is_err());
}

#[test]
fn what_was_not_reached_is_later_than_all_else() {
    let values = [3.0, f64::INFINITY, 1.0, 2.0, f64::INFINITY];
    assert_eq!(Statistic::Quantile(50).of(&values), 3.0);
    assert_eq!(Statistic::Quantile(5).of(&values), 1.2);
    assert_eq!(Statistic::Quantile(90).of(&values), f64::INFINITY);
    assert_eq!(Statistic::Mean.of(&values), f64::INFINITY);
    assert_eq!(Statistic::Least.of(&values), 1.0);
    assert_eq!(Statistic::Greatest.of(&values), f64::INFINITY);
}

#[test]
fn bounds_are_numbers_or_shares_of_keys() {
    let document = shipped::document("mftp-bgan").unwrap();
    World::read(&document).unwrap();
    let read = |text: &str| Bound::parse(text, &document);
    let bound = read("octets_forward < 1.2 * file").unwrap();
    assert_eq!((bound.measured.to_string().as_str(), bound.limit), ("forward.octets.mean", 1.2e6));
    assert_eq!(bound.excess(1.3e6), 1e5);
    assert_eq!(read("completion_time_s.p95 <= 90 s").unwrap().limit, 90.0);
    let above = read("flows.a.goodput_bit_per_s>100 kbit/s").unwrap();
    assert_eq!((above.side, above.limit, above.excess(150e3)), (Side::Above, 100e3, -50e3));
    assert_eq!(read("a < 2 * protocol.rate").unwrap().limit, 600e3);
    assert!(matches!(read("a < 2 * nothing"), Err(ObjectiveError::Key { .. })));
    for wrong in ["a", "a < x * file", "< 5", "a < "] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
