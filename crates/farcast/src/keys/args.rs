//! The command line of `farcast key`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use farcast_seal::Fingerprint;
use farcast_transfer::keys::Role;

/// Arguments of `farcast key`.
#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Subcommand, Debug)]
pub(crate) enum What {
    /// Make a key for this host.
    New(NewArgs),
    /// Show this host's name, its fingerprint, and the line for others.
    #[command(after_help = "Example: farcast key show | ssh head-end farcast key trust - --as receiver")]
    Show(ShowArgs),
    /// Trust another host by the line that `farcast key show` prints there.
    #[command(after_help = TRUST_HELP)]
    Trust(TrustArgs),
    /// List the keys that this host trusts, its own first.
    List(ListArgs),
    /// Revoke the trust in a key, and remember that.
    Revoke(RevokeArgs),
    /// Renew this host's key. It no longer opens earlier transfers. The fingerprint stays.
    Renew(RenewArgs),
}

const TRUST_HELP: &str = "\
Examples:
  farcast key trust head-end farcast-key-1:GNZW... --fingerprint 19J3-TY0X-8960-DDMG-F3HY
  farcast key trust stations.txt --as receiver";

/// Option of the file with this host's key.
#[derive(Args, Debug)]
pub(crate) struct KeyFileArgs {
    /// File of this host's key [default: $FARCAST_KEY or the file $FARCAST_KEY_FILE, else key in
    /// ~/.config/farcast].
    #[arg(long = "key", visible_alias = "file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// Name of this host for others [default: its host name].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Replace an existing key. Other hosts must then trust the new one.
    #[arg(long)]
    pub(crate) force: bool,
    /// Make a hybrid key, so that recordings of transfers to this host stay shut for quantum computers as well. Its line
    /// has 2 kB instead of 226 letters, and senders send 1.4 kB for it at the beginning instead of 0.2 kB.
    #[arg(long)]
    pub(crate) hybrid: bool,
    #[command(flatten)]
    pub(crate) key: KeyFileArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) key: KeyFileArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TrustArgs {
    /// Name and key, a file with such lines, or - for standard input.
    #[arg(required = true, num_args = 1..=2, value_name = "LINE|FILE|-")]
    pub(crate) what: Vec<OsString>,
    /// Name for the key, in place of the one in its line.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Role in which the key is trusted [default: as before, or both]. A revoked name or key needs it.
    #[arg(long = "as", value_enum, value_name = "ROLE")]
    pub(crate) role: Option<Role>,
    /// Trust the key only if it has this fingerprint.
    #[arg(long)]
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Trust the key although it was revoked.
    #[arg(long)]
    pub(crate) again: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) key: KeyFileArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// Name or fingerprint of the key; a fingerprint need not be known here.
    #[arg(value_name = "NAME|FINGERPRINT")]
    pub(crate) who: String,
}

#[derive(Args, Debug)]
pub(crate) struct RenewArgs {
    /// Make it a hybrid key, as farcast key new --hybrid does. A hybrid key stays hybrid.
    #[arg(long)]
    pub(crate) hybrid: bool,
    #[command(flatten)]
    pub(crate) key: KeyFileArgs,
}
