//! What follows from a seed.

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// 32 octets that follow from `secret` for the use that `label` names.
pub(crate) fn derive(secret: &[u8], label: &[u8]) -> Zeroizing<[u8; 32]> {
    derive_salted(&[], secret, &[label])
}

/// HKDF-SHA256 (RFC 5869): 32 octets.
fn derive_salted(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    // It fails for more than 255 digests only.
    let expanded = Hkdf::<Sha256>::new(Some(salt), secret).expand_multi_info(info, &mut *out);
    debug_assert!(expanded.is_ok(), "one digest");
    out
}
