//! The plan: what a configuration means, in each module's own validated types. Below this floor nobody has heard of a file.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use secrecy::SecretString;

use super::Loaded;
use crate::{
    admin::AdminSpec,
    auth::{Outline, spec::AuthSpec},
    catalog::rules::CatalogRules,
    limits::LimitRules,
    server::spec::ListenSpec,
    upstream::spec::{Endpoint, UpstreamSpec},
};

/// For how long before its end a certificate of our own is told of.
pub const RENEWAL: Duration = Duration::from_secs(14 * 24 * 3_600);

/// Everything `App::build` needs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The MCP listener.
    pub listen: ListenSpec,
    /// The listener for operators. Default: none.
    pub admin: Option<AdminSpec>,
    /// What the file says, for operators to look at.
    pub loaded: Loaded,
    /// The path of the endpoint that serves everything. Default `/mcp`; toolsets are at `/mcp/NAME`, single upstreams at
    /// `/mcp/u/NAME`.
    pub endpoint: String,
    /// Whether the transport of 2024-11-05 is served too: streams at `/sse`, `/sse/NAME` and `/sse/u/NAME`, messages to
    /// the same under `/messages`. Default: false.
    pub legacy_sse: bool,
    /// The upstreams in configured order.
    pub upstreams: Vec<UpstreamSpec>,
    /// Names, selections, pages.
    pub catalog: CatalogRules,
    /// Where the policies are. `None`: with `auth` nobody may use anything, without it everybody everything (SECURITY 9).
    pub policy: Option<PolicyPlan>,
    /// Secrets of at least 32 bytes: the first seals cursors and what else clients bring back, each of them opens it. Every
    /// replica needs the same. None: one made at start, so that what is sealed ends with the process.
    pub state_keys: Vec<SecretString>,
    /// Secret values given to servers, to be redacted everywhere: contents of `auth`, secret parameters of a URL, and those
    /// parts of a program's environment and command that look like or reference a secret, or have the name of one.
    pub confided: Vec<SecretString>,
    /// Who is admitted. `None`: whoever reaches the listener, which is then on loopback.
    pub auth: Option<AuthSpec>,
    /// What people log in to, each with an account of their own.
    pub connect: crate::connect::spec::ConnectSpec,
    /// What may go through.
    pub sanitize: crate::sanitize::rules::Rules,
    /// What becomes of definitions that change.
    pub pins: crate::pins::PinsSpec,
    /// Legacy sessions downstream.
    pub sessions: crate::downstream::SessionBounds,
    /// How much one caller may have.
    pub limits: LimitRules,
    /// How calls are recorded. `None`: they are not.
    pub audit: Option<crate::audit::home::AuditSpec>,
    /// Where metrics and traces go to.
    pub telemetry: crate::telemetry::spec::TelemetrySpec,
    /// How many may listen for changes.
    pub listens: crate::events::Bounds,
    /// The budget of memory in bytes. `None`: what the system lets us have.
    pub memory: Option<u64>,
    /// How much a client may say at a time.
    pub messages: crate::downstream::MessageBounds,
    /// How much callers may be asked, and for how long.
    pub asking: crate::resume::Bounds,
}

impl Plan {
    /// The certificates of its own that end before then: the key that each stands at, and its last day.
    pub fn ending_before(&self, then: SystemTime) -> Vec<(String, String)> {
        let own = self.certificates().into_iter();
        let ending = own.filter(|(_, outline)| outline.end() < then);
        ending
            .map(|(key, outline)| (key, outline.last_day()))
            .collect()
    }

    /// The certificates of its own, those that others are shown: the key that each stands at, and what the first of its chain says.
    pub fn certificates(&self) -> Vec<(String, Outline)> {
        let own = self.chains().into_iter();
        own.filter_map(|(key, pem)| Some((key, Outline::of_pem(pem)?)))
            .collect()
    }

    /// The chains of those, in PEM.
    pub(super) fn chains(&self) -> Vec<(String, &[u8])> {
        let mut own = Vec::new();
        if let Some(tls) = &self.listen.tls {
            own.push(("listen.tls.cert".to_owned(), &*tls.cert));
        }
        if let Some(tls) = self.admin.as_ref().and_then(|it| it.listen.tls.as_ref()) {
            own.push(("admin.tls.cert".to_owned(), &*tls.cert));
        }
        for upstream in &self.upstreams {
            if let Endpoint::Http(http) = &upstream.endpoint
                && let Some((cert, _)) = &http.tls.identity
            {
                own.push((
                    format!("upstreams.{}.tls.cert", upstream.id),
                    cert.as_slice(),
                ));
            }
        }
        own
    }
}

/// The certificates that a gateway was started with: the key that each stands at, and its chain in PEM.
#[derive(Debug, Clone, Default)]
pub struct StartCertificates(Vec<(String, Vec<u8>)>);

impl StartCertificates {
    /// Those of a plan.
    pub fn of(plan: &Plan) -> Self {
        let own = plan.chains().into_iter();
        Self(own.map(|(key, pem)| (key, pem.to_vec())).collect())
    }

    /// Whether this chain at this key is one of them.
    pub(super) fn holds(&self, key: &str, pem: &[u8]) -> bool {
        self.0.iter().any(|(at, own)| at == key && own == pem)
    }
}

/// Where policies are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyPlan {
    /// The directory.
    pub dir: PathBuf,
    /// Whether a set is refused that a case of its own comes out wrong under. Default: false.
    pub enforce_cases: bool,
}
