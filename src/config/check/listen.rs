//! The listener: what SECURITY 9 asks of an address that others can reach.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::{Check, limits, pem};
use crate::{
    config::raw::{ENDPOINT, LISTEN_ADDRESS, Listen, ListenTls, bounds::HttpBounds},
    server::spec::{ListenSpec, TlsServerSpec},
};

/// The listener; `asked` says whether clients are asked who they are.
pub(super) fn listen(
    check: &mut Check<'_>,
    raw: Listen,
    bounds: &HttpBounds,
    asked: bool,
) -> ListenSpec {
    let at = |key: &'static str| ["listen", key];
    let text = raw.address.as_deref().unwrap_or(LISTEN_ADDRESS);
    let address = address_of(check, &at("address"), text, LISTEN_ADDRESS);
    let hosts = names(check, "listen", &raw.hosts);
    if !address.ip().is_loopback() {
        reachable(check, "listen", raw.tls.is_some(), !raw.hosts.is_empty());
        if !asked && !check.was_struck(&["auth"]) {
            check.wrong(
                &at("address"),
                "others can reach this address, but there is no authentication method",
                "give `auth` with `jwt`, `keys`, `mtls` or `introspection`; or listen on 127.0.0.1",
            );
        }
    }
    let trusted_proxies = trusted(check, &raw.trusted_proxies);
    ListenSpec {
        address,
        hosts,
        trusted_proxies,
        tls: raw.tls.and_then(|tls| identity(check, "listen", tls)),
        bounds: limits::http(check, bounds),
    }
}

/// An address to listen on, or `default`, which is one.
pub(super) fn address_of(
    check: &mut Check<'_>,
    path: &[&str],
    text: &str,
    default: &str,
) -> SocketAddr {
    text.parse::<SocketAddr>().unwrap_or_else(|_| {
        let hint = match text.rsplit_once(':') {
            Some(("localhost", port)) => format!("write `127.0.0.1:{port}`"),
            Some(("" | "*", port)) => {
                format!("write `127.0.0.1:{port}`, or `0.0.0.0:{port}` for every address")
            }
            _ => format!("an IP address and a port, such as `{default}` or `[::1]:8808`"),
        };
        check.wrong(path, "not an address to listen on", hint);
        let somewhere = SocketAddr::from(([127, 0, 0, 1], 0));
        default.parse().unwrap_or(somewhere)
    })
}

/// The names in `BLOCK.hosts`.
pub(super) fn names(check: &mut Check<'_>, block: &str, raw: &[String]) -> Vec<String> {
    let hosts = raw.iter().enumerate().filter_map(|(index, host)| {
        let lower = host.to_ascii_lowercase();
        if is_host(&lower) {
            return Some(lower);
        }
        check.wrong(
            &[block, "hosts", &index.to_string()],
            "not a host name",
            "the name alone, without scheme, port or path, such as `mcp.example.com`",
        );
        None
    });
    hosts.collect()
}

/// What a listener needs that others can reach, whoever they are.
pub(super) fn reachable(check: &mut Check<'_>, block: &str, tls: bool, hosts: bool) {
    let reachable = "others can reach this address";
    if !tls && !check.was_struck(&[block, "tls"]) {
        check.wrong(
            &[block, "address"],
            format!("{reachable}, but there is no `{block}.tls`"),
            "give `tls: { cert: …, key: … }`, or `tls: terminated_upstream` if a proxy in front ends TLS",
        );
    }
    if !hosts && !check.was_struck(&[block, "hosts"]) {
        check.wrong(
            &[block, "address"],
            format!("{reachable}, but there is no `{block}.hosts`"),
            "list the names that clients use, such as `hosts: [mcp.example.com]`",
        );
    }
}

/// The networks of trusted proxies. Everybody is none: whoever writes the header could be anybody (SECURITY HTTP-12).
fn trusted(check: &mut Check<'_>, raw: &[String]) -> Vec<IpNet> {
    let mut nets = Vec::new();
    for (index, text) in raw.iter().enumerate() {
        let net = text.parse::<IpNet>().ok();
        let net = net.or_else(|| Some(IpNet::from(text.parse::<IpAddr>().ok()?)));
        match net.filter(|net| net.prefix_len() > 0) {
            Some(net) => nets.push(net),
            None => check.wrong(
                &["listen", "trusted_proxies", &index.to_string()],
                "not the address or network of a proxy",
                "such as `127.0.0.1` or `10.1.0.0/16`; not everybody, who could then write any address",
            ),
        }
    }
    nets
}

/// The path of the endpoint; with `legacy_sse` it must leave room for that transport's two.
pub(super) fn endpoint(check: &mut Check<'_>, raw: Option<String>, legacy_sse: bool) -> String {
    let path = raw.unwrap_or_else(|| ENDPOINT.to_owned());
    let first = path.split('/').nth(1);
    if legacy_sse && matches!(first, Some("sse" | "messages")) {
        check.wrong(
            &["endpoint"],
            "where `listen.legacy_sse` serves its streams and messages",
            "another path, such as `/mcp`",
        );
    }
    let well_formed = path.len() <= 128
        && path.strip_prefix('/').is_some_and(|rest| {
            rest.split('/').all(|part| {
                !part.is_empty()
                    && !matches!(part, "." | "..")
                    && part
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
            })
        });
    if well_formed {
        return path;
    }
    check.wrong(
        &["endpoint"],
        "not a path for an endpoint",
        "a path such as `/mcp`, without a slash at its end",
    );
    ENDPOINT.to_owned()
}

/// Certificate and key of `BLOCK.tls`, unless a proxy has them.
pub(super) fn identity(
    check: &mut Check<'_>,
    block: &'static str,
    tls: ListenTls,
) -> Option<TlsServerSpec> {
    let raw = match tls {
        ListenTls::TerminatedUpstream => return None,
        ListenTls::Here(raw) => raw,
    };
    let at = |key: &'static str| [block, "tls", key];
    for (key, missing) in [("cert", raw.cert.is_none()), ("key", raw.key.is_none())] {
        if missing {
            check.missing(
                &at(key),
                format!("`{block}.tls.{key}` is missing"),
                format!("add `{key}: \"${{file:/path/to/{key}.pem}}\"`"),
            );
        }
    }
    let client_ca = raw.client_ca.map(String::into_bytes);
    if let Some(roots) = &client_ca {
        pem::roots(check, &at("client_ca"), roots);
    }
    let (cert, key) = (raw.cert?.into_bytes(), raw.key?.0);
    pem::identity(check, &at("cert"), &cert, &at("key"), &key);
    Some(TlsServerSpec {
        cert,
        key,
        client_ca,
    })
}

fn is_host(host: &str) -> bool {
    let name = host.len() <= 253
        && !host.is_empty()
        && host.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        });
    name || host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::raw::ADMIN_ADDRESS;

    #[test]
    fn the_default_addresses_are_those_that_are_documented() {
        for (text, port) in [(LISTEN_ADDRESS, 8808), (ADMIN_ADDRESS, 8809)] {
            assert_eq!(text.parse(), Ok(SocketAddr::from(([127, 0, 0, 1], port))));
        }
    }
}
