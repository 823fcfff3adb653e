//! Sealed transfers to receivers that a file lists.

use std::fs;

use crate::common::names;
use crate::party::Parties;

#[test]
fn those_in_a_file_get_the_keys() {
    for protocol in ["mftp", "norm", "one-way"] {
        let parties = Parties::new(&["bob", "eve"]);
        let place = &parties.place;
        let file = place.file("product.bin", 10_000);
        let list = place.path("stations.txt");
        let to = format!("@{}", list.display());
        let args = ["--rate", "20 Mbit/s", "--protocol", protocol, "--receivers", &to];
        let by = ["--protocol", protocol];

        fs::write(&list, "bob\nzoe # has no key\n").unwrap();
        let ended = parties.send(&file, &args).wait();
        ended.assert_failed(2, &["stations.txt:2: zoe has no key here"]);

        fs::write(&list, "# those on watch\nbob\n").unwrap();
        let (bob, eve) =
            (parties.receive("bob", &[&by[..], &["--once"]].concat()), parties.receive("eve", &by));
        let sent = parties.send(&file, &args).wait();
        assert_eq!(sent.summary()["exit_code"], if protocol == "one-way" { 4 } else { 0 }, "{protocol}");
        bob.succeed();
        eve.terminate();
        eve.wait();
        place.assert_received(&file, &["bob"]);
        assert!(!names(&place.path("eve")).iter().any(|name| name == "product.bin"), "{protocol}");
    }
}
