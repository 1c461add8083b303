//! The address that an HTTP+SSE server names, resolved against the one we know (RFC 3986, 5.2).
//!
//! Guarantees: the result has the scheme, the host and the port of the base, whatever was named. Faults never hold
//! the named text.

use http::{
    Uri,
    uri::{Parts, PathAndQuery, Scheme},
};

/// The longest address taken, in bytes.
const MAX: usize = 8 << 10;

/// The URL to POST to.
///
/// # Errors
/// A sentence that says what is wrong, without the address.
pub(super) fn resolve(base: &Uri, named: &[u8]) -> Result<Uri, &'static str> {
    const MALFORMED: &str = "an endpoint that is no address";
    const FOREIGN: &str = "an endpoint of another origin";
    if named.len() > MAX {
        return Err("an endpoint that is too long");
    }
    let named = std::str::from_utf8(named).map_err(|_invalid| MALFORMED)?;
    let named = named.trim();
    let named = named.split_once('#').map_or(named, |(address, _)| address);
    let before_query = named.split('?').next().unwrap_or_default();
    let scheme = base.scheme_str().unwrap_or_default();
    let target = if named.starts_with("//") {
        absolute(base, &format!("{scheme}:{named}")).ok_or(FOREIGN)?
    } else if before_query.contains("://") {
        absolute(base, named).ok_or(FOREIGN)?
    } else if before_query
        .split('/')
        .next()
        .is_some_and(|first| first.contains(':'))
    {
        return Err(MALFORMED);
    } else if named.starts_with('/') {
        named.to_owned()
    } else if named.is_empty() || named.starts_with('?') {
        format!("{}{named}", base.path())
    } else {
        let directory = base.path().rfind('/').map_or(0, |at| at + 1);
        format!("{}{named}", &base.path()[..directory])
    };
    let target: PathAndQuery = undotted(&target).parse().map_err(|_invalid| MALFORMED)?;
    let mut parts = Parts::default();
    parts.scheme = base.scheme().cloned();
    parts.authority = base.authority().cloned();
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).map_err(|_invalid| MALFORMED)
}

/// Path and query of an absolute address, if it is of the same origin as `base`.
fn absolute(base: &Uri, named: &str) -> Option<String> {
    let named: Uri = named.parse().ok()?;
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    let same = named.scheme() == base.scheme()
        && host(&named).is_some()
        && host(&named) == host(base)
        && port(&named) == port(base)
        && !named.authority()?.as_str().contains('@');
    same.then(|| {
        named
            .path_and_query()
            .map_or("/", PathAndQuery::as_str)
            .to_owned()
    })
}

fn port(uri: &Uri) -> Option<u16> {
    let known = if uri.scheme() == Some(&Scheme::HTTPS) {
        443
    } else {
        80
    };
    uri.port_u16().or(Some(known))
}

/// The path without `.` and `..` (RFC 3986, 5.2.4); the query as it is.
fn undotted(target: &str) -> String {
    let (path, query) = match target.find('?') {
        Some(at) => target.split_at(at),
        None => (target, ""),
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            ".." => {
                kept.pop();
                if last {
                    kept.push("");
                }
            }
            "." if last => kept.push(""),
            "." => {}
            segment => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: &str, named: &str) -> Option<String> {
        let url = resolve(&base.parse().unwrap(), named.as_bytes()).ok()?;
        Some(url.to_string())
    }

    #[test]
    fn addresses_of_the_same_origin_are_resolved() {
        let base = "http://h:8000/a/sse?x=1";
        for (named, url) in [
            (
                "/messages?session_id=1",
                "http://h:8000/messages?session_id=1",
            ),
            ("messages/?s=/../b:c", "http://h:8000/a/messages/?s=/../b:c"),
            ("?s=1", "http://h:8000/a/sse?s=1"),
            ("../m/./n/..", "http://h:8000/m/"),
            ("../../../m", "http://h:8000/m"),
            ("http://H:8000/m?s=http://x", "http://h:8000/m?s=http://x"),
            ("//h:8000/m#f", "http://h:8000/m"),
            ("/m?s=http://evil/", "http://h:8000/m?s=http://evil/"),
            (" /m ", "http://h:8000/m"),
        ] {
            assert_eq!(at(base, named).as_deref(), Some(url), "{named}");
        }
        assert_eq!(
            at("https://h/sse", "https://h:443/m").as_deref(),
            Some("https://h/m")
        );
    }

    #[test]
    fn other_origins_and_nonsense_are_refused() {
        for named in [
            "http://evil:8000/m",
            "//evil:8000/m",
            "https://h:8000/m",
            "http://h:8001/m",
            "http://h/m",
            "http://h:8000@evil/m",
            "http://user@h:8000/m",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http:evil",
            "/m\u{0}",
            "/a b",
            "http://",
        ] {
            assert_eq!(at("http://h:8000/sse", named), None, "{named}");
        }
        assert!(resolve(&"http://h/".parse().unwrap(), b"/\xff").is_err());
        let long = format!("/{}", "x".repeat(MAX));
        assert_eq!(at("http://h/", &long), None);
    }

    #[test]
    fn whatever_is_named_stays_at_its_origin() {
        for named in [
            "\\\\evil/m",
            "/\\evil/m",
            "////evil/m",
            "@evil",
            ".//evil",
            "/..//evil/m",
        ] {
            if let Some(url) = at("http://h/sse", named) {
                assert!(url.starts_with("http://h/"), "{named} {url}");
            }
        }
    }
}
