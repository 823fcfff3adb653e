//! `farcast receive --protocol norm --stream`.

use farcast_delivery::Transport;
use farcast_norm::stream::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};

use super::{Face, Place, Told, receive};
use crate::args::ReceiveArgs;
use crate::receive::{Heard, norm};
use crate::{Exit, Failure};

pub(in crate::receive) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let receiver = norm::configure(args, &heard)?;
    let seed = receiver.seed;
    let config =
        StreamReceiverConfig { from_now: args.stream.from_now, ..StreamReceiverConfig::new(receiver) };
    let engine = StreamReceiver::new(config).map_err(Failure::wrong)?;
    receive::<NormFace>(args, &heard, (engine, seed, Transport::Udp))
}

struct NormFace;

impl Face for NormFace {
    type Engine = StreamReceiver;

    const PLACE: Place = Place::Octet;

    fn told(event: &StreamReceiverEvent) -> Told {
        match *event {
            StreamReceiverEvent::Joined { sender, source } => {
                let known_as = ("node", sender.0.into());
                Told::Joined { what: format!("node {sender}"), known_as, source }
            }
            StreamReceiverEvent::Files { source } => Told::Files(source),
            StreamReceiverEvent::Gone => Told::Gone,
        }
    }

    fn requests(engine: &StreamReceiver) -> u64 {
        engine.nacks()
    }
}
