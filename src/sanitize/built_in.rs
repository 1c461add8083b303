//! The detectors that are built in, in the order in which they look.

use std::sync::Arc;

use super::{Detector, OwnCredentials, Sanitizer, rules::Rules};
use crate::findings::Findings;

impl Sanitizer {
    /// With every detector that is built in, and these credentials of the gateway's own.
    pub fn standard(rules: Rules, findings: Findings, own: OwnCredentials) -> Self {
        let detectors: Vec<Arc<dyn Detector>> = vec![Arc::new(own)];
        Self::new(detectors, rules, findings)
    }
}
