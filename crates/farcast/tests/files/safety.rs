//! Files that must not or cannot be written, and the messages about them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{self, Ended, Place, wait_until};

const SEND: [&str; 5] = ["--rate", "20 Mbit/s", "--receivers", "ant", "--json"];

/// Sends `path` to one receiver. Returns the ends of the sender and the receiver.
fn send_to_one(place: &Place, path: &Path, receiver_args: &[&str]) -> (Ended, Ended) {
    let receiver = place.receive("ant", receiver_args);
    let sender = place.start("sender", place.send_command(&[path], &SEND));
    (sender.wait(), receiver.wait())
}

/// Asserts that the receiver refused for a reason with `parts`, and that the sender reports the same.
fn assert_refused((sender, receiver): &(Ended, Ended), parts: &[&str]) {
    receiver.assert_one_sentence(1, parts);
    assert!(matches!(sender.code, Some(1 | 3)), "{}", sender.story());
    sender.assert_one_sentence(sender.code.unwrap(), &[&["ant"], parts].concat());
}

#[test]
fn a_link_at_the_target_is_not_followed() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let victim = place.path("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(place.path("ant")).unwrap();
    symlink(&victim, place.path("ant/product.bin")).unwrap();
    assert_refused(&send_to_one(&place, &file, &[]), &["product.bin", "symbolic link"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(place.path("ant/product.bin").is_symlink());
}

#[test]
fn a_link_on_the_way_is_not_followed() {
    let place = Place::new();
    place.file("tree/sub/one", 100_000);
    fs::create_dir_all(place.path("ant/tree")).unwrap();
    fs::create_dir(place.path("outside")).unwrap();
    symlink(place.path("outside"), place.path("ant/tree/sub")).unwrap();
    assert_refused(&send_to_one(&place, &place.path("tree"), &[]), &["sub", "symbolic link"]);
    assert!(common::names(&place.path("outside")).is_empty());
}

#[test]
fn a_directory_that_is_a_link_is_the_users_choice() {
    let place = Place::new();
    let file = place.file("product.bin", 10_000);
    fs::create_dir(place.path("real")).unwrap();
    symlink(place.path("real"), place.path("ant")).unwrap();
    let (sender, receiver) = send_to_one(&place, &file, &[]);
    assert_eq!((sender.code, receiver.code), (Some(0), Some(0)), "{}", receiver.story());
    common::assert_same(&file, &place.path("real/product.bin"));
}

#[test]
fn a_directory_where_a_file_is_to_be() {
    let place = Place::new();
    let file = place.file("product.bin", 10_000);
    fs::create_dir_all(place.path("ant/product.bin")).unwrap();
    assert_refused(&send_to_one(&place, &file, &[]), &["product.bin", "not a regular file"]);
}

#[test]
fn a_file_where_a_directory_is_to_be() {
    let place = Place::new();
    place.file("tree/sub/one", 10_000);
    place.file("ant/tree", 10);
    assert_refused(&send_to_one(&place, &place.path("tree"), &[]), &["tree", "not a directory"]);
    assert_eq!(fs::metadata(place.path("ant/tree")).unwrap().len(), 10);
}

#[test]
fn an_existing_file_is_replaced_or_kept_as_asked() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    place.file("ant/product.bin", 50);
    let before = common::digest(&place.path("ant/product.bin"));
    let ended = send_to_one(&place, &file, &["--keep-existing"]);
    assert_refused(&ended, &["product.bin", "exists with other content"]);
    assert!(common::digest(&place.path("ant/product.bin")) == before);
    let (sender, receiver) = send_to_one(&place, &file, &[]);
    assert_eq!((sender.code, receiver.code), (Some(0), Some(0)), "{}", receiver.story());
    place.assert_received(&file, &["ant"]);
    let (sender, receiver) = send_to_one(&place, &file, &["--keep-existing"]);
    assert_eq!((sender.code, receiver.code), (Some(0), Some(0)), "the same content: {}", receiver.story());
}

#[test]
fn a_full_disk() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let receiver = place.start("ant", common::into_mount(&place, "size=1m", &["--once", "--json"]));
    receiver.until("listening");
    let other = place.receive("bee", &[]);
    let args = ["--rate", "20 Mbit/s", "--receivers", "ant,bee"];
    let sender = place.run("sender", place.send_command(&[&file], &args));
    let full = ["bytes are needed", "available", "make room"];
    receiver.wait().assert_one_sentence(1, &full);
    other.succeed();
    place.assert_received(&file, &["bee"]);
    sender.assert_failed(3, &[&["not every receiver has it: ant"], &full[..]].concat());
    let row = sender.stdout.lines().find(|line| line.starts_with("ant"));
    assert!(row.is_some_and(|row| row.contains("bytes are needed")), "{}", sender.story());
    let left = fs::read_to_string(place.path("left")).unwrap();
    assert!(left.lines().all(|name| name.starts_with(".farcast")), "half-named: {left}");
}

#[test]
fn a_read_only_directory_is_refused_at_once() {
    let place = Place::new();
    let ended = place.run("ant", common::into_mount(&place, "ro", &["--once"]));
    ended.assert_one_sentence(1, &["cannot receive into", "ead-only file system"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_refused_at_once() {
    let place = Place::new();
    place.file("ant", 10);
    let ended = place.run("ant", place.receive_command("ant", &["--once"]));
    ended.assert_one_sentence(2, &["ant is a file", "--into"]);
    let mut command = place.farcast(["receive", "--from", &place.group, "--into", "/proc/no/such/place"]);
    command.args(["--interface", "127.0.0.1"]);
    place.run("ant", command).assert_one_sentence(1, &["cannot receive into /proc/no/such/place"]);
}

#[test]
fn a_directory_whose_parents_are_missing_is_made() {
    let place = Place::new();
    let file = place.file("product.bin", 10_000);
    let mut command =
        place.farcast(["receive", "--from", &place.group, "--interface", "127.0.0.1", "--once"]);
    command.args(["--name", "ant", "--json", "--into"]).arg(place.path("a/b/c"));
    let receiver = place.start("ant", command);
    receiver.until("listening");
    place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    receiver.succeed();
    common::assert_same(&file, &place.path("a/b/c/product.bin"));
}

#[test]
fn a_file_that_grows_while_it_is_sent() {
    let place = Place::new();
    let file = place.file("product.bin", 1_500_000);
    let receiver = place.receive("ant", &[]);
    let args = ["--rate", "2 Mbit/s", "--receivers", "ant", "--json"];
    let sender = place.start("sender", place.send_command(&[&file], &args));
    wait_until("data", || receiver.has("files"));
    fs::File::options().append(true).open(&file).unwrap().write_all(b"more").unwrap();
    sender.succeed();
    receiver.succeed();
    let sent = fs::read(&file).unwrap();
    assert_eq!(sent.len(), 1_500_004);
    assert!(fs::read(place.path("ant/product.bin")).unwrap() == sent[..1_500_000], "as it was announced");
}

#[test]
fn a_file_that_is_cut_while_it_is_sent() {
    let place = Place::new();
    let file = place.file("product.bin", 1_500_000);
    let receiver = place.receive("ant", &[]);
    let args = ["--rate", "2 Mbit/s", "--receivers", "ant", "--json"];
    let sender = place.start("sender", place.send_command(&[&file], &args));
    wait_until("data", || receiver.has("files"));
    fs::File::options().write(true).open(&file).unwrap().set_len(1000).unwrap();
    let changed = ["product.bin", "changed while it was being sent"];
    sender.wait().assert_failed(3, &changed);
    receiver.wait().assert_one_sentence(1, &changed);
    assert!(!place.path("ant/product.bin").exists());
}

#[test]
fn two_receivers_in_one_directory() {
    let place = Place::new();
    let file = place.file("product.bin", 500_000);
    let first = place.receive("ant", &[]);
    let mut command =
        place.farcast(["receive", "--from", &place.group, "--interface", "127.0.0.1", "--once"]);
    command.args(["--name", "bee", "--json", "--into"]).arg(place.path("ant"));
    let second = place.start("bee", command);
    second.until("listening");
    let args = ["--rate", "4 Mbit/s", "--receivers", "ant,bee", "--json"];
    let sender = place.run("sender", place.send_command(&[&file], &args));
    sender.assert_failed(3, &["(left: another process is receiving this product"]);
    let ended = [first.wait(), second.wait()];
    let refused: Vec<_> = ended.iter().filter(|one| one.code == Some(1)).collect();
    assert_eq!(refused.len(), 1, "{} {}", ended[0].story(), ended[1].story());
    refused[0].assert_one_sentence(1, &["another process is receiving this product"]);
    common::assert_same(&file, &place.path("ant/product.bin"));
}
