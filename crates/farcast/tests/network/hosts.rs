//! Host names in place of addresses.

use std::fs;
use std::process::Command;

use crate::common::{Place, need_root};

/// Returns `command` with a resolver that knows these hosts and no others.
fn knowing(place: &Place, hosts: &str, command: &Command) -> Command {
    need_root("a hosts file of its own");
    let (known, switch) = (place.path("hosts"), place.path("nsswitch.conf"));
    fs::write(&known, hosts).unwrap();
    fs::write(&switch, "hosts: files\n").unwrap();
    let script = format!(
        "mount --bind '{}' /etc/hosts && mount --bind '{}' /etc/nsswitch.conf || exit 77\nexec \"$@\"",
        known.display(),
        switch.display()
    );
    let mut there = Command::new("unshare");
    there.args(["-m", "--propagation", "private", "sh", "-c", &script, "sh"]);
    there.arg(command.get_program()).args(command.get_args());
    let set = command.get_envs().filter_map(|(key, value)| value.map(|value| (key, value)));
    there.envs(set);
    there
}

#[test]
fn a_group_and_senders_may_have_names() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let (group, port) = place.group.split_once(':').unwrap();
    let hosts = format!(
        "{group} updates.example.org\nff15::1 updates.example.org\n127.0.0.1 head-end\n::1 head-end\n"
    );
    let named = format!("updates.example.org:{port}");
    let mut receive =
        place.farcast(["receive", "--from", &named, "--interface", "127.0.0.1", "--name", "ant"]);
    receive.args(["--source", "head-end", "--accept", "head-end,10.1.2.0/24", "--once", "--json", "--into"]);
    receive.arg(place.path("ant"));
    let receiver = place.start("ant", knowing(&place, &hosts, &receive));
    assert_eq!(receiver.until("listening")["address"], place.group);
    let mut send = place.farcast(["send", "--to", &named, "--announce", &named, "--rate", "20 Mbit/s"]);
    send.args(["--interface", "127.0.0.1", "--receivers", "ant", "--json"]).arg(&file);
    place.start("sender", knowing(&place, &hosts, &send)).succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn one_receiver_may_have_a_name() {
    let place = Place::with_group(|port| format!("localhost:{port}"));
    let file = place.file("product.bin", 100_000);
    let receiver = place.receive("ant", &[]);
    place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_name_that_nobody_knows() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let group = place.group.as_str();
    for args in [
        &["send", "--to", "nosuch", "--rate", "max"][..],
        &["send", "--to", group, "--announce", "nosuch:7", "--rate", "max"],
        &["receive", "--from", "nosuch", "--into", "ant"],
        &["receive", "--from", group, "--source", "nosuch", "--into", "ant"],
        &["receive", "--from", group, "--accept", "10.1.2.3,nosuch", "--into", "ant"],
    ] {
        let mut command = place.farcast(args);
        if args[0] == "send" {
            command.arg(&file);
        }
        let option = args.windows(2).find(|pair| pair[1].contains("nosuch")).unwrap()[0];
        let ended = place.run("farcast", knowing(&place, "127.0.0.1 localhost\n", &command));
        ended.assert_one_sentence(
            1,
            &[option, "the address of nosuch cannot be found", "getent ahosts nosuch"],
        );
    }
}

#[test]
fn the_family_is_that_of_the_group() {
    let place = Place::new();
    let hosts = "127.0.0.1 four\n::1 six\n";
    for (from, source, said) in [
        (place.group.as_str(), "six", "six has no IPv4 address"),
        ("[ff35::7]:7", "four", "four has no IPv6 address"),
        ("four", "::1", "--from: four has no IPv6 address"),
    ] {
        let command = place.farcast(["receive", "--from", from, "--source", source, "--into", "ant"]);
        place.run("ant", knowing(&place, hosts, &command)).assert_one_sentence(1, &[said]);
    }
    let command =
        place.farcast(["send", "/etc/hostname", "--to", "six", "--announce", "239.1.1.1", "--rate", "max"]);
    place
        .run("sender", knowing(&place, hosts, &command))
        .assert_one_sentence(1, &["--to: six has no IPv4 address"]);
}

#[test]
fn an_address_with_an_error_is_not_taken_for_a_name() {
    let place = Place::new();
    for to in ["239.255.1:5402", "300.1.1.1", "239.1.1.1:70000", "a:b:c"] {
        let command = place.farcast(["send", "/etc/hostname", "--rate", "max", "--to", to]);
        place.run("sender", command).assert_failed(2, &["--to", "an address or a host name", "5402"]);
    }
}
