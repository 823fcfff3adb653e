//! What is said, octet for octet, against a second implementation: `scripts/seal-vectors`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use farcast_seal::{History, Identity, Listed, Receiver, ReceiverConfig, Sender, SenderConfig};
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

struct Played {
    ann: Sender,
    bob: Receiver,
}

impl Played {
    fn new(session: &Value) -> Self {
        let identity = |name: &str| Identity::from_seed(seed(&session["identities"][name]));
        let listed = |name: &str| Listed { name: name.into(), key: identity(name).public().clone() };
        let config = SenderConfig {
            identity: identity("ann"),
            receivers: vec![listed("bob"), listed("eve")],
            began_ms: session["began_ms"].as_u64().unwrap(),
            separate_content: session["apart"].as_bool().unwrap(),
            signed_content: session["signed"].as_bool().unwrap(),
            datagram: 1472,
        };
        let ann = Sender::new(config, seed(&session["seeds"]["ann"]));
        assert_eq!(ann.session().to_string(), session["session"]);
        let config = ReceiverConfig { identity: identity("bob"), senders: vec![listed("ann")] };
        let bob = Receiver::new(config, History::default(), seed(&session["seeds"]["bob"]));
        Self { ann, bob }
    }

    /// What is said in this step, sealed by who says it and opened by who hears it.
    fn step(&mut self, step: &str, said: &[u8]) -> Vec<u8> {
        let Self { ann, bob } = self;
        let datagram = match step {
            "keys" => ann.keys(true).remove(0),
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
    for name in ["apart", "plain", "signed", "signed-apart"] {
        let session = vectors(name);
        let mut played = Played::new(&session);
        for (n, step) in session["steps"].as_array().unwrap().iter().enumerate() {
            if step["step"] == "remove eve" {
                played.ann.remove(&[1]).unwrap();
                continue;
            }
            let datagram = played.step(step["step"].as_str().unwrap(), &octets(&step["said"]));
            assert_eq!(datagram, octets(&step["datagram"]), "{name}, step {n}: {}", step["step"]);
        }
    }
}
