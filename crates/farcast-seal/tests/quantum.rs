//! An attacker that has recorded a session and breaks X25519 one day: docs/src/seal.md, "A quantum computer, one day".
//!
//! It has the secret of every public key on the curve, and implements docs/src/seal.md independently of farcast-seal.
//! It opens what X25519 alone protects, which proves its ability. It does not open what ML-KEM protects too.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::slice;

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut as _, Aes256Gcm, KeyInit as _};
use common::{address, answer, content, hear, identity, scope, take, to_one};
use farcast_seal::{
    Contents, History, Identity, Listed, Receiver, ReceiverConfig, Sender, SenderConfig, Suite,
};
use hkdf::Hkdf;
use hkdf::hmac::{Hmac, Mac as _};
use hpke::Kem;
use hpke::kem::X25519HkdfSha256;
use ml_kem::{Decapsulate as _, FromSeed as _, MlKem768};
use sha2::{Digest as _, Sha256};
use sha3::Sha3_256;
use shake::{ExtendableOutput as _, Shake256};
use x25519_dalek::{PublicKey, StaticSecret};

const SEED_OF_ANN: [u8; 32] = [1; 32];

fn hybrid(name: &str) -> Identity {
    let mut seed = [0; 32];
    seed[..name.len()].copy_from_slice(name.as_bytes());
    Identity::hybrid_from_seed(seed)
}

/// Datagrams to the group, and between ann and bob, who is first on the list.
struct Record {
    keys: Vec<Vec<u8>>,
    first_answer: Vec<u8>,
    key_of_content: Vec<u8>,
    content: Vec<u8>,
}

fn session(receivers: &[Identity]) -> Record {
    let listed = |one: &Identity| Listed { name: String::new(), key: one.public().clone() };
    let config = SenderConfig {
        identity: identity("ann"),
        receivers: receivers.iter().map(listed).collect(),
        began_ms: 1,
        scope: scope(),
        contents: Contents::Apart,
        datagram: 1472,
    };
    let mut ann = Sender::new(config, SEED_OF_ANN);
    let keys = ann.keys(true);
    let mut those: Vec<_> = (0..receivers.len())
        .map(|n| {
            let config = ReceiverConfig {
                identity: receivers[n].clone(),
                senders: vec![listed(&identity("ann"))],
                scopes: vec![scope()],
            };
            Receiver::new(config, History::default(), [100 + n as u8; 32])
        })
        .collect();
    let mut answers = Vec::new();
    for (n, one) in those.iter_mut().enumerate() {
        let heard = keys.iter().filter(|keys| hear(one, keys).is_ok()).count();
        assert!(heard > 0, "an entry for {n}");
        let first = answer(one, b"registration");
        take(&mut ann, address(n), &first).unwrap();
        let key = to_one(&mut ann, address(n), b"granted");
        hear(one, &key).unwrap();
        answers.push((first, key));
    }
    let content = content(&mut ann, b"attack at dawn");
    assert_eq!(hear(&mut those[0], &content).unwrap().1, b"attack at dawn");
    let (first_answer, key_of_content) = answers.swap_remove(0);
    Record { keys, first_answer, key_of_content, content }
}

/// Context of RFC 9180 whose shared secret is known.
struct Context {
    suite: Vec<u8>,
    key: [u8; 32],
    nonce: [u8; 12],
    exporter: [u8; 32],
}

impl Context {
    fn new(kem: u16, shared: &[u8], info: &[u8], (psk, psk_id): (&[u8], &[u8])) -> Self {
        let suite = [b"HPKE", &kem.to_be_bytes()[..], &[0, 1, 0, 2]].concat();
        let extract = |salt: &[u8], label: &[u8], ikm: &[u8]| {
            let labeled = [b"HPKE-v1", &suite[..], label, ikm].concat();
            Hkdf::<Sha256>::extract((!salt.is_empty()).then_some(salt), &labeled).0
        };
        let mode = [u8::from(!psk.is_empty())];
        let about =
            [&mode[..], &extract(&[], b"psk_id_hash", psk_id), &extract(&[], b"info_hash", info)].concat();
        let secret = extract(shared, b"secret", psk);
        Self {
            key: expand(&suite, &secret, b"key", &about),
            nonce: expand(&suite, &secret, b"base_nonce", &about),
            exporter: expand(&suite, &secret, b"exp", &about),
            suite,
        }
    }

    fn export(&self, label: &[u8]) -> [u8; 32] {
        expand(&self.suite, &self.exporter, b"sec", label)
    }
}

fn expand<const N: usize>(suite: &[u8], prk: &[u8], label: &[u8], info: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let labeled = [&(N as u16).to_be_bytes()[..], b"HPKE-v1", suite, label, info].concat();
    Hkdf::<Sha256>::from_prk(prk).unwrap().expand(&labeled, &mut out).unwrap();
    out
}

fn hkdf(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> [u8; 32] {
    let mut out = [0; 32];
    Hkdf::<Sha256>::new(Some(salt), secret).expand_multi_info(info, &mut out).unwrap();
    out
}

fn open(key: &[u8; 32], nonce: &[u8; 12], sealed: &[u8]) -> Option<Vec<u8>> {
    let (mut said, tag) = (sealed[..sealed.len() - 16].to_vec(), sealed.last_chunk::<16>()?);
    let cipher = Aes256Gcm::new(&(*key).into());
    let opened = cipher.decrypt_inout_detached(nonce.into(), &[], InOutBuf::from(&mut said[..]), tag.into());
    opened.is_ok().then_some(said)
}

fn agreed(secret: &[u8], public: &[u8]) -> [u8; 32] {
    x25519_dalek::x25519(secret.try_into().unwrap(), public.try_into().unwrap())
}

/// Returns the shared secret of RFC 9180's DHKEM for the key `to`, from the secret of either side.
fn dhkem(secret: &[u8], public: &[u8], enc: &[u8], to: &[u8]) -> [u8; 32] {
    let suite = b"KEM\0\x20";
    let labeled = [b"HPKE-v1", &suite[..], b"eae_prk", &agreed(secret, public)].concat();
    let prk = Hkdf::<Sha256>::extract(None, &labeled).0;
    expand(suite, &prk, b"shared_secret", &[enc, to].concat())
}

/// Secrets of a host that the attacker has: that on the curve, and perhaps that of ML-KEM.
struct Broken {
    public: Vec<u8>,
    signing: [u8; 32],
    suite: Suite,
    on_curve: [u8; 32],
    of_ml_kem: [u8; 64],
}

impl Broken {
    fn new(one: &Identity) -> Self {
        let stored: [u8; 32] = one.to_bytes()[32..64].try_into().unwrap();
        let (public, signing, suite) =
            (one.public().agreement().to_vec(), *one.public().signing(), one.public().suite());
        let (mut on_curve, mut of_ml_kem) = (stored, [0; 64]);
        if suite == Suite::Hybrid {
            let mut expanded = [0; 96];
            Shake256::digest_xof(stored, &mut expanded);
            of_ml_kem.copy_from_slice(&expanded[..64]);
            on_curve.copy_from_slice(&expanded[64..]);
        }
        assert_eq!(
            PublicKey::from(&StaticSecret::from(on_curve)).as_bytes()[..],
            public[public.len() - 32..]
        );
        Self { public, signing, suite, on_curve, of_ml_kem }
    }

    /// Returns ML-KEM's shared secret, for which the attacker needs ML-KEM's secret key.
    fn kept(&self, enc: &[u8]) -> [u8; 32] {
        let (secret, _) = MlKem768::from_seed(&self.of_ml_kem.into());
        secret.decapsulate(&enc[..1088].try_into().unwrap()).into()
    }

    /// Returns the context of an entry if ML-KEM's shared secret is `kept`.
    fn context(&self, enc: &[u8], kept: &[u8; 32], info: &[u8]) -> Context {
        if self.suite == Suite::X25519 {
            let shared = dhkem(&self.on_curve, enc, enc, &self.public);
            return Context::new(0x20, &shared, info, (b"", b""));
        }
        let (of_curve, to) = (&enc[1088..], &self.public[1184..]);
        let of = [kept, &agreed(&self.on_curve, of_curve)[..], of_curve, to, b"\\.//^\\"].concat();
        Context::new(0x647a, &Sha3_256::digest(of), info, (b"", b""))
    }
}

/// Guess at ML-KEM's shared secret of an encapsulation.
type Guess<'a> = &'a dyn Fn(&[u8]) -> [u8; 32];

/// Parts of a record that could be read.
#[derive(PartialEq, Eq, Debug)]
struct Read {
    epoch: bool,
    answer: Option<Vec<u8>>,
    content: Option<Vec<u8>>,
}

const NOTHING: Read = Read { epoch: false, answer: None, content: None };

/// Returns the secret of the sender's session key, which is on the curve.
fn secret_of_session() -> [u8; 32] {
    let state = hkdf(&[], &SEED_OF_ANN, &[b"farcast seal 1 draws"]);
    let (secret, _) = X25519HkdfSha256::derive_keypair(&hkdf(&[], &state, &[b"out"]));
    hpke::Serializable::to_bytes(&secret).into()
}

/// Reads the record for `one`, if `kept` returns ML-KEM's shared secret of its encapsulation.
fn read(record: &Record, one: &Broken, kept: impl Fn(&[u8]) -> [u8; 32]) -> Read {
    let name = |keys: &[u8]| {
        let named = Sha256::new().chain_update(b"farcast seal 1 session").chain_update(&keys[3..84]);
        <[u8; 16]>::try_from(&named.finalize()[..16]).unwrap()
    };
    let session = name(&record.keys[0]);
    let tag = Sha256::new().chain_update(b"farcast seal 1 tag").chain_update(session);
    let tag = tag.chain_update(one.signing).chain_update(&one.public).finalize();
    let width = if one.suite == Suite::Hybrid { 1172 } else { 84 };
    let of_suite = record.keys.iter().filter(|keys| keys[2] == one.suite as u8);
    let mut entries = of_suite.flat_map(|keys| keys[86..keys.len() - 64].chunks(width));
    let entry = entries.find(|entry| entry[..4] == tag[..4]).unwrap();
    let (enc, wrapped) = (&entry[4..width - 48], &entry[width - 48..]);
    let info = [&b"farcast seal 1 keys"[..], &session, &[0], &one.signing].concat();
    let wrapping = one.context(enc, &kept(enc), &info);
    let epoch = open(&wrapping.key, &wrapping.nonce, wrapped).is_some();
    let pair = wrapping.export(b"pair");

    // The answer, with a key from the pair secret and the agreement on the curve.
    let first = &record.first_answer;
    let enc = &first[12..44];
    let guard = Hmac::<Sha256>::new_from_slice(&pair).unwrap().chain_update(b"farcast seal 1 guard");
    let guarded = guard.chain_update(enc).finalize().into_bytes()[..8] == first[44..52];
    let own = secret_of_session();
    let own_public = &record.keys[0][44..76];
    assert_eq!(PublicKey::from(&StaticSecret::from(own)).as_bytes()[..], *own_public);
    let shared = dhkem(&own, enc, enc, own_public);
    let info = [&b"farcast seal 1 answer"[..], &session].concat();
    let between = Context::new(0x20, &shared, &info, (&pair, b"farcast seal 1 pair"));
    let answer = open(&between.export(b"up"), first.first_chunk().unwrap(), &first[52..]);
    assert_eq!(answer.is_some(), guarded);

    // The content key, and the content.
    let given = &record.key_of_content;
    let given = open(&between.export(b"down"), given.first_chunk().unwrap(), &given[12..]);
    let content = given.and_then(|given| {
        let key = hkdf(&session, &given[1..33], &[b"farcast seal 1 group", &[1]]);
        open(&key, record.content.first_chunk().unwrap(), &record.content[12..])
    });
    Read { epoch, answer, content }
}

fn everything() -> Read {
    Read { epoch: true, answer: Some(b"registration".to_vec()), content: Some(b"attack at dawn".to_vec()) }
}

#[test]
fn what_x25519_alone_keeps_is_read() {
    let bob = identity("bob");
    assert_eq!(read(&session(slice::from_ref(&bob)), &Broken::new(&bob), |_| [0; 32]), everything());
}

#[test]
fn what_ml_kem_keeps_too_is_not() {
    let bob = hybrid("bob");
    let record = session(slice::from_ref(&bob));
    let broken = Broken::new(&bob);
    // The attacker would read all of it if it broke ML-KEM as well.
    assert_eq!(read(&record, &broken, |enc| broken.kept(enc)), everything());
    // Guesses from the attacker's knowledge: zeros; the agreement on the curve; a digest of the encapsulation; another
    // key's result for the encapsulation.
    let other = Broken::new(&hybrid("eve"));
    let guesses: [Guess<'_>; 4] = [
        &|_| [0; 32],
        &|enc| agreed(&broken.on_curve, &enc[1088..]),
        &|enc| Sha3_256::digest(enc).into(),
        &|enc| other.kept(enc),
    ];
    for guess in guesses {
        assert_eq!(read(&record, &broken, guess), NOTHING);
    }
}

/// A receiver without a hybrid key exposes the group's datagrams, but not those between the others and the sender.
#[test]
fn one_without_a_hybrid_key_opens_the_group() {
    let (bob, eve) = (hybrid("bob"), identity("eve"));
    let of_eve = session(&[eve.clone(), bob.clone()]);
    assert_eq!(read(&of_eve, &Broken::new(&eve), |_| [0; 32]), everything());
    let of_bob = session(&[bob.clone(), eve]);
    assert_eq!(read(&of_bob, &Broken::new(&bob), |_| [0; 32]), NOTHING);
}

/// A thief that steals the hybrid key later, and breaks X25519, reads the recording, because the session's other keys
/// were on the curve. So renewal is the only forward secrecy against a quantum computer.
#[test]
fn renewing_forgets_what_a_thief_would_need() {
    let mut bob = hybrid("bob");
    let record = session(slice::from_ref(&bob));
    let stolen = Broken::new(&bob);
    assert_eq!(read(&record, &stolen, |enc| stolen.kept(enc)), everything());
    bob.renew([77; 32]);
    let renewed = Broken::new(&bob);
    let stolen = Broken { of_ml_kem: renewed.of_ml_kem, ..stolen };
    assert_eq!(read(&record, &stolen, |enc| stolen.kept(enc)), NOTHING);
}
