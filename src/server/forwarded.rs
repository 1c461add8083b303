//! Whence a request comes where proxies stand in front: `X-Forwarded-For`, as far as trusted proxies wrote it.
//! See SECURITY HTTP-12.
//!
//! Guarantees: without a trusted proxy at the other end of the connection the header decides nothing; what stands to the left of
//! an address that is no trusted proxy was written by anybody, and is not read. Deliberately absent: `Forwarded`, `X-Real-IP`
//! and the PROXY protocol, which are dropped as they are.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of the client whose request came over a connection from `peer`: the nearest one that is no trusted proxy, or
/// the last proxy that says nothing readable.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let mut client = peer.to_canonical();
    let fields = headers.get_all(FORWARDED_FOR).iter().rev();
    // A field that is no text holds no address.
    let mut hops = fields.flat_map(|field| field.to_str().unwrap_or_default().rsplit(','));
    while is_trusted(&client) {
        match hops.next().and_then(address) {
            Some(before) => client = before,
            None => break,
        }
    }
    client
}

/// An address, with or without brackets and port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let address: Option<IpAddr> = bare.parse().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    // SECURITY HTTP-12, AUTHN-8
    #[test]
    fn the_nearest_address_that_is_no_trusted_proxy_is_the_clients() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "::1/128", "127.0.0.1/32"]
            .iter()
            .map(|net| net.parse().unwrap())
            .collect();
        for (peer, fields, expected) in [
            ("192.0.2.1", &["203.0.113.9"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["1.1.1.1", "203.0.113.9"], "203.0.113.9"),
            (
                "10.0.0.1",
                &["1.1.1.1, 203.0.113.9 ,10.2.3.4"],
                "203.0.113.9",
            ),
            ("10.0.0.1", &["203.0.113.9:4711"], "203.0.113.9"),
            ("::ffff:10.0.0.1", &["[2001:db8::7]:80"], "2001:db8::7"),
            ("::1", &["2001:db8::7"], "2001:db8::7"),
            ("127.0.0.1", &["[2001:db8::7]"], "2001:db8::7"),
            ("10.0.0.1", &["203.0.113.9, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.9, , 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["10.0.0.3,10.0.0.2"], "10.0.0.3"),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(FORWARDED_FOR, field.parse().unwrap());
            }
            let found = client(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(found.to_string(), expected, "{peer} {fields:?}");
            let nobody = client(peer.parse().unwrap(), &headers, &[]);
            assert_eq!(nobody, peer.parse::<IpAddr>().unwrap().to_canonical());
        }
    }
}
