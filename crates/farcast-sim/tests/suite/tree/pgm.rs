//! PGM over the paper's tree: traffic that elements and repairers suppress.

use farcast_sim::outcome::TreeReplication;

use super::{FILE, PAPER, heard, read, run};

/// Returns the paper's topology with PGM, with gateways of these kinds.
fn tree(gateways: [&str; 3], settings: &[&str]) -> super::TreeScenario {
    let (head, _) = PAPER.split_once("[protocol]").unwrap();
    let mut text = head.to_owned();
    for (name, kind) in ["G0", "G1", "G2"].into_iter().zip(gateways) {
        text = text.replace(
            &format!("name = \"{name}\"\nkind = \"router\""),
            &format!("name = \"{name}\"\nkind = \"{kind}\""),
        );
    }
    text +=
        "[protocol]\nname = \"pgm\"\nfile = \"300000 B\"\nrate = \"600 kbit/s\"\nsegment_size = \"1000 B\"\n";
    read(&text, settings).unwrap_or_else(|error| panic!("{error}"))
}

/// Losses on the satellite's edge affect all receivers behind it; losses on their own edges affect each alone.
const LOSSY: [&str; 1] = ["edge.satellite.link.forward.per=0.1"];
const EACH: [&str; 1] = ["edge.B.link.forward.per=0.1"];

/// Asserts that every receiver is complete, and that nothing came twice to network A, which lost nothing.
fn is_complete(one: &TreeReplication) {
    assert_eq!(one.common.transfer.as_ref().unwrap().incomplete, 0);
    for receiver in 1..=10 {
        assert_eq!(heard(one, receiver).useful_octets, FILE, "R{receiver}");
    }
    for receiver in 1..=5 {
        let edge = one.edge(&format!("A.R{receiver}")).unwrap();
        assert_eq!((edge.forward.packets_of("rdata"), edge.forward.packets_of("ncf")), (0, 0), "{edge:?}");
        assert_eq!(heard(one, receiver).useless_octets, 0, "R{receiver}");
    }
    assert_eq!((one.unheard, one.expired), (0, 0));
}

/// Returns the number of NAKs that R6 .. R10 sent.
fn asked(one: &TreeReplication) -> u64 {
    (6..=10).map(|receiver| one.node(&format!("R{receiver}")).unwrap().naks).sum()
}

#[test]
fn elements_ask_once_for_all_below_and_repair_only_who_asked() {
    let one = run(&tree(["element"; 3], &LOSSY), 1);
    is_complete(&one);
    let satellite = one.edge("satellite").unwrap();
    let up = satellite.back.packets_of("nak");
    assert!(up > 20 && asked(&one) > 4 * up, "{up} of {}", asked(&one));
    // Each NAK to the source was confirmed and repaired once, and repairs that were lost were requested again.
    assert_eq!(one.edge("sources.S1").unwrap().forward.packets_of("nak"), up);
    assert_eq!(satellite.forward.packets_of("ncf"), up);
    assert!(satellite.forward.packets_of("rdata") >= heard(&one, 6).repairs);
}

#[test]
fn a_repairer_behind_the_satellite_serves_its_island() {
    let one = run(&tree(["element", "element", "repairer"], &EACH), 1);
    is_complete(&one);
    let satellite = one.edge("satellite").unwrap();
    assert_eq!((satellite.forward.packets_of("rdata"), satellite.back.packets_of("nak")), (0, 0));
    assert!(satellite.back.packets_of("nnak") > 50 && asked(&one) > 100);
    // The round trip between repairer and receivers is 2 ms; a lost repair is requested again.
    assert!(heard(&one, 8).repair_latency_mean_s.unwrap() < 0.5, "{:?}", heard(&one, 8));
}

#[test]
fn a_repairer_before_the_satellite_keeps_repairs_off_the_terrestrial_line() {
    let one = run(&tree(["element", "repairer", "element"], &LOSSY), 1);
    is_complete(&one);
    let terrestrial = one.edge("terrestrial").unwrap();
    assert_eq!((terrestrial.forward.packets_of("rdata"), terrestrial.back.packets_of("nak")), (0, 0));
    assert!(one.edge("satellite").unwrap().forward.packets_of("rdata") >= heard(&one, 6).repairs);
}

#[test]
fn without_elements_repairs_come_to_everybody() {
    let one = run(&tree(["router"; 3], &LOSSY), 1);
    assert_eq!(one.common.transfer.as_ref().unwrap().incomplete, 0);
    let repairs = one.edge("terrestrial").unwrap().forward.packets_of("rdata");
    assert!(repairs > 20);
    // Except for the head of the session, which is sent twice without a request.
    assert_eq!(heard(&one, 1).useless_octets / 1000, repairs - 1);
}
