//! Meanings of keys, table by table, in the order of the page.

mod bearers;
mod links;
mod protocols;
mod tables;
mod traffic;

use super::Section;

/// Text above all tables.
pub(super) const HEAD: &str = r#"# Scenarios, key by key

All keys that a scenario, a link alone, a [tree](tree.md) or the table `[protocol]` of a plan may have. Which there are, what each
may be and its default come from the program itself: this page is written by `cargo run -p farcast-book -- keys`, and a test
fails when it is stale. What the keys are for and how they go together is in [Simulating a transfer](simulate.md),
[Link layers](links.md), [Scenarios of trees](tree.md) and the pages of the protocols.

| what it may be | how it is written |
|---|---|
| a bit rate | text with `bit/s`, `kbit/s`, `Mbit/s` or `Gbit/s`: `"20 Mbit/s"`, 1 bit/s to 1000 Gbit/s |
| a time | text with `ns`, `us`, `ms`, `s`, `min` or `h`: `"250 ms"`, 0 s to 1e9 s |
| a size | text with `B`, `kB`, `MB`, `GB`, `TB` (powers of 1000), `KiB`, `MiB`, `GiB` or `TiB` (of 1024): `"64 KiB"`, 0 B to 9000 TB |
| a probability | a number from 0 to 1, or text: `0.005`, `"0.5 %"` |
| text | in quotes |

A default that follows from other keys is shown as it comes out for a transfer of 1 MB at 500 kbit/s to two receivers (one, with MDP).
Where another key changes a default, what it then is stands behind it. `farcast simulate SCENARIO --show` shows every key of a scenario
with the value in effect.
"#;

/// Returns all sections.
pub fn sections() -> Vec<Section> {
    let parts =
        [tables::SECTIONS, protocols::SECTIONS, traffic::SECTIONS, links::SECTIONS, bearers::SECTIONS];
    parts.concat()
}
