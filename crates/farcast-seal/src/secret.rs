//! The secrets of an identity as text, for files and environments.

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::base32;
use crate::identity::Identity;
use crate::suite::Suite;

/// What the text of a secret begins with, by the agreement key that it is of.
const PREFIX: &str = "farcast-secret-1:";
const HYBRID_PREFIX: &str = "farcast-secret-2:";
/// Octets of the check: a letter that is wrong is found, and nobody becomes somebody else by it.
const CHECK_LEN: usize = 4;

impl Identity {
    /// Its secrets as one word, `farcast-secret-1:` and 116 letters and digits, `farcast-secret-2:` with a hybrid agreement
    /// key, for a place that nobody else can read.
    pub fn to_secret_text(&self) -> Zeroizing<String> {
        let mut octets = self.to_bytes();
        let (prefix, check) = (prefix(self.public().suite()), check(self.public().suite(), &octets));
        // As long as it gets from the start: what grows leaves copies behind.
        let mut whole = Zeroizing::new(Vec::with_capacity(Self::LEN + CHECK_LEN));
        whole.append(&mut octets);
        whole.extend_from_slice(&check);
        let letters = Zeroizing::new(base32::encode(&whole));
        let mut text = Zeroizing::new(String::with_capacity(prefix.len() + letters.len()));
        text.push_str(prefix);
        text.push_str(&letters);
        text
    }

    /// What [`to_secret_text`](Self::to_secret_text) gave.
    ///
    /// # Errors
    /// It is something else, or a letter of it is wrong.
    pub fn from_secret_text(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        let of = |suite| Some((suite, text.strip_prefix(prefix(suite))?));
        let (suite, letters) = Suite::ALL.into_iter().find_map(of).ok_or(SecretError::Prefix)?;
        let mut octets = Zeroizing::new(Vec::with_capacity(letters.len() * 5 / 8));
        if !base32::decode_into(letters, &mut octets) {
            let cut = base32::is_cut(letters, Self::LEN + CHECK_LEN);
            return Err(if cut { SecretError::Length } else { SecretError::Letters });
        }
        let Some((secrets, given)) = octets.split_at_checked(Self::LEN).filter(|(_, b)| b.len() == CHECK_LEN)
        else {
            return Err(SecretError::Length);
        };
        if given != check(suite, secrets) {
            return Err(SecretError::Check);
        }
        Self::from_bytes(suite, secrets).map_err(|_| SecretError::Length)
    }
}

fn prefix(suite: Suite) -> &'static str {
    match suite {
        Suite::X25519 => PREFIX,
        Suite::Hybrid => HYBRID_PREFIX,
    }
}

/// Of one suite it is none of another: a prefix that is wrong is found as well.
fn check(suite: Suite, secrets: &[u8]) -> [u8; CHECK_LEN] {
    let of: &[u8] = match suite {
        Suite::X25519 => b"farcast seal 1 secret",
        Suite::Hybrid => b"farcast seal 1 hybrid secret",
    };
    let digest = Sha256::new().chain_update(of).chain_update(secrets).finalize();
    let mut check = [0; CHECK_LEN];
    check.copy_from_slice(&digest[..CHECK_LEN]);
    check
}

/// Why something is no secret of an identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// It begins otherwise.
    #[error("a secret key begins with {PREFIX} or {HYBRID_PREFIX}")]
    Prefix,
    /// It has letters that are none of base 32.
    #[error("the secret key has letters that no key has")]
    Letters,
    /// It is too short or too long.
    #[error("the secret key is too short or too long")]
    Length,
    /// Its check does not hold.
    #[error("a letter of the secret key is wrong")]
    Check,
}

#[cfg(test)]
mod tests;
