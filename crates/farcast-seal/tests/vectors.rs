//! Datagrams, octet for octet, compared with a second implementation: `scripts/seal-vectors`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use farcast_seal::{
    Contents, History, Identity, Listed, Receiver, ReceiverConfig, Scope, Sender, SenderConfig, Suite,
};
use hpke::kem::XWing;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable as _, Kem, Serializable as _};
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/../../vectors/seal/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn octets(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn seed(value: &Value) -> [u8; 32] {
    octets(value).try_into().unwrap()
}

#[test]
fn identities() {
    let cases = vectors("identities");
    for case in cases["cases"].as_array().unwrap() {
        let mut one = Identity::from_seed(seed(&case["seed"]));
        assert_eq!(one.public().to_string(), case["text"]);
        assert_eq!(one.public().fingerprint().to_string(), case["fingerprint"]);
        assert_eq!(one.to_bytes()[..], octets(&case["stored"]));
        one.renew(seed(&case["renewed_by"]));
        assert_eq!(one.public().to_string(), case["renewed"]);
    }
}

#[test]
fn hybrid_identities() {
    let cases = vectors("hybrid-identities");
    for case in cases["cases"].as_array().unwrap() {
        let mut one = Identity::hybrid_from_seed(seed(&case["seed"]));
        assert_eq!(one.public().to_string(), case["text"]);
        assert_eq!(one.public().fingerprint().to_string(), case["fingerprint"]);
        assert_eq!(one.to_bytes()[..], octets(&case["stored"]));
        assert_eq!(**one.to_secret_text(), *case["secret"].as_str().unwrap());
        one.renew(seed(&case["renewed_by"]));
        assert_eq!(one.public().to_string(), case["renewed"]);
        let mut other = Identity::from_seed(seed(&case["seed"]));
        other.renew_hybrid(seed(&case["renewed_by"]));
        assert_eq!(other.public(), one.public());
    }
}

/// Generator that draws given octets.
struct Given(Vec<u8>);

impl TryRng for Given {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        panic!("an encapsulation draws octets")
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        panic!("an encapsulation draws octets")
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        out.copy_from_slice(&self.0.drain(..out.len()).collect::<Vec<_>>());
        Ok(())
    }
}

impl TryCryptoRng for Given {}

/// The library's X-Wing is that of the draft, and so is farcast's: a stored key is 32 octets of it.
#[test]
fn x_wing() {
    let cases = vectors("x-wing");
    for case in cases["cases"].as_array().unwrap() {
        let stored = [&[7; 32][..], &octets(&case["sk"]), &[0; 4]].concat();
        let one = Identity::from_bytes(Suite::Hybrid, &stored).unwrap();
        assert_eq!(one.public().agreement(), octets(&case["pk"]));
        let to = <XWing as Kem>::PublicKey::from_bytes(one.public().agreement()).unwrap();
        let (secret, enc) = XWing::encap_with_rng(&to, None, &mut Given(octets(&case["eseed"]))).unwrap();
        assert_eq!((&secret.0[..], enc.to_bytes().to_vec()), (&octets(&case["ss"])[..], octets(&case["ct"])));
        let own = <XWing as Kem>::PrivateKey::from_bytes(&octets(&case["sk"])).unwrap();
        assert_eq!(XWing::decap(&own, None, &enc).unwrap().0[..], octets(&case["ss"]));
    }
}

struct Played {
    ann: Sender,
    bob: Receiver,
}

impl Played {
    fn new(session: &Value) -> Self {
        let is_hybrid = |name: &str| {
            session["hybrid"].as_array().is_some_and(|those| those.iter().any(|one| one == name))
        };
        let identity = |name: &str| {
            let seed = seed(&session["identities"][name]);
            if is_hybrid(name) { Identity::hybrid_from_seed(seed) } else { Identity::from_seed(seed) }
        };
        let listed = |name: &str| Listed { name: name.into(), key: identity(name).public().clone() };
        let of = |what: &str| session[what].as_str().unwrap();
        let scope = Scope::of(of("protocol"), of("to").parse().unwrap());
        let config = SenderConfig {
            identity: identity("ann"),
            receivers: vec![listed("bob"), listed("eve")],
            began_ms: session["began_ms"].as_u64().unwrap(),
            scope,
            contents: match session["contents"].as_str().unwrap() {
                "together" => Contents::Together,
                "apart" => Contents::Apart,
                "signed" => Contents::Signed,
                other => panic!("{other}"),
            },
            datagram: 1472,
        };
        let ann = Sender::new(config, seed(&session["seeds"]["ann"]));
        assert_eq!(ann.session().to_string(), session["session"]);
        let config =
            ReceiverConfig { identity: identity("bob"), senders: vec![listed("ann")], scopes: vec![scope] };
        let bob = Receiver::new(config, History::default(), seed(&session["seeds"]["bob"]));
        Self { ann, bob }
    }

    /// Checks that ann's KEYS include these octets, and lets bob hear them if they are for it.
    fn keys(&mut self, step: &str, datagram: &[u8]) {
        let ours = self.ann.keys(true);
        assert!(ours.iter().any(|keys| keys == datagram), "{step}");
        if step == "keys" {
            hear(&mut self.bob, datagram).unwrap();
        }
    }

    /// Seals the message of this step at its sender, and opens it at its receiver.
    fn step(&mut self, step: &str, said: &[u8]) -> Vec<u8> {
        let Self { ann, bob } = self;
        let datagram = match step {
            "control" => control(ann, said),
            "content" => content(ann, said),
            "to one" => to_one(ann, address(2), said),
            "answer" => answer(bob, said),
            _ => panic!("{step}"),
        };
        let heard = if step == "answer" {
            take(ann, address(2), &datagram).unwrap().1
        } else {
            hear(bob, &datagram).unwrap().1
        };
        assert_eq!(heard, said, "{step}");
        datagram
    }
}

#[test]
fn sessions() {
    for name in ["apart", "plain", "signed", "hybrid", "mixed"] {
        let session = vectors(name);
        let mut played = Played::new(&session);
        for (n, step) in session["steps"].as_array().unwrap().iter().enumerate() {
            if step["step"] == "remove eve" {
                played.ann.remove(&[1]).unwrap();
                continue;
            }
            if step["step"].as_str().unwrap().starts_with("keys") {
                played.keys(step["step"].as_str().unwrap(), &octets(&step["datagram"]));
                continue;
            }
            let datagram = played.step(step["step"].as_str().unwrap(), &octets(&step["said"]));
            assert_eq!(datagram, octets(&step["datagram"]), "{name}, step {n}: {}", step["step"]);
        }
    }
}
