//! SHA-256, so that whole bodies can be held against the golden manifest.

/// The first 32 bits of the fractional part.
fn fraction(number: f64) -> u32 {
    (number.fract() * 2f64.powi(32)) as u32
}

/// The digest in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let is_prime = |n: &u32| (2..*n).all(|d| !n.is_multiple_of(d));
    let primes: Vec<f64> = (2..).filter(is_prime).take(64).map(f64::from).collect();
    let constants: Vec<u32> = primes.iter().map(|prime| fraction(prime.cbrt())).collect();
    let mut state: Vec<u32> = primes[..8].iter().map(|prime| fraction(prime.sqrt())).collect();
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    message.extend_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
    for block in message.chunks_exact(64) {
        let words = block.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
        let mut w: Vec<u32> = words.collect();
        for i in 16..64 {
            let (a, b) = (w[i - 15], w[i - 2]);
            let a = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let b = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            w.push(w[i - 16].wrapping_add(a).wrapping_add(w[i - 7]).wrapping_add(b));
        }
        let mut s = state.clone();
        for (word, constant) in w.iter().zip(&constants) {
            let e = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choice = (s[4] & s[5]) ^ (!s[4] & s[6]);
            let one = s[7].wrapping_add(e).wrapping_add(choice);
            let one = one.wrapping_add(*constant).wrapping_add(*word);
            let a = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let two = a.wrapping_add((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s.rotate_right(1);
            s[4] = s[4].wrapping_add(one);
            s[0] = one.wrapping_add(two);
        }
        state.iter_mut().zip(&s).for_each(|(state, s)| *state = state.wrapping_add(*s));
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

#[test]
fn it_has_its_check_value() {
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256(b"abc"), expected);
}
