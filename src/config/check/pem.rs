//! Certificates and keys: that they are PEM, and that a key is the certificate's own.

use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretString};

use super::Check;

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
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes());
    let Ok(key) = key else {
        check.wrong(
            key_path,
            "no private key in PEM",
            "`${file:/path/to/key.pem}` puts the content of a file here",
        );
        return;
    };
    if let Some(chain) = chain
        && CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).is_err()
    {
        check.wrong(
            key_path,
            "this key does not belong to the certificate, or is of an unknown kind",
            "the first certificate of the chain must be the one for this key",
        );
    }
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
