//! The admin listener: what an address that others can reach needs, and what tokens look like (SECURITY OPS-4).

use secrecy::{ExposeSecret, SecretString};

use super::{Check, listen};
use crate::{
    admin::{AdminSpec, TOKEN_CHARS},
    config::{
        raw::{ADMIN_ADDRESS, Admin},
        units::Secret,
    },
    server::spec::ListenSpec,
};

/// The admin listener, if there is to be one; `clients` is that of the others.
pub(super) fn admin(
    check: &mut Check<'_>,
    raw: Option<Admin>,
    clients: &ListenSpec,
) -> Option<AdminSpec> {
    let raw = raw?;
    let at = |key: &'static str| ["admin", key];
    let text = raw.address.as_deref().unwrap_or(ADMIN_ADDRESS);
    let address = listen::address_of(check, &at("address"), text, ADMIN_ADDRESS);
    if address == clients.address && address.port() != 0 {
        check.wrong(
            &at("address"),
            "where clients come in",
            "another port: what is for operators is never served to clients",
        );
    }
    let hosts = listen::names(check, "admin", &raw.hosts);
    if !address.ip().is_loopback() {
        listen::reachable(check, "admin", raw.tls.is_some(), !raw.hosts.is_empty());
        if raw.token.is_none() && !check.was_struck(&at("token")) {
            check.wrong(
                &at("address"),
                "others can reach this address, but there is no `admin.token`",
                "give `token: \"${env:NAME}\"` with a secret of its own, or listen on 127.0.0.1",
            );
        }
    }
    let tls = raw
        .tls
        .and_then(|tls| listen::identity(check, "admin", tls));
    let token = token(check, "token", raw.token);
    let auditor_token = self::token(check, "auditor_token", raw.auditor_token);
    if let (Some(one), Some(other)) = (&token, &auditor_token)
        && one.expose_secret() == other.expose_secret()
    {
        check.wrong(
            &at("auditor_token"),
            "the same as `admin.token`",
            "another secret: whoever has this one is to look and change nothing",
        );
    }
    Some(AdminSpec {
        listen: ListenSpec {
            address,
            hosts,
            trusted_proxies: Vec::new(),
            tls,
            bounds: AdminSpec::bounds(),
        },
        token,
        auditor_token,
    })
}

/// A token: long enough not to be guessed, and such that a header can hold it.
fn token(check: &mut Check<'_>, key: &'static str, raw: Option<Secret>) -> Option<SecretString> {
    let path = ["admin", key];
    let token = raw?.0;
    check.secret(&path);
    let text = token.expose_secret();
    let fit = text.len() >= TOKEN_CHARS && text.len() <= 1_024;
    if !fit || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        check.wrong(
            &path,
            format!("no token of {TOKEN_CHARS} to 1024 visible ASCII characters without spaces"),
            "`openssl rand -hex 32` makes a good one",
        );
    }
    Some(token)
}
