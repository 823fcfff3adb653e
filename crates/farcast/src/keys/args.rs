//! The command line of `farcast key`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use farcast_seal::Fingerprint;
use farcast_transfer::keys::Role;

/// What is done with keys.
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
    /// Trust somebody by the line that `farcast key show` prints there.
    #[command(after_help = TRUST_HELP)]
    Trust(TrustArgs),
    /// List whom this host trusts, its own key first.
    List(ListArgs),
    /// Trust somebody no more, and remember that.
    Revoke(RevokeArgs),
    /// Renew this host's key: what was sealed for it before cannot be opened with it any more. The fingerprint stays.
    Renew(RenewArgs),
}

const TRUST_HELP: &str = "\
Examples:
  farcast key trust head-end farcast-key-1:GNZW... --fingerprint 19J3-TY0X-8960-DDMG-F3HY
  farcast key trust stations.txt --as receiver";

/// Where the own key is.
#[derive(Args, Debug)]
pub(crate) struct KeyFileArgs {
    /// The file of this host's key [default: $FARCAST_KEY or the file $FARCAST_KEY_FILE, else key in
    /// ~/.config/farcast].
    #[arg(long = "key", visible_alias = "file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// What others are to call this host [default: its host name].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Replace a key that is there: nobody knows this host any more until they trust the new one.
    #[arg(long)]
    pub(crate) force: bool,
    /// Make a hybrid key: what is recorded of transmissions to this host is to stay shut for quantum computers as well. Its
    /// line has 2 kB instead of 226 letters, and senders send 1.4 kB for it at the beginning instead of 0.2 kB.
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
    /// A name and a key, a file with such lines, or - for standard input.
    #[arg(required = true, num_args = 1..=2, value_name = "LINE|FILE|-")]
    pub(crate) what: Vec<OsString>,
    /// Call it this, and not as its line says.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// What it is trusted as [default: as before, or both; to be said where its name or its key was revoked].
    #[arg(long = "as", value_enum, value_name = "ROLE")]
    pub(crate) role: Option<Role>,
    /// Trust it only if its key has this fingerprint.
    #[arg(long)]
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Trust it although it was revoked.
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
    /// Whom; a fingerprint need not be known.
    #[arg(value_name = "NAME|FINGERPRINT")]
    pub(crate) who: String,
}

#[derive(Args, Debug)]
pub(crate) struct RenewArgs {
    /// Make a hybrid key of it, as farcast key new --hybrid does; one that is hybrid stays so.
    #[arg(long)]
    pub(crate) hybrid: bool,
    #[command(flatten)]
    pub(crate) key: KeyFileArgs,
}
