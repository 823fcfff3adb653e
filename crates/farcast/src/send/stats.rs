//! The table of what was sent, for `send --stats`.

use farcast_net::{Kinds, Traffic};

use crate::progress::percent;
use crate::progress::receivers::grouped;
use crate::table::{Align, Table};
use crate::text::Text;

/// Returns a table of the octets that were sent of files of `size` octets. `left_out` octets of them were not sent, as
/// all receivers had them; `None` if the protocol does not learn that.
pub(super) fn stats_table(size: u64, left_out: Option<u64>, traffic: &Traffic) -> Text {
    let Kinds { data, repairs, parity, control } = traffic.sent.kinds;
    let mut table =
        Table::new(&[("what", Align::Left), ("octets", Align::Right), ("of the size", Align::Right)]);
    let mut row = |what: &str, octets: u64| {
        table.row([what.into(), grouped(octets), percent(octets, size)]);
    };
    row("the files", size);
    if let Some(left_out) = left_out {
        row("left out, as all had it", left_out);
    }
    row("content, sent once", data);
    row("content, sent again", repairs);
    row("parity", parity);
    row("descriptions, requests and keys", control);
    row("all that was sent, with IP headers", traffic.sent.octets);
    row("heard from receivers, without", traffic.heard);
    table.render().blank()
}
