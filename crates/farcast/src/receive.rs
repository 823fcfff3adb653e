//! `farcast receive`.
//!
//! The reception itself is `farcast_transfer`'s. This module shows it: `view` files, and `stream` streams.

use farcast_net::NetError;
use farcast_transfer::ProtocolName;
use farcast_transfer::receive::{
    ReceiveMdp, ReceiveMftp, ReceiveNorm, ReceiveOneWay, ReceivePgm, ReceiveProtocol, receive,
};
use serde_json::json;

use crate::args::ReceiveArgs;
use crate::output::Output;
use crate::{Exit, Failure, outputs, report};

mod files;
mod listening;
mod stream;
mod view;

use view::View;

pub(crate) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let job = &args.job;
    let why = "where the sender names the files and could replace it";
    let (log, page) = (args.output.log.as_deref(), args.page.report.as_deref());
    outputs::outside(&[("--log", log), ("--report", page)], &job.into, why)?;
    if page.is_some() && job.stream.stream {
        return Err(Failure::usage("--report draws how files are received, and --stream receives none"));
    }
    report::check(&args.output, &args.page, &[])?;
    match job.protocol_name() {
        ProtocolName::Norm | ProtocolName::Pgm if job.stream.stream => stream::run(args),
        ProtocolName::Mftp => files_by::<ReceiveMftp>(args),
        ProtocolName::Norm => files_by::<ReceiveNorm>(args),
        ProtocolName::Mdp => files_by::<ReceiveMdp>(args),
        ProtocolName::Pgm => files_by::<ReceivePgm>(args),
        ProtocolName::OneWay => files_by::<ReceiveOneWay>(args),
    }
}

/// Receives files by the protocol `P`.
fn files_by<P: ReceiveProtocol>(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let stop = crate::interrupt::interrupted_service(args.output.log.is_some())?;
    let mut view = View::<P>::new(args)?;
    let last = receive::<P>(&args.job, &mut view, &stop);
    view.wait_for_hook();
    let page = view.take_page();
    let how = view.over(last.map_err(Failure::from));
    if let Some(page) = page {
        page.finish(
            how.as_ref().map_or_else(|failure| failure.sentence.as_str(), |_| "The receiver has ended"),
        );
    }
    how
}

/// Returns the result of a receiver that was stopped before anything came.
fn nothing(args: &ReceiveArgs) -> Result<Exit, Failure> {
    if args.job.once {
        return Err(Failure { sentence: "stopped before anything came".into(), exit: Exit::Failed });
    }
    Ok(Exit::Done)
}

/// Reports a missing condition that the receiver waits for.
fn waiting(output: &mut Output, missing: &NetError) {
    output.line(&format!("waiting: {missing}"));
    output.event("waiting", json!({ "reason": missing.to_string() }));
}
