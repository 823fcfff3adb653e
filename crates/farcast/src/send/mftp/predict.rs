//! Prediction of a transfer over a link, without sending anything.

use farcast_core::Span;
use farcast_files::Outgoing;
use farcast_lab::shipped;
use farcast_mftp::figures::PASSES;
use farcast_mftp::{Product, SenderConfig, Settings};
use farcast_sim::scenario::Scenario;

use super::settings::configuration;
use super::{Destination, early, keys_in, product_name};
use crate::args::SendArgs;
use crate::output::Output;
use crate::sealing::Sealing;
use crate::send::predict::{Predicted, predict as predicted, remedies};
use crate::state::Known;
use crate::{Exit, Failure};

const HOW_MANY: &str = "--predict has to know how many receive: list them with --receivers, or give their number with --wait-for";

const NOBODY_KNOWN: &str = "--predict has to know how many receive, and nobody is known where nobody registers: predict it without --unlimited, with their number by --wait-for";

/// Prints the predicted transfer of `args` over `link`.
pub(super) fn predict(
    args: &SendArgs,
    (to, settings): (Destination, &Settings),
    (outgoing, sealing): (&Outgoing, Option<&Sealing>),
    link: &str,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let receivers = match (args.group.receivers.len(), settings.wait_for) {
        (0, Some(receivers)) => receivers,
        (0, None) if args.group.unlimited => return Err(Failure::usage(NOBODY_KNOWN)),
        (0, None) => return Err(Failure::usage(HOW_MANY)),
        (listed, _) => u32::try_from(listed).unwrap_or(u32::MAX),
    };
    let name = product_name(args);
    // A long list of keys together with data would be too much at once.
    let few = sealing.is_none_or(Sealing::is_for_few);
    let early_data = if few { early(args, &Known::load(to.private), &name) } else { Span::ZERO };
    let product = Product { id: *outgoing.id().as_bytes(), size: outgoing.size(), name };
    let list = outgoing.manifest().head_len();
    let config = configuration(args, (to, settings, sealing.is_some()), list, product, to.private);
    let config = SenderConfig { early_data, ..config };
    let document = shipped::open_link(link).map_err(Failure::wrong)?;
    let sealed = sealing.map(|sealing| sealing.predicted(keys_in(args, to, settings)));
    let scenario = Scenario::over(&document, (config, sealed), receivers);
    let scenario = scenario.map_err(|error| Failure::usage(error.to_string()))?;
    let octets = outgoing.manifest().content_len();
    let help = remedies(
        "Raise --silence or --status-retries.",
        "Have receivers registered (without --unlimited), so that each is waited for, or raise --status-retries.",
    );
    predicted(args, &Predicted { scenario, link, receivers, octets, rounds: PASSES, help }, output)
}
