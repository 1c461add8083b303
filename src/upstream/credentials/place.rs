//! Where a token endpoint is, as configured or as its issuer's metadata says.

use std::time::Duration;

use tokio::{sync::Mutex, time::Instant};

use super::{CredentialError, spec::Place};
use crate::fetch::{Address, Fetcher, Metadata};

/// How long metadata is believed.
const FRESH: Duration = Duration::from_secs(3_600);

/// A token endpoint.
pub(super) struct Endpoint {
    place: Place,
    /// What was found, and when. Held while it is looked for, so that it is looked for once.
    found: Mutex<Option<(Address, Instant)>>,
}

impl Endpoint {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            found: Mutex::new(None),
        }
    }

    /// Its address.
    ///
    /// # Errors
    /// [`CredentialError::Metadata`] and [`CredentialError::Fetch`], where it has to be looked for.
    pub(super) async fn address(&self, fetcher: &Fetcher) -> Result<Address, CredentialError> {
        let (issuer, text) = match &self.place {
            Place::Endpoint(address) => return Ok(address.clone()),
            Place::Issuer(address, text) => (address, text),
        };
        let mut found = self.found.lock().await;
        if let Some((address, at)) = &*found
            && at.elapsed() < FRESH
        {
            return Ok(address.clone());
        }
        let metadata = Metadata::fetch(fetcher, text, issuer).await?;
        let address = metadata.address("token_endpoint")?;
        *found = Some((address.clone(), Instant::now()));
        Ok(address)
    }
}
