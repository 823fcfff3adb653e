use super::super::{
    AtEnd, Bernoulli, ErrorVectors, NoLoss, OutageLength, Outages, RandomOutages, parse_error_vector,
};
use super::*;
use crate::losses::tests::{assert_share, losers, probability, stream};
use farcast_core::Span;

fn vectors(texts: [&str; 3]) -> Box<dyn Losses> {
    let maps = texts.map(|text| parse_error_vector(text).expect("bits"));
    Box::new(ErrorVectors::new(&maps, AtEnd::Repeat).expect("one length"))
}

#[test]
fn the_union_is_ascending_and_without_duplicates() {
    let mut several = Several::new(alloc::vec![
        vectors(["100", "010", "010"]),
        Box::new(NoLoss),
        vectors(["100", "110", "000"]),
    ]);
    assert_eq!(losers(&mut several, Time::ZERO, 1, Among::All), [0, 1]);
    // The second frame is asked about the first receiver only, yet all vectors move on.
    assert_eq!(losers(&mut several, Time::ZERO, 1, Among::These(&[0])), []);
    assert_eq!(losers(&mut several, Time::ZERO, 1, Among::All), []);
    // What is in the list already stays.
    let mut lost = alloc::vec![77];
    several.draw(Time::ZERO, 1, Among::All, &mut lost);
    assert_eq!(lost, [77, 0, 1]);
    assert_eq!(losers(&mut several, Time::ZERO, 1, Among::All), [1, 2]);
}

#[test]
fn nothing_loses_nothing() {
    assert_eq!(losers(&mut Several::default(), Time::ZERO, 1, Among::All), []);
    assert!(Several::default().is_memoryless());
}

#[test]
fn a_process_draws_the_same_alone_and_in_company() {
    let (p, q) = (0.1, 0.25);
    let mut alone = Bernoulli::new(probability(p), 100, stream(80));
    let other = Bernoulli::new(probability(q), 100, stream(81));
    let mut several = Several::new(alloc::vec![Box::new(other), Box::new(alone.clone())]);
    let mut lost = 0;
    for _ in 0..5000 {
        let mine = losers(&mut alone, Time::ZERO, 1, Among::All);
        let both = losers(&mut several, Time::ZERO, 1, Among::All);
        assert!(mine.iter().all(|who| both.contains(who)));
        lost += both.len() as u64;
    }
    assert_share(lost, 500_000, 1.0 - (1.0 - p) * (1.0 - q));
}

#[test]
fn it_is_memoryless_if_all_are() {
    let memoryless = || Box::new(Bernoulli::new(probability(0.1), 3, stream(82))) as Box<dyn Losses>;
    assert!(Several::new(alloc::vec![memoryless(), vectors(["1", "0", "0"])]).is_memoryless());
    let second = Span::from_secs(1);
    let config = RandomOutages { between: second, length: OutageLength::Fixed(second), common: false };
    let outages = Outages::random(config, 3, stream(83)).expect("valid");
    assert!(!Several::new(alloc::vec![memoryless(), Box::new(outages)]).is_memoryless());
}
