//! Signatures of events: BIP-340 Schnorr over secp256k1, of the id.

use secp256k1::{XOnlyPublicKey, schnorr};

use super::event::Id;
use super::format::FORMAT;
use crate::error::{Error, ErrorKind, Result};

/// Whether a signature is the author's, of the id. That the id is the hash of the content is checked
/// elsewhere.
pub fn check(id: Id, pubkey: &[u8; 32], sig: &[u8; 64]) -> Result<()> {
    let refused = |what: String| Error::new(ErrorKind::InvalidArgument, what).of(FORMAT);
    let key = XOnlyPublicKey::from_byte_array(*pubkey)
        .map_err(|e| refused(format!("event {id}: pubkey is no key of the curve: {e}")))?;
    schnorr::verify(&schnorr::Signature::from_byte_array(*sig), &id.0, &key)
        .map_err(|e| refused(format!("event {id}: sig is not its author's: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::bytes::hex;

    fn bytes<const N: usize>(text: &str) -> [u8; N] {
        hex::decode(text.as_bytes()).unwrap()
    }

    /// Vector 0 of BIP-340.
    #[test]
    fn a_signature_fits_one_key_and_one_id() {
        let key = bytes("f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9");
        let sig = bytes(concat!(
            "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca8215",
            "25f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0"
        ));
        check(Id([0; 32]), &key, &sig).unwrap();
        assert!(check(Id([1; 32]), &key, &sig).is_err());
        let mut wrong = sig;
        wrong[63] ^= 1;
        assert!(check(Id([0; 32]), &key, &wrong).is_err());
        let error = check(Id([0; 32]), &[0xFF; 32], &sig).unwrap_err().to_string();
        assert!(error.contains("pubkey is no key of the curve"), "{error}");
    }
}
