//! What no upstream over HTTP may answer: a redirect (SECURITY EGR-3), or that it refuses our credential (EGR-6).
//! This is the one place where they are refused, whatever comes with them.
//!
//! Guarantees: of such an answer nothing is looked at but its status and, of a 403, whether it names scopes that the token
//! lacks: no frame of it, and no address. Deliberately absent: what other statuses mean, which the peers know.

use http::{Response, StatusCode, header::WWW_AUTHENTICATE};

use crate::{
    fetch::Challenge,
    upstream::{CredentialError, UpstreamError},
};

/// The answer, unless its status is one that is refused.
///
/// # Errors
/// [`UpstreamError::Redirect`], [`UpstreamError::Auth`], [`UpstreamError::RequestTooLarge`]; [`UpstreamError::Credential`] where
/// a 403 says that a token lacks scopes.
pub(super) fn admitted<B>(response: Response<B>) -> Result<Response<B>, UpstreamError> {
    let status = response.status();
    Err(match status {
        _ if status.is_redirection() => UpstreamError::Redirect,
        StatusCode::UNAUTHORIZED => UpstreamError::Auth(Some(401)),
        StatusCode::FORBIDDEN => lacking(&response).unwrap_or(UpstreamError::Auth(Some(403))),
        StatusCode::PAYLOAD_TOO_LARGE => UpstreamError::RequestTooLarge,
        _ => return Ok(response),
    })
}

/// What a refusal says that the credential lacks, where it says just that (RFC 6750 3.1).
fn lacking<B>(response: &Response<B>) -> Option<UpstreamError> {
    let challenge = Challenge::of(response.headers().get_all(WWW_AUTHENTICATE))?;
    CredentialError::lacks(challenge).map(UpstreamError::Credential)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, challenge: &str) -> Option<UpstreamError> {
        let answer = Response::builder()
            .status(status)
            .header("location", "https://evil.example/")
            .header(WWW_AUTHENTICATE, challenge)
            .body(())
            .unwrap();
        admitted(answer).err()
    }

    // SECURITY EGR-3
    #[test]
    fn every_redirect_is_refused() {
        for status in 300..400 {
            let error = refused(status, "Bearer");
            assert!(matches!(error, Some(UpstreamError::Redirect)), "{status}");
        }
    }

    // SECURITY EGR-6
    #[test]
    fn a_refused_credential_is_told_by_its_status_or_by_what_it_lacks() {
        for status in [401, 403] {
            let error = refused(status, "Bearer");
            assert_eq!(error.as_ref().and_then(UpstreamError::status), Some(status));
            assert!(matches!(error, Some(UpstreamError::Auth(_))), "{status}");
        }
        let scopes = r#"Bearer error="insufficient_scope", scope="notes""#;
        assert!(matches!(
            refused(403, scopes),
            Some(UpstreamError::Credential(_))
        ));
        assert!(matches!(refused(401, scopes), Some(UpstreamError::Auth(_))));
    }

    #[test]
    fn other_statuses_are_for_the_peers() {
        for status in [200, 202, 204, 400, 404, 405, 408, 418, 429, 500, 503] {
            assert!(refused(status, "Bearer").is_none(), "{status}");
        }
    }
}
