//! Certificates and keys: that they are PEM, that a key is the certificate's own, and that a certificate still counts.

use std::time::SystemTime;

use rustls::{
    Error,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretString};

use super::{Check, written};
use crate::auth::Outline;

/// Checks a chain and its key; the key must be a reference too.
pub(super) fn identity(
    check: &mut Check<'_>,
    cert_path: &[&str],
    cert: &[u8],
    key_path: &[&str],
    key: &SecretString,
) {
    check.secret(key_path);
    let chain = certificates(check, cert_path, cert);
    if let Some(chain) = &chain
        && check.findings.serves
        && !check.findings.shown.holds(&written(cert_path), cert)
    {
        unexpired(check, cert_path, chain);
    }
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes());
    let Ok(key) = key else {
        check.wrong(
            key_path,
            "no private key in PEM",
            "`${file:/path/to/key.pem}` puts the content of a file here",
        );
        return;
    };
    let Some(chain) = chain else {
        return;
    };
    let version = chain.first().and_then(outline).map(|it| it.version);
    match CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()) {
        Ok(_) => {}
        Err(Error::InconsistentKeys(_)) => check.wrong(
            key_path,
            "this key does not belong to the certificate",
            "the first certificate of the chain must be the one for this key",
        ),
        Err(Error::InvalidCertificate(_)) => match version {
            Some(old @ 1..=2) => check.wrong(
                cert_path,
                format!("a certificate of version {old}, and TLS takes those of version 3 alone"),
                "have it signed with extensions, at least the names of this host: `openssl x509 -req -extfile names.cnf`",
            ),
            Some(_) | None => check.wrong(
                cert_path,
                "the first certificate here cannot be read",
                "the first certificate of the chain must be the one for this key",
            ),
        },
        Err(_) => check.wrong(
            key_path,
            "a private key of an unknown kind",
            "RSA, ECDSA and Ed25519 are known",
        ),
    }
}

/// Whether a certificate of our own can still be shown to others (SECURITY OPS-5); roots of trust have no end that counts.
fn unexpired(check: &mut Check<'_>, path: &[&str], chain: &[CertificateDer<'_>]) {
    let Some(outline) = chain.first().and_then(outline) else {
        return;
    };
    if outline.end() < SystemTime::now() {
        check.wrong(
            path,
            format!("a certificate that expired on {}", outline.last_day()),
            "put a new one here; the first certificate of the chain is the one that counts",
        );
    }
}

fn outline(der: &CertificateDer<'_>) -> Option<Outline> {
    Outline::read(der).ok()
}

/// Checks roots of trust.
pub(super) fn roots(check: &mut Check<'_>, path: &[&str], pem: &[u8]) {
    let Some(certificates) = certificates(check, path, pem) else {
        return;
    };
    let mut store = rustls::RootCertStore::empty();
    let (_, ignored) = store.add_parsable_certificates(certificates);
    if ignored > 0 {
        check.wrong(path, "a certificate here cannot be a root of trust", "");
    }
}

fn certificates(
    check: &mut Check<'_>,
    path: &[&str],
    pem: &[u8],
) -> Option<Vec<CertificateDer<'static>>> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Some(chain),
        Ok(_) | Err(_) => {
            check.wrong(
                path,
                "no certificate in PEM",
                "`${file:/path/to/cert.pem}` puts the content of a file here",
            );
            None
        }
    }
}
