//! The detectors that are built in, in the order in which they look.

use std::sync::Arc;

use super::{
    Detector, OwnCredentials, Sanitizer, active::Active, hidden::Hidden, injection, personal,
    rules::Rules, secrets, terminal::Terminal,
};
use crate::findings::Findings;

impl Sanitizer {
    /// With every detector that is built in, and these credentials of the gateway's own.
    pub fn standard(rules: Rules, findings: Findings, own: OwnCredentials) -> Self {
        Self::new(detectors(&rules, own), rules, findings)
    }
}

/// Every detector that is built in.
pub(super) fn detectors(rules: &Rules, own: OwnCredentials) -> Vec<Arc<dyn Detector>> {
    vec![
        Arc::new(Hidden::new()),
        Arc::new(Terminal::new()),
        Arc::new(own),
        Arc::new(secrets::detector(secrets::Wanted {
            strong: true,
            weak: true,
        })),
        Arc::new(personal::detector()),
        Arc::new(personal::contact()),
        Arc::new(Active::new(rules.hosts.clone())),
        injection::detector(),
    ]
}
