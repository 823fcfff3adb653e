//! Meanings of keys, table by table, in the order of the page.

mod bearers;
mod links;
mod protocols;
mod tables;
mod traffic;

use super::Section;

/// Text above all tables.
pub(super) const HEAD: &str = r#"# Scenarios, key by key

This page lists all keys of a scenario, a link alone, a [tree](tree.md) or the table `[protocol]` of a plan. `cargo run -p farcast-book --
keys` writes it: names, values and defaults come from the program itself, and a test fails when the page is stale. The use of the keys is
explained in [Simulating a transfer](simulate.md), [Link layers](links.md), [Scenarios of trees](tree.md) and the pages of the protocols.

| value | notation |
|---|---|
| a bit rate | text with `bit/s`, `kbit/s`, `Mbit/s` or `Gbit/s`: `"20 Mbit/s"`, 1 bit/s to 1000 Gbit/s |
| a time | text with `ns`, `us`, `ms`, `s`, `min` or `h`: `"250 ms"`, 0 s to 1e9 s |
| a size | text with `B`, `kB`, `MB`, `GB`, `TB` (powers of 1000), `KiB`, `MiB`, `GiB` or `TiB` (of 1024): `"64 KiB"`, 0 B to 9000 TB |
| a probability | a number from 0 to 1, or text: `0.005`, `"0.5 %"` |
| text | in quotes |

A default that follows from other keys is shown for a transfer of 1 MB at 500 kbit/s to two receivers (one, with MDP). If another key
changes a default, the changed default follows it. `farcast simulate SCENARIO --show` shows every key of a scenario with its value in
effect.
"#;

/// Returns all sections.
pub fn sections() -> Vec<Section> {
    let parts =
        [tables::SECTIONS, protocols::SECTIONS, traffic::SECTIONS, links::SECTIONS, bearers::SECTIONS];
    parts.concat()
}
