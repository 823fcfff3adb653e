//! Check for given settings that change nothing.

use std::collections::BTreeMap;

use farcast_core::Span;
use farcast_core::units::{BitRate, Bytes};
use farcast_scenario::document::{Document, Given};

use crate::World;

/// Tables and keys of a scenario that do not concern the simulation.
const ELSEWHERE: [&str; 3] = ["tune", "programs", "name"];
/// Most octets of files with which a scenario is read again for each of its keys.
const MOST_OCTETS: usize = 1 << 20;

/// Returns keys with a value other than the default that change nothing beside the scenario's other settings: without
/// such a key, the simulation would be the same. Returns none if the scenario cannot be read or names large files.
pub fn unused(document: &Document) -> Vec<String> {
    let Ok(world) = World::read(document) else { return Vec::new() };
    let octets: usize = document.files_read().values().map(String::len).sum();
    if octets > MOST_OCTETS {
        return Vec::new();
    }
    let world = format!("{world:?}");
    let is_unused = |key: &Given| {
        let without = document.without(key);
        let changes = World::read(&without).map_or(true, |other| format!("{other:?}") != world);
        !changes && !is_default(key, &without) && !matters(document, key, &world)
    };
    let given = document.given();
    let of_world = given.iter().filter(|key| {
        let first = key.path().split('.').next().unwrap_or_default();
        let first = first.split('[').next().unwrap_or_default();
        // A name within a list identifies the member.
        !ELSEWHERE.contains(&first) && key.path().rsplit('.').next() != Some("name")
    });
    of_world.filter(|key| is_unused(key)).map(|key| key.path().to_owned()).collect()
}

/// Returns `true` if another value of a number would change the simulation. The given value is then the default.
fn matters(document: &Document, key: &Given, world: &str) -> bool {
    let text = key.value().trim_matches('"');
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let Ok(number) = number.parse::<f64>() else { return false };
    [2.0 * number, (number / 2.0).floor(), number + 1.0].into_iter().any(|other| {
        let mut changed = document.clone();
        let set = changed.set(&format!("{}={other}{unit}", key.path()));
        set.is_ok() && World::read(&changed).is_ok_and(|other| format!("{other:?}") != world)
    })
}

/// Returns `true` if a key has the value that holds without it, or a word for absence.
fn is_default(key: &Given, without: &Document) -> bool {
    if ["\"none\"", "\"never\""].contains(&key.value()) {
        return true;
    }
    let read: BTreeMap<_, _> =
        without.keys_read().into_iter().map(|(path, value, _)| (path, value)).collect();
    match read.get(key.path()) {
        Some(default) => same(default, key.value()),
        // For a key without a default, such a value means absence.
        None => {
            key.value() == "false"
                || ["0", "0 s", "0 B", "0 %"].iter().any(|nothing| same(nothing, key.value()))
        }
    }
}

/// Returns `true` if two values are the same in TOML.
fn same(one: &str, other: &str) -> bool {
    fn equal<T: std::str::FromStr + PartialEq>(one: &str, other: &str) -> bool {
        one.parse::<T>().is_ok_and(|one| other.parse::<T>().is_ok_and(|other| one == other))
    }
    let (one, other) = (one.trim_matches('"'), other.trim_matches('"'));
    one == other
        || equal::<f64>(one, other)
        || equal::<Span>(one, other)
        || equal::<Bytes>(one, other)
        || equal::<BitRate>(one, other)
}
