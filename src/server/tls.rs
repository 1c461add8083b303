//! TLS ended here: a chain, its key, and perhaps the roots that clients must chain to.
//!
//! Guarantees: TLS 1.2 or 1.3 through aws-lc-rs; `h2` and `http/1.1` offered; with client roots, no handshake succeeds without
//! a client certificate that chains to them. Deliberately absent: reading files, renewing certificates.

use std::{io, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use secrecy::ExposeSecret as _;
use tokio_rustls::TlsAcceptor;

use super::spec::TlsServerSpec;

/// Protocols offered, preferred first.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Why the TLS settings cannot be used.
#[derive(Debug, thiserror::Error)]
enum TlsError {
    #[error("certificate chain is not PEM")]
    Chain(#[source] rustls::pki_types::pem::Error),
    #[error("certificate chain is empty")]
    NoChain,
    #[error("private key is not PEM")]
    Key(#[source] rustls::pki_types::pem::Error),
    #[error("client roots are not PEM")]
    Roots(#[source] rustls::pki_types::pem::Error),
    #[error("client roots cannot be used")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
    #[error("settings refused")]
    Refused(#[from] rustls::Error),
}

/// Builds the acceptor once, at bind.
///
/// # Errors
/// `InvalidInput` for PEM that cannot be read, a key that does not fit, or empty client roots.
pub(super) fn acceptor(spec: &TlsServerSpec) -> io::Result<TlsAcceptor> {
    let config =
        config(spec).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn config(spec: &TlsServerSpec) -> Result<ServerConfig, TlsError> {
    let chain = CertificateDer::pem_slice_iter(&spec.cert)
        .collect::<Result<Vec<_>, _>>()
        .map_err(TlsError::Chain)?;
    if chain.is_empty() {
        return Err(TlsError::NoChain);
    }
    let key = PrivateKeyDer::from_pem_slice(spec.key.expose_secret().as_bytes())
        .map_err(TlsError::Key)?;

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match &spec.client_ca {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for root in CertificateDer::pem_slice_iter(pem) {
                roots.add(root.map_err(TlsError::Roots)?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(TlsError::Verifier)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}
