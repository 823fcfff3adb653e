//! Derivation of a session's keys.

use alloc::vec::Vec;

use hkdf::hmac::{Hmac, KeyInit as _, Mac as _};
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::{X25519HkdfSha256 as X25519, XWing};
use hpke::{
    Deserializable, HpkeError, Kem, OpModeR, OpModeS, PskBundle, Serializable, setup_receiver,
    setup_sender_with_rng,
};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::draws::{Draws, derive_salted};
use crate::identity::PublicIdentity;
use crate::scope::{Contents, Scope};
use crate::suite::{AgreementSecret, SecretOf, Suite};
use crate::wire::{SessionId, WRAPPED};

pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// Secret part of a sender's agreement key of a session.
pub(crate) type SessionSecret = SecretOf<X25519>;

type PublicKey = <X25519 as Kem>::PublicKey;
type Enc = <X25519 as Kem>::EncappedKey;

/// Wrapped secret in an entry of KEYS, for one receiver.
pub(crate) struct Wrapped {
    pub(crate) enc: Vec<u8>,
    pub(crate) sealed: [u8; WRAPPED],
    /// Pair secret, which only sender and receiver know.
    pub(crate) pair: Secret,
}

/// Public values from which the identifier of a session derives.
pub(crate) struct SessionParameters<'a> {
    pub(crate) contents: Contents,
    pub(crate) scope: Scope,
    pub(crate) began_ms: u64,
    /// Signing key of the sender.
    pub(crate) signing: &'a [u8; 32],
    /// Agreement key of the sender for the session.
    pub(crate) agreement: &'a [u8; 32],
}

/// Epoch of a session.
#[derive(Clone, Copy)]
pub(crate) struct EpochId {
    pub(crate) session: SessionId,
    pub(crate) epoch: u8,
}

/// Keys between a receiver and its sender, and the `enc` from which the sender derives them.
pub(crate) struct PairSecrets {
    pub(crate) enc: [u8; 32],
    pub(crate) up: Secret,
    pub(crate) down: Secret,
}

/// Draws an agreement key of a sender for one session.
pub(crate) fn agreement(draws: &mut Draws) -> (SessionSecret, [u8; 32]) {
    let (secret, public) = X25519::derive_keypair(&*draws.secret());
    (secret, bytes(&public))
}

/// Derives the identifier of a session, which no other sender's session has. It depends on the sender's two keys, one
/// of which is drawn for the session. It also depends on the scope and the kind of contents, so that the keys are valid
/// for nothing else.
pub(crate) fn session(of: &SessionParameters<'_>) -> SessionId {
    let SessionParameters { contents, scope, began_ms, signing, agreement } = *of;
    let (contents, began) = ([contents as u8], began_ms.to_be_bytes());
    SessionId(digest(&[b"farcast seal 1 session", &contents, &began, signing, agreement, &scope.0]))
}

/// Derives the four-octet tag by which a receiver recognises its entries and datagrams.
pub(crate) fn tag(session: SessionId, receiver: &PublicIdentity) -> [u8; 4] {
    digest(&[b"farcast seal 1 tag", &session.0, receiver.signing(), receiver.agreement()])
}

/// Returns the first octets of SHA-256 over `parts`.
fn digest<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let digest = parts.iter().fold(Sha256::new(), Digest::chain_update).finalize();
    let mut first = [0; N];
    first.copy_from_slice(&digest[..N]);
    first
}

/// Derives the group's key of an epoch.
pub(crate) fn group(secret: &Secret, session: SessionId, epoch: u8) -> Secret {
    derive_salted(&session.0, &**secret, &[b"farcast seal 1 group", &[epoch]])
}

/// Derives the secret of an even epoch from that of the odd one above it. A receiver with the key of content apart thus
/// also has the even epoch's key.
pub(crate) fn opened(secret: &Secret, session: SessionId, epoch: u8) -> Secret {
    derive_salted(&session.0, &**secret, &[b"farcast seal 1 open", &[epoch]])
}

/// Returns the HPKE `info` of an entry of KEYS. It contains the receiver's signing key. A receiver that claims
/// another's agreement key therefore gets an entry that the other cannot open, and that the other never answers by
/// mistake.
fn keys_info(of: EpochId, receiver: &PublicIdentity) -> Vec<u8> {
    [&b"farcast seal 1 keys"[..], &of.session.0, &[of.epoch], receiver.signing()].concat()
}

/// Wraps `secret` for one receiver as an entry of KEYS; `None` if no agreement with its key is possible.
pub(crate) fn wrap(to: &PublicIdentity, of: EpochId, secret: &Secret, draws: &mut Draws) -> Option<Wrapped> {
    let info = keys_info(of, to);
    match to.suite() {
        Suite::X25519 => wrap_by::<X25519>(to.agreement(), &info, secret, draws),
        Suite::Hybrid => wrap_by::<XWing>(to.agreement(), &info, secret, draws),
    }
}

fn wrap_by<K: Kem>(to: &[u8], info: &[u8], secret: &Secret, draws: &mut Draws) -> Option<Wrapped> {
    let to = K::PublicKey::from_bytes(to).ok()?;
    let (enc, mut context) =
        setup_sender_with_rng::<AesGcm256, HkdfSha256, K>(&OpModeS::Base, &to, info, draws).ok()?;
    let sealed = context.seal(&**secret, &[]).ok()?;
    let pair = exported(|label, out| context.export(label, out), b"pair")?;
    Some(Wrapped { enc: enc.to_bytes().to_vec(), sealed: sealed.as_slice().try_into().ok()?, pair })
}

/// Unwraps an entry of KEYS for `receiver`, whose key is `own`. Returns the secret of the epoch and the pair secret.
pub(crate) fn unwrap(
    own: &AgreementSecret,
    receiver: &PublicIdentity,
    of: EpochId,
    entry: &[u8],
) -> Option<(Secret, Secret)> {
    let (enc, wrapped) = entry.get(4..)?.split_last_chunk::<WRAPPED>()?;
    let info = keys_info(of, receiver);
    match own {
        AgreementSecret::X25519(own) => unwrap_by::<X25519>(own, enc, &info, wrapped),
        AgreementSecret::Hybrid(own) => unwrap_by::<XWing>(own, enc, &info, wrapped),
    }
}

fn unwrap_by<K: Kem>(
    own: &SecretOf<K>,
    enc: &[u8],
    info: &[u8],
    wrapped: &[u8; WRAPPED],
) -> Option<(Secret, Secret)> {
    let enc = K::EncappedKey::from_bytes(enc).ok()?;
    let mut context = setup_receiver::<AesGcm256, HkdfSha256, K>(&OpModeR::Base, own, &enc, info).ok()?;
    let opened = Zeroizing::new(context.open(wrapped, &[]).ok()?);
    let mut secret = Zeroizing::new([0; 32]);
    secret.copy_from_slice(opened.get(..32)?);
    let pair = exported(|label, out| context.export(label, out), b"pair")?;
    Some((secret, pair))
}

/// Draws the keys with which a receiver answers; `to` is the sender's agreement key of the session.
pub(crate) fn draw_answer(
    to: &[u8; 32],
    pair: &Secret,
    session: SessionId,
    draws: &mut Draws,
) -> Option<PairSecrets> {
    let to = PublicKey::from_bytes(to).ok()?;
    let mode = OpModeS::Psk(bundle(pair)?);
    let (enc, context) =
        setup_sender_with_rng::<AesGcm256, HkdfSha256, X25519>(&mode, &to, &answer_info(session), draws)
            .ok()?;
    let export = |label: &[u8], out: &mut [u8]| context.export(label, out);
    Some(PairSecrets { enc: bytes(&enc), up: exported(export, b"up")?, down: exported(export, b"down")? })
}

/// Derives the same keys at the sender, from `enc`.
pub(crate) fn take_answer(
    own: &SessionSecret,
    enc: &[u8; 32],
    pair: &Secret,
    session: SessionId,
) -> Option<PairSecrets> {
    let mode = OpModeR::Psk(bundle(pair)?);
    let info = answer_info(session);
    let context =
        setup_receiver::<AesGcm256, HkdfSha256, X25519>(&mode, own, &Enc::from_bytes(enc).ok()?, &info)
            .ok()?;
    let export = |label: &[u8], out: &mut [u8]| context.export(label, out);
    Some(PairSecrets { enc: *enc, up: exported(export, b"up")?, down: exported(export, b"down")? })
}

/// Returns the guard of `enc`. It proves, before any key agreement, that the author of `enc` has the pair secret.
pub(crate) fn guard(pair: &Secret, enc: &[u8; 32]) -> [u8; 8] {
    let mut guard = [0; 8];
    if let Some(mac) = mac(pair, enc) {
        guard.copy_from_slice(&mac.finalize().into_bytes()[..8]);
    }
    guard
}

/// Returns `true` if `guard` is the guard of `enc`. The comparison takes constant time.
pub(crate) fn guards(pair: &Secret, enc: &[u8; 32], guard: [u8; 8]) -> bool {
    mac(pair, enc).is_some_and(|mac| mac.verify_truncated_left(&guard).is_ok())
}

fn mac(pair: &Secret, enc: &[u8; 32]) -> Option<Hmac<Sha256>> {
    // HMAC accepts a key of any length.
    let mac = Hmac::<Sha256>::new_from_slice(&**pair).ok()?;
    Some(mac.chain_update(b"farcast seal 1 guard").chain_update(enc))
}

fn bundle(pair: &Secret) -> Option<PskBundle<'_>> {
    PskBundle::new(&**pair, b"farcast seal 1 pair").ok()
}

fn answer_info(session: SessionId) -> Vec<u8> {
    [&b"farcast seal 1 answer"[..], &session.0].concat()
}

fn exported(export: impl Fn(&[u8], &mut [u8]) -> Result<(), HpkeError>, label: &[u8]) -> Option<Secret> {
    let mut secret = Zeroizing::new([0; 32]);
    export(label, &mut *secret).ok().map(|()| secret)
}

fn bytes(key: &impl Serializable) -> [u8; 32] {
    let mut bytes = [0; 32];
    key.write_exact(&mut bytes);
    bytes
}
