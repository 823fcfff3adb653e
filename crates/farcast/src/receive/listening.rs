//! Messages of a receiver about its sockets, and about datagrams that it does not accept.

use std::net::IpAddr;

use farcast_net::ListenNotice;
use farcast_transfer::sealing;
use serde_json::{Value, json};

/// Most octets of a datagram that do not belong to its segment: the protocol's headers and a seal.
const AROUND: usize = 48;

/// Message about an event.
pub(super) struct Words {
    /// Line for people.
    pub(super) line: String,
    /// Kind of the event, for programs.
    pub(super) kind: &'static str,
    /// Fields of the event, for programs.
    pub(super) fields: Value,
}

/// Returns the message about `notice` of a receiver that listens on `from`. `unsealed` is set if its user has asked for
/// transfers without a seal.
pub(super) fn listen_words(notice: &ListenNotice<'_>, from: &str, unsealed: bool) -> Words {
    let (line, kind, fields) = match *notice {
        ListenNotice::Listening { address } => {
            (format!("listening on {from}"), "listening", json!({ "address": address.to_string() }))
        }
        ListenNotice::Waiting { why } => {
            (format!("waiting: {why}"), "waiting", json!({ "reason": why.to_string() }))
        }
        ListenNotice::Rejoined => {
            (format!("listening again on {from}"), "rejoined", json!({ "address": from }))
        }
        ListenNotice::Blocked { why } => {
            (format!("no answers leave: {why}"), "blocked", json!({ "reason": why.to_string() }))
        }
        ListenNotice::Forgetful { why } => {
            (format!("nothing sealed is accepted: {why}"), "forgetful", json!({ "reason": why.to_string() }))
        }
        ListenNotice::NotAccepted { source } => (
            format!("passed over: what comes from {source}, which is not in --accept"),
            "not_accepted",
            json!({ "source": source.to_string() }),
        ),
        ListenNotice::Unlike { source, why } => {
            let (kind, text) = sealing::unlike(why, source, unsealed);
            (text, kind, json!({ "source": source.to_string() }))
        }
        ListenNotice::Narrow { source, datagram, passes, told } => {
            let narrow = Narrow { source, datagram, passes, told };
            (narrow.sentence(), "narrow", narrow.fields())
        }
    };
    Words { line, kind, fields }
}

/// Sender whose long datagrams do not arrive.
struct Narrow {
    /// Address of the sender.
    source: IpAddr,
    /// Size in octets of the datagrams that do not arrive.
    datagram: usize,
    /// Size in octets of datagrams that pass everywhere.
    passes: usize,
    /// Set if the sender is told that its datagrams are too long.
    told: bool,
}

impl Narrow {
    /// Returns the message for people, with the options that the sender may set.
    fn sentence(&self) -> String {
        let Self { source, datagram, .. } = self;
        let help =
            if self.told { "it is told to send shorter ones" } else { "it must send shorter segments" };
        format!(
            "short datagrams of {source} arrive, and none of {datagram} octets does: the way carries less; {help} (segments \
             of {} octets pass everywhere: --symbol-size one way, --dtu-size by MFTP, --segment-size by others)",
            self.fits()
        )
    }

    /// Returns the message for programs.
    fn fields(&self) -> Value {
        json!({
            "source": self.source.to_string(),
            "datagram_bytes": self.datagram,
            "fits_bytes": self.fits(),
            "told": self.told,
        })
    }

    fn fits(&self) -> usize {
        self.passes.saturating_sub(AROUND)
    }
}
