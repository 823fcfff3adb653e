//! Recovery after a killed receiver, a killed sender, and both.

use serde_json::Value;

use crate::common::{self, Place, dtus_sent, member, wait_for_journal, wait_until};

const LEN: usize = 3_000_000;
/// Rate at which the file takes three seconds.
const RATE: [&str; 2] = ["--rate", "8 Mbit/s"];

fn send_args(receivers: &str) -> Vec<&str> {
    [&RATE[..], &["--receivers", receivers]].concat()
}

/// Waits for a checkpoint after the first one, so that the journal covers some segments.
fn wait_for_checkpoints(place: &Place, name: &str) {
    let journal = wait_for_journal(&place.path(name));
    let changed = || std::fs::metadata(&journal).and_then(|m| m.modified()).ok();
    let first = changed();
    wait_until("a second checkpoint", || changed() != first);
}

/// Returns the segments of the product, and those that a receiver had at its last start.
fn held(summary: &Value) -> (u64, u64) {
    (summary["segments"].as_u64().unwrap(), summary["segments_held_before"].as_u64().unwrap())
}

#[test]
fn a_receiver_killed_midway_goes_on() {
    let place = Place::new();
    let file = place.file("product.bin", LEN);
    let killed = place.receive("ant", &[]);
    let other = place.receive("bee", &["--simulate-loss", "2 %"]);
    let sender = place.send(&[&file], &send_args("ant,bee"));
    wait_for_checkpoints(&place, "ant");
    killed.kill9();
    assert!(!place.path("ant").join("product.bin").exists(), "a file that is not complete has no name");
    let again = place.receive("ant", &[]);
    let got = again.succeed().summary();
    other.succeed();
    let sent = sender.succeed().summary();
    place.assert_received(&file, &["ant", "bee"]);
    let (segments, before) = held(&got);
    assert!(before > 0, "nothing was kept: {got}");
    // The sender sends the file once, and the data that passed unheard again. That is far less than another file.
    assert!(dtus_sent(&sent) < segments * 8 / 5, "{sent}");
    assert_eq!(member(&sent, "ant")["complete"], true);
}

#[test]
fn a_receiver_killed_long_after_it_was_confirmed_goes_on() {
    let place = Place::new();
    let file = place.file("product.bin", LEN);
    let killed = place.receive("ant", &[]);
    // 24 s, with announcements every five; the third is the last that has this receiver's confirmation.
    let sender =
        place.send(&[&file], &["--rate", "1 Mbit/s", "--receivers", "ant", "--status-retries", "20"]);
    killed.until("files");
    common::pause(std::time::Duration::from_secs(16));
    killed.kill9();
    let got = place.receive("ant", &[]).succeed().summary();
    let sent = sender.succeed().summary();
    place.assert_received(&file, &["ant"]);
    assert!(held(&got).1 > common::segments(&sent) / 2, "{got}");
}

#[test]
fn a_sender_killed_midway_goes_on() {
    let place = Place::new();
    let file = place.file("product.bin", LEN);
    let receivers = [place.receive("ant", &["--simulate-loss", "2 %"]), place.receive("bee", &[])];
    let killed = place.send(&[&file], &send_args("ant,bee"));
    wait_for_checkpoints(&place, "ant");
    wait_for_checkpoints(&place, "bee");
    killed.kill9();
    let again = place.send(&[&file], &send_args("ant,bee")).succeed();
    for receiver in receivers {
        // The receiver joined once, and noticed little: the same product went on under another sender.
        receiver.succeed();
    }
    place.assert_received(&file, &["ant", "bee"]);
    let (started, sent) = (again.all("started").remove(0), again.summary());
    assert_eq!(started["restart"], true, "{started}");
    let held = |event: &Value| event["segments_held"].as_u64().unwrap();
    let before = again.all("registered").iter().map(held).min().unwrap();
    let segments = common::segments(&sent);
    assert!(before > segments / 5, "{}", again.story());
    // The sender sends only missing data: all that the one receiver lacks, the other lacks too, 2 % of it twice.
    assert!(dtus_sent(&sent) <= (segments - before) * 9 / 8 + 5, "held {before} of {segments}: {sent}");
}

#[test]
fn both_killed_midway_go_on() {
    let place = Place::new();
    let file = place.file("product.bin", LEN);
    let receiver = place.receive("ant", &[]);
    let sender = place.send(&[&file], &send_args("ant"));
    wait_for_checkpoints(&place, "ant");
    sender.kill9();
    receiver.kill9();
    let sender = place.send(&[&file], &send_args("ant"));
    let receiver = place.receive("ant", &[]);
    let sent = sender.succeed().summary();
    let got = receiver.succeed().summary();
    place.assert_received(&file, &["ant"]);
    let (segments, before) = held(&got);
    assert!(before > 0, "{got}");
    // The sender sends only missing data. The first answer may ask for so little that it is sent twice, more of it the
    // slower the answers come. That is still far less than the stored part.
    assert!(dtus_sent(&sent) <= (segments - before) * 9 / 8 + 5, "held {before} of {segments}: {sent}");
}

#[test]
fn a_receiver_that_was_done_and_has_gone_is_not_waited_for_and_not_called_done() {
    let place = Place::new();
    let file = place.file("product.bin", 500_000);
    // Bee loses so much that it is behind for long after ant is done.
    let ant = place.receive("ant", &[]);
    let bee = place.receive("bee", &["--simulate-loss", "90 %"]);
    let sender = place.send(&[&file], &send_args("ant,bee"));
    ant.succeed();
    sender.until("done");
    sender.kill9();
    bee.kill9();
    let bee = place.receive("bee", &[]);
    let ended = place.send(&[&file], &send_args("ant,bee")).wait();
    bee.succeed();
    place.assert_received(&file, &["ant", "bee"]);
    ended.assert_failed(3, &["ant (had it in an earlier run"]);
    assert_eq!(member(&ended.summary(), "ant")["complete"], false, "{}", ended.story());
}

#[test]
fn a_receiver_that_was_done_and_lost_its_files_gets_them_again() {
    let place = Place::new();
    let file = place.file("product.bin", 500_000);
    // Bee does not come, so that ant is remembered.
    let ant = place.receive("ant", &[]);
    let args = [&send_args("ant,bee")[..], &["--start-after", "1 s"]].concat();
    place.send(&[&file], &args).wait().assert_failed(3, &["bee (did not register)"]);
    ant.succeed();
    std::fs::remove_dir_all(place.path("ant")).unwrap();
    let (ant, bee) = (place.receive("ant", &[]), place.receive("bee", &[]));
    place.send(&[&file], &args).succeed();
    ant.succeed();
    bee.succeed();
    place.assert_received(&file, &["ant", "bee"]);
    // The group's memory of its receivers stays.
    let transfer = |name: &String| name.contains(".json") && !name.starts_with("known-");
    let remembered = common::names(&place.path("state/farcast")).into_iter().filter(transfer);
    assert_eq!(remembered.count(), 0, "the transfer is over and forgotten");
}

#[test]
fn a_changed_file_is_another_product() {
    let place = Place::new();
    let file = place.file("product.bin", LEN);
    let receiver = place.receive("ant", &[]);
    let sender = place.send(&[&file], &send_args("ant"));
    wait_for_checkpoints(&place, "ant");
    sender.kill9();
    receiver.kill9();
    place.file("product.bin", LEN / 2);
    let receiver = place.receive("ant", &[]);
    place.send(&[&file], &send_args("ant")).succeed();
    let got = receiver.succeed().summary();
    assert_eq!(held(&got).1, 0, "{got}");
    common::assert_same(&file, &place.path("ant/product.bin"));
}

#[test]
fn a_product_that_is_there_already_is_not_sent_again() {
    let place = Place::new();
    let file = place.file("product.bin", 300_000);
    for _ in 0..2 {
        let receiver = place.receive("ant", &[]);
        let sent = place.send(&[&file], &send_args("ant")).succeed().summary();
        receiver.succeed();
        place.assert_received(&file, &["ant"]);
        assert_eq!(sent["exit_code"], 0);
    }
}
