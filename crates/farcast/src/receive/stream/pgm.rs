//! `farcast receive --protocol pgm --stream`.

use farcast_delivery::{Codec as _, Transport};
use farcast_pgm::stream::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
use farcast_pgm::{Codec, ReceiverConfig};

use super::{Face, Place, Told, receive};
use crate::args::ReceiveArgs;
use crate::receive::{Heard, pgm};
use crate::{Exit, Failure};

pub(in crate::receive) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let receiver = pgm::configure(args, &heard)?;
    let (seed, transport) = (receiver.seed, Codec { raw: args.pgm.raw }.transport());
    if transport != Transport::Udp && args.pgm.unicast_port.is_some() {
        return Err(Failure::usage("--unicast-port is of UDP, and --raw does without"));
    }
    let receiver = ReceiverConfig { unicast_port: args.pgm.unicast_port, ..receiver };
    let config = StreamReceiverConfig { receiver, from_now: args.stream.from_now };
    let engine = StreamReceiver::new(config).map_err(Failure::wrong)?;
    receive::<PgmFace>(args, &heard, (engine, seed, transport))
}

struct PgmFace;

impl Face for PgmFace {
    type Engine = StreamReceiver;

    const PLACE: Place = Place::Number;

    fn told(event: &StreamReceiverEvent) -> Told {
        match *event {
            StreamReceiverEvent::Joined { tsi, source } => {
                let session = format!("{:?}.{}", tsi.gsi, tsi.port);
                Told::Joined {
                    what: format!("session {session}"),
                    known_as: ("session", session.into()),
                    source,
                }
            }
            StreamReceiverEvent::Files { source } => Told::Files(source),
            StreamReceiverEvent::Gone => Told::Gone,
        }
    }

    fn requests(engine: &StreamReceiver) -> u64 {
        engine.naks()
    }
}
