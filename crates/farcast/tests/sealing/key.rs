//! `farcast key`: keys are made, shown, trusted, renewed and revoked. Wrong input is refused in one sentence.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{self, Ended, Place};

/// Host: a directory of configuration.
struct Host<'a> {
    place: &'a Place,
    name: &'static str,
}

impl Host<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.farcast([&["key"], args].concat());
        command.env("XDG_CONFIG_HOME", self.place.path(self.name)).env("HOME", "/nonexistent");
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        self.place.run(self.name, self.command(args))
    }

    fn done(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.story());
        assert!(
            !ended.stdout.contains("farcast-secret") && !ended.stderr.contains("farcast-secret"),
            "{}",
            ended.story()
        );
        ended.stdout
    }

    fn refused(&self, args: &[&str], parts: &[&str]) {
        let ended = self.run(args);
        ended.assert_one_sentence(2, parts);
        assert!(!ended.stderr.contains("farcast-secret-1:"), "{}", ended.story());
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path(self.name).join("farcast").join(name)
    }

    /// Makes the host's key. Returns its public line.
    fn new_key(&self) -> String {
        line(&self.done(&["new", self.name]))
    }

    fn list(&self) -> Value {
        serde_json::from_str(&self.done(&["list", "--json"])).unwrap()
    }
}

/// Returns the public line in the output of `show`.
fn line(shown: &str) -> String {
    let lines: Vec<&str> = shown.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 1, "{shown}");
    lines[0].to_owned()
}

/// Returns the fingerprint in the output of `show`.
fn fingerprint(shown: &str) -> String {
    shown.split("fingerprint ").nth(1).unwrap()[..24].to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_life_of_two_keys() {
    let place = Place::new();
    let (head, ant) = (Host { place: &place, name: "head" }, Host { place: &place, name: "ant" });
    let made = head.done(&["new", "head"]);
    let ant_line = ant.new_key();
    assert!(line(&made).starts_with("head farcast-key-1:"), "{made}");
    assert_eq!(head.done(&["show"]), made);
    assert_eq!((mode(&head.file("key")), mode(&head.file(""))), (0o600, 0o700));

    let ant_print = fingerprint(&ant.done(&["show"]));
    let said =
        head.done(&["trust", &ant_line, "--as", "receiver", "--fingerprint", &ant_print.to_lowercase()]);
    assert_eq!(said, format!("trusted: ant as receiver, fingerprint {ant_print}\n"));
    assert_eq!(mode(&head.file("trust")), 0o600);
    assert_eq!(
        head.done(&["trust", &ant_line]),
        format!("trusted already: ant as receiver, fingerprint {ant_print}\n")
    );
    let list = head.list();
    assert_eq!((&list["own"]["name"], &list["trusted"][0]["role"]), (&"head".into(), &"receiver".into()));
    assert_eq!(format!("ant {}", list["trusted"][0]["key"].as_str().unwrap()), ant_line);
    let table = head.done(&["list"]);
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[2].starts_with("head  this host  ") && rows[3].starts_with("ant   receiver   "), "{table}");
    assert!(table.contains("trusted: 1 as receivers, 0 as senders"), "{table}");

    let renewed = ant.done(&["renew"]);
    assert_eq!((fingerprint(&renewed), mode(&ant.file("key"))), (ant_print.clone(), 0o600));
    assert_ne!(line(&renewed), ant_line);
    assert_eq!(ant.done(&["show"]), renewed);
    let said = head.done(&["trust", &line(&renewed)]);
    assert_eq!(said, format!("renewed: ant as receiver, fingerprint {ant_print} as before\n"));
    assert_eq!(head.list()["trusted"][0]["renewals"], 1);
    head.refused(&["trust", &ant_line], &["earlier key of ant", "(renewed once)", "farcast key show"]);

    let said = head.done(&["revoke", "ant"]);
    assert_eq!(said, format!("revoked: ant, fingerprint {ant_print}\n"));
    let list = head.list();
    assert_eq!((list["trusted"].as_array().unwrap().len(), &list["revoked"][0]["name"]), (0, &"ant".into()));
    assert!(head.done(&["list"]).contains("revoked"));
    head.refused(&["trust", &line(&renewed)], &[&ant_print, "was revoked as ant", "--again"]);
    head.refused(&["revoke", "ant"], &["nobody who is trusted is called ant", "farcast key list"]);
    head.refused(&["trust", &line(&renewed), "--again"], &["ant was revoked here", "--as receiver"]);
    head.done(&["trust", &line(&renewed), "--again", "--as", "receiver"]);
    assert_eq!(head.list()["trusted"][0]["role"], "receiver");
    let said = head.done(&["revoke", &ant_print.replace('-', "")]);
    assert!(said.starts_with("revoked: ant, "), "{said}");
}

#[test]
fn a_key_becomes_hybrid_and_stays_so() {
    let place = Place::new();
    let (head, ant) = (Host { place: &place, name: "head" }, Host { place: &place, name: "ant" });
    let made = head.done(&["new", "head", "--hybrid"]);
    assert!(line(&made).starts_with("head farcast-key-2:") && made.contains(", never renewed, hybrid\n"));
    assert_eq!(line(&made).len(), "head farcast-key-2:".len() + 2106);
    assert!(fs::read_to_string(head.file("key")).unwrap().contains("head farcast-secret-2:"));
    assert_eq!(head.done(&["show"]), made);

    let plain = ant.new_key();
    head.done(&["trust", &plain, "--as", "receiver"]);
    let hybrid = ant.done(&["renew", "--hybrid"]);
    assert!(hybrid.contains(", renewed once, hybrid\n"), "{hybrid}");
    let print = fingerprint(&hybrid);
    let said = head.done(&["trust", &line(&hybrid)]);
    assert_eq!(said, format!("renewed: ant as receiver, fingerprint {print} as before\n"));
    head.refused(&["trust", &plain], &["earlier key of ant", "(never renewed)"]);
    let list = head.list();
    assert_eq!(
        (&list["own"]["agreement"], &list["trusted"][0]["agreement"]),
        (&"hybrid".into(), &"hybrid".into())
    );
    assert!(head.done(&["list"]).lines().nth(3).unwrap().ends_with("  hybrid           1"));
    let again = ant.done(&["renew"]);
    assert!(line(&again).starts_with("ant farcast-key-2:") && again.contains(", renewed 2 times, hybrid\n"));
    assert_eq!(fingerprint(&again), print);

    // Keys from standard input and files are treated in the same way. A wrong or missing letter is detected.
    head.done(&["trust", &line(&again)]);
    let text = line(&again);
    let cut = &text[..text.len() - 1];
    head.refused(&["trust", cut], &["the key of ant: it is too short or too long"]);
    let other = if text.as_bytes()[1000] == b'A' { "B" } else { "A" };
    let wrong = format!("{}{other}{}", &text[..1000], &text[1001..]);
    head.refused(&["trust", &wrong], &["its signature does not hold"]);
    assert!(head.done(&["revoke", "ant"]).starts_with("revoked: ant, "));
}

#[test]
fn a_key_is_not_replaced_unless_that_is_wished() {
    let place = Place::new();
    let ant = Host { place: &place, name: "ant" };
    let before = ant.new_key();
    ant.refused(&["new", "ant"], &["there is a key in", "--force"]);
    assert_eq!(line(&ant.done(&["show"])), before);
    let ended = ant.run(&["new", "bee", "--force"]);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    assert!(ended.stderr.contains("which is lost"), "{}", ended.story());
    assert!(line(&ended.stdout).starts_with("bee ") && mode(&ant.file("key")) == 0o600);
    // A damaged key is replaced, too.
    fs::write(ant.file("key"), "nonsense").unwrap();
    ant.refused(&["new", "cat"], &["--force"]);
    ant.done(&["new", "cat", "--force"]);
    let left: Vec<_> = fs::read_dir(ant.file("")).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the key and its lock: {left:?}");
}

#[test]
fn a_key_without_a_name_has_the_hosts() {
    let place = Place::new();
    let ant = Host { place: &place, name: "ant" };
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(ant.done(&["new"]).contains(&format!("\n{} farcast-key-1:", name.trim())));
    let long = "n".repeat(65);
    for bad in ["a b", "a,b", "", "#a", "a\u{202e}b", &long] {
        ant.refused(&["new", bad], &["cannot be the name: a name"]);
    }
}

#[test]
fn others_must_not_read_a_key_nor_write_the_list() {
    let place = Place::new();
    let ant = Host { place: &place, name: "ant" };
    let own = ant.new_key();
    ant.done(&["trust", &own]);
    for bits in [0o640, 0o604, 0o620, 0o610] {
        set_mode(&ant.file("key"), bits);
        for command in ["show", "list", "renew"] {
            ant.refused(&[command], &[&format!("{bits:04o}"), "holds a secret", "chmod 600 "]);
        }
    }
    set_mode(&ant.file("key"), 0o400);
    ant.done(&["show"]);
    set_mode(&ant.file("trust"), 0o664);
    ant.refused(&["list"], &["0664", "others may write it", "chmod go-w "]);
    // A list that all may read stays so.
    set_mode(&ant.file("trust"), 0o644);
    ant.done(&["revoke", "ant"]);
    assert_eq!(mode(&ant.file("trust")), 0o644);
}

#[test]
fn without_a_key_it_says_how_to_make_one() {
    let place = Place::new();
    let ant = Host { place: &place, name: "ant" };
    for command in ["show", "renew"] {
        ant.refused(&[command], &["this host has no key", "farcast key new"]);
    }
    assert!(ant.done(&["list"]).contains("trusted: 0 as receivers, 0 as senders\nthis host has no key"));
    assert_eq!(ant.list()["own"], Value::Null);
    assert!(!ant.file("").exists(), "looking makes nothing");
    let nowhere = |args: &[&str]| {
        let mut command = ant.command(args);
        command.env_remove("XDG_CONFIG_HOME").env("HOME", "no/absolute/path");
        place.run("nowhere", command)
    };
    nowhere(&["new", "ant"]).assert_one_sentence(2, &["neither HOME nor XDG_CONFIG_HOME"]);
    assert_eq!(nowhere(&["list"]).code, Some(0));
    let home = place.path("home");
    let mut command = ant.command(&["new", "ant"]);
    command.env_remove("XDG_CONFIG_HOME").env("HOME", &home);
    assert_eq!(place.run("home", command).code, Some(0));
    assert_eq!(mode(&home.join(".config/farcast/key")), 0o600);
}

#[test]
fn a_key_comes_from_a_file_or_from_the_environment() {
    let place = Place::new();
    let (ant, bee) = (Host { place: &place, name: "ant" }, Host { place: &place, name: "bee" });
    ant.new_key();
    let file = place.path("elsewhere");
    let file = file.to_str().unwrap();
    ant.refused(&["show", "--key", file], &["elsewhere", "no such file"]);
    let made = bee.done(&["new", "bee", "--key", file]);
    assert!(!bee.file("").exists() && mode(Path::new(file)) == 0o600);
    assert_eq!(ant.done(&["show", "--file", file]), made);

    let with = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = ant.command(args);
        command.envs(variables.iter().copied());
        place.run("with", command)
    };
    let text = fs::read_to_string(file).unwrap();
    let secret = line(&text);
    for variables in [("FARCAST_KEY_FILE", file), ("FARCAST_KEY", &text), ("FARCAST_KEY", &secret)] {
        assert_eq!(with(&["show"], &[variables]).stdout, made);
    }
    assert_eq!(with(&["list"], &[("FARCAST_KEY", &secret)]).stdout.matches("this host").count(), 1);
    let key = ("FARCAST_KEY", secret.as_str());
    for (args, variables, parts) in [
        (&["show"][..], &[("FARCAST_KEY", "")][..], &["FARCAST_KEY is set and empty"][..]),
        (&["show"], &[("FARCAST_KEY_FILE", "")], &["FARCAST_KEY_FILE is set and empty"]),
        (&["show"], &[key, ("FARCAST_KEY_FILE", file)], &["both set"]),
        (&["show"], &[("FARCAST_KEY_FILE", "/nonexistent/key")], &["/nonexistent/key", "no such file"]),
        (&["show"], &[("FARCAST_KEY", &secret[..90])], &["FARCAST_KEY:1: the secret key is too short"]),
        (&["show"], &[("FARCAST_KEY", &secret[4..])], &["FARCAST_KEY:1: a line has a name and a secret key"]),
        (&["new", "cat"], &[key], &["the key is in FARCAST_KEY", "unset it"]),
        (&["renew"], &[key], &["the key is in FARCAST_KEY", "--key FILE"]),
        (&["list"], &[("FARCAST_TRUST_FILE", "/nonexistent/trust")], &["/nonexistent/trust", "no such file"]),
    ] {
        let ended = with(args, variables);
        ended.assert_one_sentence(2, parts);
        assert!(!ended.stderr.contains(&secret[30..50]), "{}", ended.story());
    }
    let trust = place.path("trusted");
    let trust = trust.to_str().unwrap();
    let variables = [("FARCAST_TRUST_FILE", trust), key];
    assert_eq!(with(&["trust", &line(&made)], &variables).code, Some(0));
    assert!(
        with(&["list"], &variables).stdout.contains("sender and receiver") && !ant.file("trust").exists()
    );
}

#[test]
fn keys_are_trusted_from_files_and_from_standard_input() {
    let place = Place::new();
    let hosts = ["ant", "bee", "cat"].map(|name| Host { place: &place, name });
    let all = hosts.map(|host| host.new_key()).join("\n");
    let head = Host { place: &place, name: "head" };
    let file = place.path("stations");
    fs::write(&file, format!("# all\r\n\n{all}\n")).unwrap();
    let file = file.to_str().unwrap();
    head.refused(&["trust", file, "--name", "dog"], &["--name and --fingerprint go with one key", "3"]);
    assert_eq!(head.done(&["trust", file, "--as", "receiver"]).lines().count(), 3);

    let dog = Host { place: &place, name: "dog" };
    let shown = dog.done(&["new", "dog"]);
    let mut command = head.command(&["trust", "-", "--as", "sender"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(shown.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(String::from_utf8(ended.stdout).unwrap().starts_with("trusted: dog as sender, "));

    // Without quotes a line is two words; its key alone needs a name.
    let eel_line = Host { place: &place, name: "eel" }.new_key();
    let (name, key) = eel_line.split_once(' ').unwrap();
    head.refused(&["trust", key], &["a name is missing", "--name"]);
    head.done(&["trust", name, key]);
    head.refused(&["trust", key, "--name", "fox"], &["is here as eel, not as fox", "--name eel"]);
    let other = Host { place: &place, name: "gnu" }.new_key().replace("gnu", "eel");
    head.refused(&["trust", &other], &["eel has another key here", "farcast key revoke eel", "--name"]);
    head.done(&["trust", &other, "--name", "gnu"]);
    assert_eq!(head.list()["trusted"].as_array().unwrap().len(), 6);

    // All or nothing.
    let before = fs::read(head.file("trust")).unwrap();
    let hen = Host { place: &place, name: "hen" }.new_key();
    fs::write(file, format!("{hen}\n{other}\n")).unwrap();
    head.refused(&["trust", file], &["is here as gnu, not as eel"]);
    assert_eq!(fs::read(head.file("trust")).unwrap(), before);
    let wrong = ["--fingerprint", "CSM7-NBFR-CAYQ-EV4F-R65R"];
    head.refused(&["trust", &hen, wrong[0], wrong[1]], &["not CSM7-NBFR-CAYQ-EV4F-R65R", "was not taken"]);
    assert_eq!(fs::read(head.file("trust")).unwrap(), before);
    let ended = head.run(&["trust", &hen, "--fingerprint", "12345"]);
    ended.assert_failed(2, &["--fingerprint", "too short or too long"]);
}

#[test]
fn files_that_are_no_keys_are_refused_by_line() {
    let place = Place::new();
    let (ant, bee) = (Host { place: &place, name: "ant" }, Host { place: &place, name: "bee" });
    let bee_line = bee.new_key();
    ant.new_key();
    let key = fs::read_to_string(ant.file("key")).unwrap();
    let write = |name: &str, content: &[u8]| {
        let there = ant.file(name).exists();
        fs::write(ant.file(name), content).unwrap();
        if !there {
            set_mode(&ant.file(name), 0o600);
        }
    };
    for (content, parts) in [
        (b"".to_vec(), &["there is no key in", "/key"][..]),
        (vec![0xff; 10], &["/key:1: this is no UTF-8 text"]),
        (vec![b'a'; 1 << 15], &["/key has more than 16384 bytes"]),
        (format!("{key}{key}").into_bytes(), &["/key:4: a second key"]),
        (key.replace("ant farcast", "a,nt farcast").into_bytes(), &["/key:2: a name has no comma"]),
        (key[..key.len() - 9].into(), &["/key:2: the secret key is too short"]),
        (bee_line.clone().into_bytes(), &["/key:1: this is a public key"]),
    ] {
        write("key", &content);
        ant.refused(&["show"], parts);
    }
    write("key", key.as_bytes());
    for (content, parts) in [
        (vec![0; 10], &["/trust:1: a line has a role"][..]),
        (vec![b'\n', 0xff], &["/trust:2: this is no UTF-8 text"]),
        (format!("friend {bee_line}\n").into_bytes(), &["/trust:1: a line begins with sender, receiver"]),
        (format!("#\nboth {}", &bee_line[..99]).into_bytes(), &["/trust:2: the key of bee: it is too short"]),
        (format!("both {bee_line}\nboth {bee_line}\n").into_bytes(), &["/trust:2: bee is in line 1 already"]),
        (format!("both {}", line(&key)).into_bytes(), &["/trust:1: this is a secret key"]),
    ] {
        write("trust", &content);
        ant.refused(&["list"], parts);
        ant.refused(&["trust", &bee_line], parts);
        assert_eq!(fs::read(ant.file("trust")).unwrap(), content, "it is left as it was");
    }
    fs::remove_file(ant.file("trust")).unwrap();
    fs::create_dir(ant.file("trust")).unwrap();
    ant.refused(&["list"], &["/trust", "directory"]);
    let file = ant.file("key");
    for what in [file.to_str().unwrap(), &line(&key)] {
        ant.refused(&["trust", what], &["this is a secret key, which only its owner should have"]);
    }
    ant.refused(&["trust", "/dev/zero"], &["/dev/zero has more than", "bytes"]);
    ant.refused(&["trust", "/nonexistent/stations"], &["cannot read /nonexistent/stations"]);
    ant.refused(&["trust", "/dev/null"], &["there is no key in /dev/null"]);
    for what in ["/dev/null", "/tmp"] {
        ant.refused(&["show", "--key", what], &[what, "is a directory or a device"]);
    }
}

#[test]
fn what_people_wrote_into_the_list_stays() {
    let place = Place::new();
    let head = Host { place: &place, name: "head" };
    let [ant, bee, cat] = ["ant", "bee", "cat"].map(|name| Host { place: &place, name }.new_key());
    head.done(&["trust", &ant]);
    let made = fs::read_to_string(head.file("trust")).unwrap();
    assert!(
        made.starts_with("# Whom farcast trusts.") && made.ends_with(&format!("\nboth {ant}\n")),
        "{made}"
    );
    // Elsewhere, by way of a link.
    let text = format!("# north\n\tsender   {bee}\n\n# south\nreceiver {ant}");
    let real = place.path("real");
    fs::write(&real, &text).unwrap();
    fs::remove_file(head.file("trust")).unwrap();
    symlink(&real, head.file("trust")).unwrap();
    head.done(&["trust", &cat]);
    assert_eq!(fs::read_to_string(&real).unwrap(), format!("{text}\nboth {cat}\n"));
    assert!(fs::symlink_metadata(head.file("trust")).unwrap().is_symlink());
    head.done(&["trust", &bee, "--as", "receiver"]);
    head.done(&["revoke", "ant"]);
    let left = fs::read_to_string(&real).unwrap();
    assert!(
        left.starts_with(&format!("# north\nreceiver {bee}\n\n# south\nboth {cat}\nrevoked ant ")),
        "{left}"
    );
}

#[test]
fn of_many_at_once_none_is_lost() {
    let place = Place::new();
    let head = Host { place: &place, name: "head" };
    let line = head.new_key();
    let file = place.path("sources");
    let lines: Vec<String> = (0..12)
        .map(|n| {
            let path = format!("{}-{n}", file.display());
            let made = head.done(&["new", &format!("station-{n}"), "--key", &path]);
            self::line(&made)
        })
        .collect();
    assert!(lines.iter().all(|one| *one != line));
    let running: Vec<_> =
        lines.iter().map(|line| place.start("trust", head.command(&["trust", line]))).collect();
    for one in running {
        one.succeed();
    }
    assert_eq!(head.list()["trusted"].as_array().unwrap().len(), 12);
    let running: Vec<_> = (0..6).map(|_| place.start("renew", head.command(&["renew"]))).collect();
    for one in running {
        one.succeed();
    }
    assert_eq!(head.list()["own"]["renewals"], 6);
    // If several processes make a key at once, one of them makes it.
    let new: Vec<_> = (0..6)
        .map(|_| {
            let path = place.path("one");
            place.start("new", head.command(&["new", "one", "--key", path.to_str().unwrap()]))
        })
        .collect();
    assert_eq!(new.into_iter().map(common::Running::wait).filter(|ended| ended.code == Some(0)).count(), 1);
    let left = fs::read_dir(head.file("")).unwrap().count();
    assert_eq!(left, 4, "the key, the list and their locks");
}

#[test]
fn where_nothing_can_be_written_it_says_so() {
    let place = Place::new();
    let ant = Host { place: &place, name: "ant" };
    let line = ant.new_key();
    let ended = ant.run(&["new", "bee", "--key", "/nonexistent/key"]);
    ended.assert_one_sentence(1, &["cannot write /nonexistent/", "No such file"]);
    let mut command = ant.command(&["trust", &line]);
    command.env("FARCAST_TRUST_FILE", "/proc/self/trust");
    place.run("proc", command).assert_one_sentence(1, &["cannot write /proc/self/"]);
    let mut command = ant.command(&["new", "bee"]);
    command.env("XDG_CONFIG_HOME", "/dev/null/config");
    place.run("null", command).assert_one_sentence(1, &["cannot write /dev/null/config/farcast"]);
}

/// Puts something that is no key or list in its place, by the kind `way`. Returns a part of the expected message.
fn spoil(way: &str, file: &Path) -> &'static str {
    let parent = file.parent().unwrap();
    match way {
        "a dangling link" => {
            symlink("nowhere", file).unwrap();
            "is a link that leads nowhere"
        }
        "a dangling directory" => {
            fs::remove_dir_all(parent).unwrap();
            symlink("nowhere", parent).unwrap();
            "is a link that leads nowhere"
        }
        "a loop" => {
            symlink(file, file).unwrap();
            "cannot read"
        }
        "a directory" => {
            fs::create_dir(file).unwrap();
            "is a directory or a device"
        }
        "a file for a directory" => {
            fs::remove_dir_all(parent).unwrap();
            fs::write(parent, "").unwrap();
            "cannot read"
        }
        "a pipe" => {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, file, kind, rustix::fs::Mode::RUSR, 0).unwrap();
            "it is a pipe to which nothing was written"
        }
        "a truncated one" => {
            fs::write(file, "ant farcast-").unwrap();
            set_mode(file, 0o600);
            ":1: "
        }
        _ => unreachable!(),
    }
}

#[test]
fn a_key_or_list_that_is_there_and_useless_is_never_passed_over() {
    let place = Place::new();
    let ways = [
        "a dangling link",
        "a dangling directory",
        "a loop",
        "a directory",
        "a file for a directory",
        "a pipe",
        "a truncated one",
    ];
    for way in ways {
        for what in ["key", "trust"] {
            let name = format!("{what} {way}");
            let config = place.path(&name);
            fs::create_dir_all(config.join("farcast")).unwrap();
            let file = config.join("farcast").join(what);
            if what == "trust" && way.contains("director") && way != "a directory" {
                // Then there is no key either.
                continue;
            }
            if what == "trust" {
                let made = place.farcast(["key", "new", "ant"]).env("XDG_CONFIG_HOME", &config).status();
                assert!(made.unwrap().success());
            }
            let says = spoil(way, &file);
            let product = place.file("product.bin", 10);
            for mut command in [
                place.receive_command("into", &["--once"]),
                place.send_command(&[&product], &["--rate", "1 Mbit/s"]),
            ] {
                command.env("XDG_CONFIG_HOME", &config);
                place.run(&name, command).assert_one_sentence(2, &[says]);
            }
        }
    }
}

/// Returns `command` without HOME on a host with this list of users.
fn without_home(place: &Place, users: &str, command: &Command) -> Command {
    common::need_root("a list of users of its own");
    let list = place.path("passwd");
    fs::write(&list, users).unwrap();
    let script = format!("mount --bind '{}' /etc/passwd && exec \"$@\"", list.display());
    let mut service = Command::new("unshare");
    service.args(["--mount", "sh", "-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    service.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    service
}

/// A service that is started without HOME finds its key in the directory that the list of users names.
#[test]
fn without_home_the_list_of_users_says_where_the_key_is() {
    let place = Place::new();
    let home = place.path("home");
    let mut made = place.farcast(["key", "new", "ant"]);
    made.env("XDG_CONFIG_HOME", home.join(".config"));
    place.start("key", made).succeed();
    let users = format!("root:x:0:0::{}:/bin/sh\n", home.display());
    let shown = without_home(&place, &users, &place.farcast(["key", "show"]));
    let shown = place.start("service", shown).succeed();
    assert!(shown.stdout.contains("ant"), "{}", shown.story());
}

#[test]
fn a_list_whose_key_is_gone_is_never_passed_over() {
    let place = Place::new();
    let product = place.file("product.bin", 10);
    let (head, ant) = (Host { place: &place, name: "head" }, Host { place: &place, name: "ant" });
    let shown = head.new_key();
    ant.new_key();
    ant.done(&["trust", &shown, "--as", "both"]);
    fs::remove_file(ant.file("key")).unwrap();
    let refuses = |args: &[&str]| {
        let mut all = vec![place.receive_command("into", &[&["--once"], args].concat())];
        for protocol in ["mftp", "norm", "mdp", "pgm"] {
            let args =
                [&["--protocol", protocol, "--rate", "1 Mbit/s", "--receivers", "head"], args].concat();
            all.push(place.send_command(&[&product], &args));
        }
        for kind in ["receive", "send"] {
            let address = if kind == "send" { "--to" } else { "--from" };
            let mut stream = place.farcast([kind, "--stream", "--protocol", "norm"]);
            stream.args([address, &place.group, "--interface", "lo"]).args(args).stdin(Stdio::null());
            all.push(stream);
        }
        all
    };
    let list = ant.file("trust");
    for text in [fs::read_to_string(&list).unwrap(), String::new()] {
        fs::write(&list, text).unwrap();
        for mut command in refuses(&[]) {
            command.env("XDG_CONFIG_HOME", place.path("ant"));
            place.run("ant", command).assert_one_sentence(2, &["/trust, and no key", "--unsealed"]);
        }
    }
    let mut command = place.receive_command("into", &["--once"]);
    command.env("FARCAST_TRUST_FILE", &list).env("HOME", "/nonexistent");
    place.run("ant", command).assert_one_sentence(2, &["and no key"]);
    let mut open = place.receive_command("into", &["--json", "--unsealed"]);
    open.env("XDG_CONFIG_HOME", place.path("ant"));
    let running = place.start("ant", open);
    running.until("listening");
    running.kill9();
}
