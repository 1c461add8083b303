//! What TLS connections out of here trust, and who they say that we are.

use std::{error::Error, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use secrecy::{ExposeSecret, SecretString};

use super::FetchError;

/// The roots in this PEM alone; or the system's, or Mozilla's where the system has none.
///
/// # Errors
/// What is wrong with the PEM.
pub fn roots(ca: Option<&[u8]>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = ca else {
        // Unreadable files among the system's are its own matter; what could be read is used.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("no certificate in the PEM".to_owned());
    }
    Ok(roots)
}

/// TLS toward one server.
#[derive(Debug, Clone, Default)]
pub struct TlsSpec {
    /// PEM of the roots to trust instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// PEM of our certificate chain and key, where the server asks for one.
    pub identity: Option<(Vec<u8>, SecretString)>,
}

impl TlsSpec {
    /// Whether it is that of any server.
    pub const fn is_default(&self) -> bool {
        self.ca.is_none() && self.identity.is_none()
    }
}

/// A client that trusts these roots, and is this one, if any; it names no protocol yet.
///
/// # Errors
/// What is wrong with the identity, in words that go on from `TLS`.
pub fn client(
    roots: RootCertStore,
    identity: Option<&(Vec<u8>, SecretString)>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("versions: {error}"))?
        .with_root_certificates(roots);
    let Some((chain, key)) = identity else {
        return Ok(config.with_no_client_auth());
    };
    let bad = |what: &str, error: &dyn Error| format!("client {what}: {error}");
    let chain = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad("certificate", &error))?;
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())
        .map_err(|error| bad("key", &error))?;
    config
        .with_client_auth_cert(chain, key)
        .map_err(|error| bad("identity", &error))
}

/// The same from PEM, for who speaks this protocol alone, by its name in ALPN (RFC 7301 6).
pub(super) fn speaking(
    protocol: &'static [u8],
    ca: Option<&[u8]>,
    identity: Option<&(Vec<u8>, SecretString)>,
) -> Result<Arc<ClientConfig>, FetchError> {
    let roots = roots(ca).map_err(|error| format!("roots: {error}"));
    let config = roots.and_then(|roots| client(roots, identity));
    let mut config = config.map_err(FetchError::Unusable)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}
