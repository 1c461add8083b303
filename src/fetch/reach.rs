//! Which network addresses a peer may send us to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{FetchError, Trust};

/// The most addresses of one name that are looked at.
const MAX: usize = 32;

/// The addresses that may be dialled. For [`Trust::Discovered`] every single one must be public: a name that leads to a public
/// address and a private one is no mistake (SECURITY EGR-4).
pub(super) fn check(trust: Trust, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, FetchError> {
    if found.is_empty() || found.len() > MAX {
        return Err(FetchError::Addresses);
    }
    match trust {
        Trust::Configured => Ok(found),
        Trust::Discovered if found.iter().all(|address| is_public(address.ip())) => Ok(found),
        Trust::Discovered => Err(FetchError::NotPublic),
    }
}

/// Whether this is an ordinary unicast address of the internet: not of this machine, this network or a special purpose (IANA's
/// registries of special-purpose addresses), and not one that leads into IPv4 by way of IPv6.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    /// Network and length of its prefix.
    const SPECIAL: [([u8; 4], u32); 16] = [
        ([0, 0, 0, 0], 8),       // this network, unspecified
        ([10, 0, 0, 0], 8),      // private
        ([100, 64, 0, 0], 10),   // shared by carriers
        ([127, 0, 0, 0], 8),     // loopback
        ([169, 254, 0, 0], 16),  // link-local; metadata of clouds
        ([172, 16, 0, 0], 12),   // private
        ([192, 0, 0, 0], 24),    // protocol assignments
        ([192, 0, 2, 0], 24),    // documentation
        ([192, 31, 196, 0], 24), // AS112
        ([192, 52, 193, 0], 24), // multicast relays
        ([192, 88, 99, 0], 24),  // relays of 6to4
        ([192, 168, 0, 0], 16),  // private
        ([198, 18, 0, 0], 15),   // benchmarks
        ([198, 51, 100, 0], 24), // documentation
        ([203, 0, 113, 0], 24),  // documentation
        ([224, 0, 0, 0], 3),     // multicast, reserved, broadcast
    ];
    !SPECIAL.iter().any(|(network, length)| {
        let shift = 32 - length;
        u32::from(address) >> shift == u32::from_be_bytes(*network) >> shift
    })
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, _, _, fifth, sixth, ..] = address.segments();
    let is_isatap = sixth == 0x5efe && matches!(fifth, 0 | 0x200);
    // What is no global unicast: loopback, unspecified, mapped and compatible IPv4, NAT64 with its local prefix, discard,
    // unique local, link-local, site-local, multicast.
    first & 0xe000 == 0x2000
        // Protocol assignments: Teredo, ORCHID, benchmarks.
        && !(first == 0x2001 && second < 0x200)
        // Documentation.
        && !(first == 0x2001 && second == 0xdb8)
        && !(first == 0x3fff && second < 0x1000)
        // 6to4.
        && first != 0x2002
        // ISATAP carries an IPv4 address in any prefix.
        && !is_isatap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "128.0.0.1",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700::1111",
            "2a00::1",
            "3fff:1000::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn special_addresses_are_not_public() {
        for text in [
            // IPv4
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            // IPv6
            "::",
            "::1",
            "::127.0.0.1",
            "::1.1.1.1",
            "::ffff:127.0.0.1",
            "::ffff:1.1.1.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::1.1.1.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:53aa:64c::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:101:101::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ffff::1",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:7f00:1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn one_private_address_among_public_ones_is_enough_to_refuse() {
        let all = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let mixed = all(&["1.1.1.1:443", "10.0.0.1:443"]);
        assert_eq!(
            check(Trust::Discovered, mixed.clone()),
            Err(FetchError::NotPublic)
        );
        assert_eq!(check(Trust::Configured, mixed.clone()), Ok(mixed));
        let public = all(&["1.1.1.1:443", "[2606:4700::1111]:443"]);
        assert_eq!(check(Trust::Discovered, public.clone()), Ok(public.clone()));
        for found in [Vec::new(), vec![public[0]; MAX + 1]] {
            assert_eq!(check(Trust::Discovered, found), Err(FetchError::Addresses));
        }
    }
}
