//! Checksums in tokens: one that holds leaves no doubt.
//!
//! Guarantees: linear in the token, which is short; no allocation. Deliberately absent: which tokens have one (`tokens.txt`).

use aws_lc_rs::digest::{SHA256, digest};
use memchr::memmem;

/// What a token must hold true of itself, where its form alone says too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// CRC-16 of all before it, in base 32.
    Crc16,
    /// The beginning of a digest of all before it, in base 58.
    Base58,
    /// No checksum: behind the last dot are letters of both cases and digits, as in no digest and in no name.
    Mixed,
    /// No checksum: Base64 of JSON with a member that is called `datakey`.
    DataKey,
}

impl Proof {
    /// The one that a rule calls so.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "crc16" => Some(Self::Crc16),
            "base58" => Some(Self::Base58),
            "mixed" => Some(Self::Mixed),
            "datakey" => Some(Self::DataKey),
            _ => None,
        }
    }

    pub(super) fn holds(self, token: &[u8]) -> bool {
        match self {
            Self::Crc16 => crc16_holds(token),
            Self::Base58 => base58_holds(token),
            Self::Mixed => is_mixed(token),
            Self::DataKey => DATA_KEY
                .iter()
                .any(|word| memmem::find(token, word).is_some()),
        }
    }
}

/// `datakey"` in Base64, by where in three bytes it begins; only what no neighbour has a part in.
const DATA_KEY: [&[u8]; 3] = [b"ZGF0YWtleS", b"RhdGFrZXki", b"kYXRha2V5I"];

/// Whether letters of both cases and digits stand behind the last dot.
fn is_mixed(token: &[u8]) -> bool {
    let last = token.iter().rev().take_while(|byte| **byte != b'.');
    let (mut lower, mut upper, mut digits) = (false, false, false);
    for byte in last {
        lower |= byte.is_ascii_lowercase();
        upper |= byte.is_ascii_uppercase();
        digits |= byte.is_ascii_digit();
    }
    lower && upper && digits
}

/// Whether the last two of 35 bytes in base 32 are the CRC-16 (XMODEM) of the others, the lower one first.
fn crc16_holds(token: &[u8]) -> bool {
    let mut bytes = [0; 35];
    if token.len() != bytes.len() / 5 * 8 {
        return false;
    }
    for (eight, five) in token.chunks_exact(8).zip(bytes.chunks_exact_mut(5)) {
        let mut bits = 0_u64;
        for byte in eight {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'2'..=b'7' => byte - b'2' + 26,
                _ => return false,
            };
            bits = bits << 5 | u64::from(digit);
        }
        five.copy_from_slice(&bits.to_be_bytes()[3..]);
    }
    let (body, sum) = bytes.split_at(33);
    let crc = body.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 != 0 {
                crc << 1 ^ 0x1021
            } else {
                crc << 1
            }
        })
    });
    sum == crc.to_le_bytes()
}

const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Whether the last four of 37 or 38 bytes in base 58 begin the digest of the digest of the others.
fn base58_holds(token: &[u8]) -> bool {
    // The lowest last.
    let mut bytes = [0_u8; 38];
    for byte in token {
        let Some(digit) = BASE58.iter().position(|known| known == byte) else {
            return false;
        };
        let mut carry = digit as u32;
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return false;
        }
    }
    let from = usize::from(bytes[0] == 0);
    let (body, sum) = bytes[from..].split_at(34 - from);
    let once = digest(&SHA256, body);
    digest(&SHA256, once.as_ref()).as_ref().starts_with(sum)
}

/// Whether the last six bytes are the CRC-32 of what stands between `from` and them, in base 62.
pub(super) fn checksum_holds(token: &[u8], from: usize) -> bool {
    let Some(end) = token.len().checked_sub(6).filter(|end| *end > from) else {
        return false;
    };
    let mut crc = crc32(&token[from..end]);
    token[end..].iter().rev().all(|byte| {
        let digit = crc % 62;
        crc /= 62;
        let digit = digit as u8;
        *byte
            == match digit {
                0..=9 => b'0' + digit,
                10..=35 => b'A' + digit - 10,
                _ => b'a' + digit - 36,
            }
    })
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xEDB8_8320
            } else {
                crc >> 1
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::{
        super::tests::{body, strong},
        *,
    };

    /// Of thirty-two bytes that nobody has a wallet of.
    fn base32(bytes: &[u8]) -> String {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let bit = |at: usize| usize::from(bytes[at / 8] >> (7 - at % 8) & 1);
        let digit = |at: usize| (at..at + 5).fold(0, |digit, at| digit * 2 + bit(at));
        let all = (0..bytes.len() * 8).step_by(5).map(digit);
        all.map(|digit| char::from(digits[digit])).collect()
    }

    #[test]
    fn a_checksum_in_base_32_holds_or_not() {
        // The CRC-16 of `123456789` is 31C3.
        let mut bytes = vec![0; 24];
        bytes.extend(b"123456789");
        bytes.extend([0xC3, 0x31]);
        let token = base32(&bytes);
        assert!(crc16_holds(token.as_bytes()));
        bytes[33] ^= 1;
        assert!(!crc16_holds(base32(&bytes).as_bytes()));
        assert!(!crc16_holds(&token.as_bytes()[1..]));
    }

    #[test]
    fn keys_of_wallets_are_told_by_their_checksum_alone() {
        let body: Vec<u8> = (0..32_u32).map(|at| (at * 151 + 89) as u8).collect();
        let bytes = |sum: u16| [&[18 << 3][..], &body, &sum.to_le_bytes()].concat();
        let mut seeds = (0..=u16::MAX).map(|sum| base32(&bytes(sum)));
        let seed = seeds.find(|seed| crc16_holds(seed.as_bytes()));
        let seed = seed.expect("one of all checksums holds");
        let wallet = ["KwDiBf89QgGbjEhKnhXJuH7LrciVr", "Zi3qYjgd9M7rFU73sVHnoWn"].concat();
        for key in [seed, wallet] {
            let text = format!("I ran it again with {key} today.");
            assert_eq!(strong(&text), [key.as_str()]);
            let end = if key.ends_with('A') { "B" } else { "A" };
            let other = format!("I ran it with {}{end} today.", &key[..key.len() - 1]);
            assert_eq!(strong(&other), [""; 0]);
        }
    }

    #[test]
    fn the_password_of_a_registry_is_json_with_its_key_and_other_json_is_none() {
        let body = body().repeat(9);
        for pad in 0..3 {
            let json = |name: &str| {
                let long = &body[..150 + pad];
                let members = format!("\"payload\":\"{long}\",\"{name}\":\"{long}\"");
                BASE64_STANDARD.encode(format!("{{{members},\"version\":\"2\"}}"))
            };
            let token = json("datakey");
            assert_eq!(strong(&format!("it sent {token} then")), [token]);
            let token = json("user_id");
            assert_eq!(strong(&format!("it sent {token} then")), [""; 0]);
        }
    }

    #[test]
    fn a_checksum_in_base_58_holds_or_not() {
        // The key 1, as every manual has it.
        for token in [
            ["5HpHagT65TZzG1PH3CSu63k8DbpvD", "8s5ip4nEB3kEsreAnchuDf"],
            ["KwDiBf89QgGbjEhKnhXJuH7LrciVr", "Zi3qYjgd9M7rFU73sVHnoWn"],
        ] {
            let token = token.concat();
            assert!(base58_holds(token.as_bytes()), "{token}");
            assert!(!base58_holds(token.replacen('D', "E", 1).as_bytes()));
            assert!(!base58_holds(token.replacen('D', "0", 1).as_bytes()));
        }
    }
}
