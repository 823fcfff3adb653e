//! The secrets of an identity as text, for files and environments.

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::base32;
use crate::identity::Identity;
use crate::suite::Suite;

/// Prefix of a secret identity as text, for each kind of agreement key.
const PREFIX: &str = "farcast-secret-1:";
const HYBRID_PREFIX: &str = "farcast-secret-2:";
/// Octets of the checksum. It detects a wrong letter, which would otherwise yield another identity.
const CHECK_LEN: usize = 4;

impl Identity {
    /// Encodes the secrets as one word, to be stored where nobody else can read them: `farcast-secret-1:` and 116
    /// letters and digits, or `farcast-secret-2:` with a hybrid agreement key.
    pub fn to_secret_text(&self) -> Zeroizing<String> {
        let mut octets = self.to_bytes();
        let (prefix, check) = (prefix(self.public().suite()), check(self.public().suite(), &octets));
        // The buffer has its final length from the start, because a growing one leaves copies behind.
        let mut whole = Zeroizing::new(Vec::with_capacity(Self::LEN + CHECK_LEN));
        whole.append(&mut octets);
        whole.extend_from_slice(&check);
        let letters = Zeroizing::new(base32::encode(&whole));
        let mut text = Zeroizing::new(String::with_capacity(prefix.len() + letters.len()));
        text.push_str(prefix);
        text.push_str(&letters);
        text
    }

    /// Decodes the text of [`to_secret_text`](Self::to_secret_text).
    ///
    /// # Errors
    /// Returns an error if the text is something else, or if one of its letters is wrong.
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

/// Computes the checksum. It depends on the suite, so that a wrong prefix is detected as well.
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

/// Reason for which a text is not the secret of an identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The prefix is wrong.
    #[error("a secret key begins with {PREFIX} or {HYBRID_PREFIX}")]
    Prefix,
    /// A letter is not in the base-32 alphabet.
    #[error("the secret key has letters that no key has")]
    Letters,
    /// The text is too short or too long.
    #[error("the secret key is too short or too long")]
    Length,
    /// The checksum does not match.
    #[error("a letter of the secret key is wrong")]
    Check,
}

#[cfg(test)]
mod tests;
