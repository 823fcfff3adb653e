//! `farcast receive`.
//!
//! This module holds the parts that all protocols share. Each protocol has a module of its own, which [`run`] chooses.

use std::net::{IpAddr, SocketAddr};

use farcast_core::Time;
use farcast_core::engine::Engine;
use farcast_delivery::Protocol;
use farcast_files::{Durability, Naming, Options, Overwrite};
use farcast_net::{NetError, ReceiveOptions};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::args::ReceiveArgs;
use crate::host::{Endpoint, Family, Host};
use crate::output::Output;
use crate::protocols::Speaks;
use crate::sealing::{self, Sealing};
use crate::send::socket_options;
use crate::{Exit, Failure, names, outputs, report};

mod files;
mod mdp;
mod mftp;
mod nack;
mod narrow;
mod norm;
mod one_way;
mod pgm;
mod plain;
mod stream;
mod view;

pub(crate) use mdp::MdpArgs;
pub(crate) use nack::NackArgs;
pub(crate) use one_way::OneWayArgs;
pub(crate) use pgm::PgmArgs;
pub(crate) use stream::StreamArgs;

use view::{View, brought, kept};

type Engine_<F> = <<F as Face>::Protocol as Protocol>::Receiver;
type Event<F> = <Engine_<F> as Engine>::Event;
type Notice<'a, F> = farcast_net::ReceiveNotice<'a, Event<F>>;
type Report<F> = farcast_net::ReceiveReport<Event<F>>;

pub(crate) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    args.stream.check()?;
    args.name.iter().try_for_each(|name| names::check("--name", name))?;
    names::check_all("--trust", &args.trust)?;
    answer_port(args)?;
    if args.pgm.unicast_port.is_some() && !args.stream.stream {
        return Err(Failure::usage("--unicast-port goes with --stream"));
    }
    let why = "where the sender names the files and could replace it";
    let (log, page) = (args.output.log.as_deref(), args.page.report.as_deref());
    outputs::outside(&[("--log", log), ("--report", page)], &args.into, why)?;
    if page.is_some() && args.stream.stream {
        return Err(Failure::usage("--report draws how files are received, and --stream receives none"));
    }
    report::check(&args.output, &args.page, &[])?;
    match args.speaks() {
        Speaks::Mftp => mftp::run(args),
        Speaks::Norm if args.stream.stream => stream::by_norm(args),
        Speaks::Pgm if args.stream.stream => stream::by_pgm(args),
        Speaks::Norm => norm::run(args),
        Speaks::Mdp => mdp::run(args),
        Speaks::Pgm => pgm::run(args),
        Speaks::OneWay => one_way::run(args),
    }
}

/// Refuses options that do not go with `--answer-port`.
fn answer_port(args: &ReceiveArgs) -> Result<(), Failure> {
    let Some(port) = args.socket.answer_port else { return Ok(()) };
    if args.pgm.raw {
        return Err(Failure::usage("--answer-port is of UDP, and --raw does without"));
    }
    let listened = match &args.from {
        Endpoint::Address(address) | Endpoint::Zoned { address, .. } => address.port(),
        Endpoint::Name { port, .. } => *port,
    };
    if port == listened {
        return Err(Failure::usage(format!(
            "--answer-port {port} is the port that is listened to; answers leave from another"
        )));
    }
    if args.from.address().is_some_and(|address| !address.is_multicast()) {
        return Err(Failure::usage(
            "--answer-port is for groups: at an address of its own a receiver answers from where it listens",
        ));
    }
    Ok(())
}

/// Protocol-specific parts of the messages about a reception.
trait Face {
    /// Protocol of the reception.
    type Protocol: Protocol;

    /// Set if a transmission has several objects, all of which `--once` waits for.
    const SEVERAL: bool;

    /// Returns a message about an event of the protocol, or `None` if it needs none. This receiver's name is `own`.
    fn told(&self, event: &Event<Self>, own: &str) -> Option<Told>
    where
        Self: Sized;

    /// Returns the result of the reception, in one sentence.
    fn outcome(&self, report: &Report<Self>) -> String
    where
        Self: Sized;

    /// Returns the figures that only this protocol reports in the end.
    fn figures(&self, report: &Report<Self>, receiver: &Engine_<Self>) -> Value
    where
        Self: Sized;
}

/// Message about an event, in words and for programs.
struct Told {
    line: Option<String>,
    kind: &'static str,
    fields: Value,
}

/// Returns the random seed of the receiver with this id: the user's, or else a seed that differs for each id. The
/// default is never the id itself. Engines derive their draws from the seed and the id, which cancel out if they are
/// equal. All receivers would then ask at the same instants.
fn seed_of(said: Option<u64>, id: u32) -> u64 {
    said.unwrap_or(!u64::from(id))
}

/// Receives by the engine that `make` makes. The argument of `make` is the size of the kernel's receive buffer in
/// octets.
fn receive<F: Face, E: std::error::Error + Send + Sync + 'static>(
    args: &ReceiveArgs,
    (heard, plain, seed): (&Heard, bool, u64),
    (codec, face): (&<F::Protocol as Protocol>::Codec, F),
    make: impl FnOnce(usize) -> Result<Engine_<F>, E>,
) -> Result<Exit, Failure> {
    let mut output = Output::new(&args.output)?;
    let stop = crate::interrupt::interrupted_service(args.output.log.is_some())?;
    let socket = socket_options(&args.socket);
    let mut say = |missing: &NetError| waiting(&mut output, missing);
    let there = farcast_net::wait_to_listen(heard.from, heard.source, &socket, &stop, &mut say);
    if !there.map_err(Failure::of_net)? {
        return nothing(args);
    }
    let options = ReceiveOptions {
        from: heard.from,
        source: heard.source,
        accept: heard.accept.clone(),
        into: args.into.clone(),
        files: Options {
            durability: if args.no_sync { Durability::NoSync } else { Durability::Sync },
            overwrite: if args.keep_existing { Overwrite::Keep } else { Overwrite::Overwrite },
            hidden: args.hidden,
            quota: args.quota.quota(),
            vouched_only: true,
            naming: Naming::AtOnce,
            enduring: heard.sealing.is_some(),
        },
        plain,
        socket,
        once: args.once,
        discard: args.discard,
        silent: args.nack.silent,
        simulate_loss: args.simulate_loss,
        seed,
        wait_for_room: args.wait_for_room,
    };
    let page = report::Receiving::new(&args.page, F::Protocol::WORDS, heard.own_name(args), heard.from);
    let mut view = View::new(output, args, face, (heard, page));
    let mut observer =
        |now: Time, receiver: &Engine_<F>, notice: &Notice<'_, F>| view.observe(now, receiver, notice);
    let mut seal = heard
        .sealing
        .as_ref()
        .map(|sealing| {
            let scopes = sealing::scopes(args.speaks(), false, heard.from);
            sealing.receiver(scopes, args.speaks() != Speaks::OneWay && !args.nack.silent)
        })
        .transpose()?;
    let with = (codec, seal.as_mut());
    let last = farcast_net::receive::<F::Protocol, _>(&options, with, make, &stop, &mut observer);
    view.wait_for_hook();
    let page = view.take_page();
    let how = view.over(last.map_err(Failure::of_net));
    if let Some(page) = page {
        page.finish(
            how.as_ref().map_or_else(|failure| failure.sentence.as_str(), |_| "The receiver has ended"),
        );
    }
    how
}

/// Addresses that a receiver hears, with names resolved.
struct Heard {
    from: SocketAddr,
    source: Option<IpAddr>,
    accept: Vec<IpNet>,
    sealing: Option<Sealing>,
}

impl Heard {
    fn of(args: &ReceiveArgs) -> Result<Self, Failure> {
        let sealing = Sealing::to_receive(args)?;
        // A host that is given as an address fixes the family.
        let wanted = args.source.as_ref().and_then(Host::address).map(Family::of);
        let from = args.from.resolve("--from", wanted)?;
        if from.port() == 0 {
            return Err(Failure::usage("--from must not have port 0: nobody could send there"));
        }
        let family = Family::of(from.ip());
        let source = args.source.as_ref().map(|host| host.resolve("--source", Some(family))).transpose()?;
        let accept: Result<Vec<_>, _> = args.accept.iter().map(|one| one.resolve("--accept")).collect();
        Ok(Self { from, source, accept: accept?.concat(), sealing })
    }

    /// Returns this receiver's name, or `None` if only its address identifies it.
    fn name(&self, args: &ReceiveArgs) -> Option<String> {
        args.name.clone().or_else(|| self.sealing.as_ref().map(|sealing| sealing.name().to_owned()))
    }

    /// Returns this receiver's name, or its address if it has no name.
    fn own_name(&self, args: &ReceiveArgs) -> String {
        self.name(args).unwrap_or_else(|| own_address(args, self.from).to_string())
    }
}

/// Returns the result of a receiver that was stopped before anything came.
fn nothing(args: &ReceiveArgs) -> Result<Exit, Failure> {
    if args.once {
        return Err(Failure { sentence: "stopped before anything came".into(), exit: Exit::Failed });
    }
    Ok(Exit::Done)
}

/// Reports a missing condition that the receiver waits for.
fn waiting(output: &mut Output, missing: &NetError) {
    output.line(&format!("waiting: {missing}"));
    output.event("waiting", json!({ "reason": missing.to_string() }));
}

fn own_address(args: &ReceiveArgs, from: SocketAddr) -> IpAddr {
    farcast_net::own_address(from, &socket_options(&args.socket)).unwrap_or(from.ip())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use farcast_core::random::RandomStream;

    use super::*;

    #[test]
    fn receivers_of_which_nothing_is_said_draw_differently() {
        let first = |id: u32| RandomStream::derive(seed_of(None, id), &[u64::from(id)]).bits();
        let drawn: BTreeSet<u64> = (1..=1000).map(first).collect();
        assert_eq!(drawn.len(), 1000);
        assert_eq!(seed_of(Some(7), 1), 7);
    }
}
