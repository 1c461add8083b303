//! Where something is fetched from, and who said so.

use std::fmt;

use http::{
    Uri,
    uri::{Authority, Scheme},
};

use super::FetchError;

/// Who wrote an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The operator: it may lead anywhere.
    Configured,
    /// A peer, in a document of its own: it must be https and lead to public space (SECURITY EGR-4, EGR-5).
    Discovered,
}

/// An address that may be fetched from: absolute, without user and fragment, https unless the operator said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    uri: Uri,
    trust: Trust,
}

impl Address {
    /// One that the operator wrote. Plain http is for loopback alone, or for anywhere with `plain_http`.
    ///
    /// # Errors
    /// [`FetchError::Address`], with words that can be shown to the operator.
    pub fn configured(text: &str, plain_http: bool) -> Result<Self, FetchError> {
        let uri = parse(text)?;
        if uri.scheme() != Some(&Scheme::HTTPS) && !plain_http && !is_loopback(host(&uri)) {
            return Err(FetchError::Address(
                "http to an address that is not this machine",
            ));
        }
        Ok(Self {
            uri,
            trust: Trust::Configured,
        })
    }

    /// One that a peer named, in a document that nobody configured.
    ///
    /// # Errors
    /// [`FetchError::Address`], also for http.
    pub fn discovered(text: &str) -> Result<Self, FetchError> {
        let uri = parse(text)?;
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(FetchError::Address("a scheme other than https"));
        }
        Ok(Self {
            uri,
            trust: Trust::Discovered,
        })
    }

    /// One that the document at this address names. Where it leads to the very origin that the operator wrote, the operator
    /// has named it too; anything else is a peer's word.
    ///
    /// # Errors
    /// As [`Address::discovered`].
    pub fn named_here(&self, text: &str) -> Result<Self, FetchError> {
        let uri = parse(text)?;
        if self.trust == Trust::Configured && same_origin(&uri, &self.uri) {
            return Ok(Self {
                uri,
                trust: Trust::Configured,
            });
        }
        Self::discovered(text)
    }

    /// Another path of the same origin, with the same trust.
    ///
    /// # Errors
    /// [`FetchError::Address`] for what is no path.
    pub fn at_path(&self, path: &str) -> Result<Self, FetchError> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(
            path.parse()
                .map_err(|_| FetchError::Address("not a path"))?,
        );
        let uri = Uri::from_parts(parts).map_err(|_| FetchError::Address("not a path"))?;
        Ok(Self {
            uri,
            trust: self.trust,
        })
    }

    /// Who wrote it.
    pub const fn trust(&self) -> Trust {
        self.trust
    }

    /// The address itself.
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether another one leads to the very origin of this, by the word of the operator who wrote both.
    pub(super) fn leads_there(&self, other: &Self) -> bool {
        let trusted = [self.trust, other.trust] == [Trust::Configured; 2];
        trusted && same_origin(&self.uri, &other.uri)
    }

    /// The host, without brackets.
    pub(super) fn host(&self) -> &str {
        host(&self.uri)
    }

    pub(super) fn port(&self) -> u16 {
        port(&self.uri)
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

/// Whether the words say so: no resolver is asked.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn parse(text: &str) -> Result<Uri, FetchError> {
    let bad = FetchError::Address;
    // The parser would drop it silently.
    if text.contains('#') {
        return Err(bad("a fragment"));
    }
    if text.len() > 2_048 {
        return Err(bad("too long"));
    }
    let uri: Uri = text.parse().map_err(|_| bad("not an address"))?;
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => {}
        Some(_) => return Err(bad("neither https nor http")),
        None => return Err(bad("not an absolute address")),
    }
    let authority = uri.authority().ok_or(bad("an address without a host"))?;
    if authority.as_str().contains('@') {
        return Err(bad("an address with a user in it"));
    }
    // A zone names an interface of ours; an escape is another spelling of a name.
    if host(&uri).is_empty() || authority.as_str().contains('%') {
        return Err(bad("an address without a usable host"));
    }
    if misnames_port(authority) {
        return Err(bad("an address with a port that is none"));
    }
    Ok(uri)
}

/// Whether there is something behind the host that is no port: it would be read as the scheme's own, and so lead elsewhere.
pub fn misnames_port(authority: &Authority) -> bool {
    let text = authority.as_str();
    let place = text.rsplit_once('@').map_or(text, |(_, place)| place);
    place.len() != authority.host().len() && authority.port_u16().is_none()
}

fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn port(uri: &Uri) -> u16 {
    let default = if uri.scheme() == Some(&Scheme::HTTPS) {
        443
    } else {
        80
    };
    uri.port_u16().unwrap_or(default)
}

fn same_origin(one: &Uri, other: &Uri) -> bool {
    one.scheme() == other.scheme()
        && host(one).eq_ignore_ascii_case(host(other))
        && port(one) == port(other)
}
