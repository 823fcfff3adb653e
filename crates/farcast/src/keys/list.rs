//! `farcast key list`: this host's key and the trusted ones, in a table or for programs.

use farcast_seal::PublicIdentity;
use farcast_transfer::keys::{Own, Trust, agreement, own};
use serde_json::{Value, json};

use super::args::ListArgs;
use crate::Failure;
use crate::output::Output;
use crate::table::{Align, Table};
use crate::text::Text;

pub(super) fn list(args: &ListArgs) -> Result<(), Failure> {
    let own = own(args.key.file.as_deref())?;
    let trust = Trust::load()?;
    let output = Output::of(args.json, false);
    if args.json {
        output.object(&object(own.as_ref(), &trust));
    } else {
        output.result(&text(own.as_ref(), &trust));
    }
    Ok(())
}

fn text(own: Option<&Own>, trust: &Trust) -> Text {
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("role", Align::Left),
        ("fingerprint", Align::Left),
        ("agreement", Align::Left),
        ("renewed", Align::Right),
    ]);
    let mut row = |name: &str, role: &str, fingerprint: String, key: Option<&PublicIdentity>| {
        let renewed = key.map_or_else(|| "-".into(), |key| key.renewals().to_string());
        table.row([name.into(), role.into(), fingerprint, key.map_or("-", agreement).into(), renewed]);
    };
    if let Some(own) = own {
        let public = own.identity.public();
        row(&own.name, "this host", public.fingerprint().to_string(), Some(public));
    }
    for one in trust.trusted() {
        let key = &one.listed.key;
        row(&one.listed.name, one.role.shown(), key.fingerprint().to_string(), Some(key));
    }
    for one in trust.revoked() {
        row(one.name.as_deref().unwrap_or("-"), "revoked", one.fingerprint.to_string(), None);
    }
    let (receivers, senders) = (trust.receivers().count(), trust.senders().count());
    let trusted = format!("trusted: {receivers} as receivers, {senders} as senders");
    let none = own.is_none().then_some("this host has no key: `farcast key new` makes one");
    table.render().paragraph(Text::line(&trusted)).then(Text::lines(none))
}

fn object(own: Option<&Own>, trust: &Trust) -> Value {
    let own = own.map(|own| {
        let public = own.identity.public();
        json!({
            "name": own.name,
            "fingerprint": public.fingerprint().to_string(),
            "agreement": agreement(public),
            "renewals": public.renewals(),
            "key": public.to_string(),
        })
    });
    let trusted = trust.trusted().map(|one| {
        let key = &one.listed.key;
        json!({
            "name": one.listed.name,
            "role": one.role.word(),
            "fingerprint": key.fingerprint().to_string(),
            "agreement": agreement(key),
            "renewals": key.renewals(),
            "key": key.to_string(),
        })
    });
    let revoked =
        trust.revoked().map(|one| json!({ "name": one.name, "fingerprint": one.fingerprint.to_string() }));
    json!({
        "own": own,
        "trusted": trusted.collect::<Vec<_>>(),
        "revoked": revoked.collect::<Vec<_>>(),
    })
}
