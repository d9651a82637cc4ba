//! Keys of authors, so that a deletion request has a true signature. Other events need none.

use std::sync::OnceLock;

use deedbook::nostr::Event;
use secp256k1::Keypair;

static KEYS: [OnceLock<Keypair>; 256] = [const { OnceLock::new() }; 256];

fn keys(author: u8) -> &'static Keypair {
    KEYS[usize::from(author)].get_or_init(|| {
        let mut secret = [7; 32];
        secret[31] = author;
        Keypair::from_secret_bytes(secret).unwrap()
    })
}

pub fn author(number: u8) -> [u8; 32] {
    keys(number).x_only_public_key().0.to_byte_array()
}

pub fn number_of(pubkey: &[u8; 32]) -> u8 {
    (0..=255).find(|&number| author(number) == *pubkey).unwrap()
}

/// Give an event its id, and a deletion request its author's signature.
pub fn sealed(mut event: Event) -> Event {
    event.id = event.canonical_id();
    if event.kind == 5 {
        let keys = keys(number_of(&event.pubkey));
        event.sig = secp256k1::schnorr::sign_no_aux_rand(&event.id.0, keys).to_byte_array();
    }
    event
}
