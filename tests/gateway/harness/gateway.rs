//! A gateway, configured by the text that an operator would write, on a free port.

use std::{fmt::Write as _, fs, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tempfile::TempDir;
use usher::{
    admin::AdminSpec, app::App, audit::log::Storage, auth::spec::AuthSpec, config,
    server::spec::TlsServerSpec, tasks::Tasks, telemetry::Telemetry, upstream::spec::Timeouts,
};

use super::{Client, PATIENCE, Revision, Upstream, authority::Authority, client::HandshakeRefused};

/// A running gateway. It ends with the test.
pub(crate) struct Gateway {
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
    tasks: Tasks,
    /// Where its policies are, if it has some.
    policies: Option<TempDir>,
    /// Whose tokens callers bring, where there are policies.
    authority: Option<Authority>,
}

/// What a scenario says of its gateway.
#[derive(Debug, Default)]
pub(crate) struct GatewayBuilder {
    upstreams: String,
    toolsets: String,
    settings: String,
    poll: Option<Duration>,
    keys: Vec<String>,
    unsettled: bool,
    auth: Option<AuthSpec>,
    tls: Option<TlsServerSpec>,
    policies: Option<TempDir>,
    unguided: bool,
    admin: Option<AdminSpec>,
    telemetry: Option<Telemetry>,
    disk: Option<Arc<dyn Storage>>,
    segment: Option<u64>,
}

/// What holds where a scenario is about who calls, and says nothing of what they may do.
pub(crate) const EVERYTHING: &str = "permit(principal, action, resource);";

impl GatewayBuilder {
    /// An upstream under this key.
    pub(crate) fn upstream(self, key: &str, upstream: &Upstream) -> Self {
        self.upstream_with(key, upstream, "")
    }

    /// The same with more keys of its block, such as `prefix: n, timeout: { call: 1s }`.
    pub(crate) fn upstream_with(mut self, key: &str, upstream: &Upstream, more: &str) -> Self {
        let place = upstream.place();
        writeln!(self.upstreams, "  {key}: {{ {place}, {more} }}").unwrap();
        self
    }

    /// An upstream that is no scripted one, or not directly: its whole block.
    pub(crate) fn placed(mut self, key: &str, block: &str) -> Self {
        writeln!(self.upstreams, "  {key}: {block}").unwrap();
        self
    }

    pub(crate) fn toolset(mut self, name: &str, block: &str) -> Self {
        writeln!(self.toolsets, "  {name}: {{ {block} }}").unwrap();
        self
    }

    /// A line at the top of the configuration.
    pub(crate) fn setting(mut self, line: &str) -> Self {
        writeln!(self.settings, "{line}").unwrap();
        self
    }

    /// Reads all lists this often: sooner than a configuration may ask for.
    pub(crate) const fn polling(mut self, every: Duration) -> Self {
        self.poll = Some(every);
        self
    }

    /// Seals cursors with this: a secret, which may not stand in a configuration. Given again, those are former ones.
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }

    /// Asks who calls, by this: it holds secrets and addresses of the test's own. Unless there are policies, whoever is let in
    /// may use everything.
    pub(crate) fn auth(mut self, auth: AuthSpec) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Says nothing of what whoever is let in may do.
    pub(crate) const fn unguided(mut self) -> Self {
        self.unguided = true;
        self
    }

    /// Is watched by this.
    pub(crate) fn observed(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// Writes its records to this instead of the file system; `audit:` has to say where.
    pub(crate) fn disk(mut self, disk: Arc<dyn Storage>) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Ends a segment of its records at so many bytes: sooner than a configuration may ask for.
    pub(crate) const fn segments(mut self, bytes: u64) -> Self {
        self.segment = Some(bytes);
        self
    }

    /// Ends TLS by this.
    pub(crate) fn tls(mut self, tls: TlsServerSpec) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Lets operators in, with tokens, which may not stand in a configuration.
    pub(crate) fn admin(mut self, admin: AdminSpec) -> Self {
        self.admin = Some(admin);
        self
    }

    /// Under these policies, in one file; callers bring tokens of an authority of the gateway's own ([`Gateway::client_as`]).
    pub(crate) fn policies(mut self, cedar: &str) -> Self {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("main.cedar"), cedar).unwrap();
        let path = dir.path().display();
        writeln!(self.settings, "policy: {{ dir: {path} }}").unwrap();
        self.policies = Some(dir);
        self
    }

    /// With these cases, which must come out as they say when the policies change.
    pub(crate) fn enforced_cases(mut self, yaml: &str) -> Self {
        let dir = self.policies.as_ref().unwrap().path();
        fs::write(dir.join("cases.yaml"), yaml).unwrap();
        self.settings = self
            .settings
            .replace("policy: {", "policy: { enforce_cases: true,");
        self
    }

    /// The directory of its policies is not there.
    pub(crate) fn missing_policies(self) -> Self {
        fs::remove_dir_all(self.policies.as_ref().unwrap().path()).unwrap();
        self
    }

    /// Does not wait for the upstreams.
    pub(crate) const fn unsettled(mut self) -> Self {
        self.unsettled = true;
        self
    }

    /// The text an operator would write.
    pub(crate) fn text(&self) -> String {
        let mut text = self.settings.clone();
        write!(text, "upstreams:\n{}", self.upstreams).unwrap();
        if !self.toolsets.is_empty() {
            write!(text, "toolsets:\n{}", self.toolsets).unwrap();
        }
        text
    }

    pub(crate) async fn start(self) -> Gateway {
        // A plan is large, and so is whatever is held while one is built.
        Box::pin(self.begin()).await
    }

    async fn begin(mut self) -> Gateway {
        super::metered();
        if self.auth.is_some() && self.policies.is_none() && !self.unguided {
            self = self.policies(EVERYTHING);
        }
        let text = self.text();
        let mut plan =
            config::of_text(&text).unwrap_or_else(|rejected| panic!("{rejected:?} in\n{text}"));
        plan.listen.address = SocketAddr::from(([127, 0, 0, 1], 0));
        // A busy machine takes its time; what a test says itself stays.
        let usual = Timeouts::default().connect;
        for upstream in &mut plan.upstreams {
            if upstream.timeouts.connect == usual {
                upstream.timeouts.connect = 3 * usual;
            }
        }
        if !text.contains("audit:") {
            // Not in the directory of whoever runs the tests.
            plan.audit = None;
        }
        if let (Some(disk), Some(audit)) = (self.disk, &mut plan.audit) {
            audit.storage = disk;
        }
        if let (Some(segment), Some(audit)) = (self.segment, &mut plan.audit) {
            audit.cuts.segment = segment;
        }
        if let Some(poll) = self.poll {
            plan.upstreams
                .iter_mut()
                .for_each(|upstream| upstream.poll = poll);
        }
        plan.state_keys = self.keys.into_iter().map(Into::into).collect();
        plan.auth = self.auth;
        plan.listen.tls = self.tls;
        plan.admin = self.admin;
        let authority = match (&self.policies, &plan.auth) {
            (Some(_), None) => Some(Authority::start().await),
            (None, _) | (_, Some(_)) => None,
        };
        if let Some(authority) = &authority {
            plan.auth = Some(AuthSpec {
                anonymous: true,
                ..authority.spec()
            });
        }
        let tasks = Tasks::new();
        let app = App::observed(plan, self.telemetry, tasks.clone())
            .await
            .unwrap();
        let address = app.bind().await.unwrap();
        if !self.unsettled {
            app.settled(PATIENCE).await;
        }
        Gateway {
            app,
            address,
            tasks,
            policies: self.policies,
            authority,
        }
    }
}

impl Gateway {
    pub(crate) fn of() -> GatewayBuilder {
        GatewayBuilder::default()
    }

    /// A client of everything.
    pub(crate) async fn client(&self, revision: Revision) -> Client {
        self.client_at("/mcp", revision).await
    }

    /// A client of one endpoint.
    pub(crate) async fn client_at(&self, path: &str, revision: Revision) -> Client {
        Client::connect(self.address, path, revision).await.unwrap()
    }

    /// A client of everything with these capabilities: an object as text.
    pub(crate) async fn client_able(&self, revision: Revision, capabilities: &str) -> Client {
        Client::connect_able(self.address, "/mcp", revision, capabilities)
            .await
            .unwrap()
    }

    /// A client of everything that brings this token.
    pub(crate) async fn client_with(&self, revision: Revision, token: &str) -> Client {
        let headers = [("authorization", format!("Bearer {token}"))];
        Client::connect_with(self.address, "/mcp", revision, "{}", &headers)
            .await
            .unwrap()
    }

    /// A client that proves to be somebody, with these capabilities: `ana group:dev group:ops scope:write` is in two groups and
    /// has a scope. For a gateway with policies.
    pub(crate) async fn client_as(
        &self,
        who: &str,
        revision: Revision,
        capabilities: &str,
    ) -> Client {
        self.client_as_at("/mcp", who, revision, capabilities)
            .await
            .unwrap()
    }

    /// The same at another endpoint, where the handshake may be refused.
    pub(crate) async fn client_as_at(
        &self,
        path: &str,
        who: &str,
        revision: Revision,
        capabilities: &str,
    ) -> Result<Client, HandshakeRefused> {
        let (name, words) = who.split_once(' ').unwrap_or((who, ""));
        let of = |kind: &str| -> Vec<_> {
            let words = words.split(' ');
            words.filter_map(|word| word.strip_prefix(kind)).collect()
        };
        let (groups, scopes) = (of("group:"), of("scope:").join(" "));
        let more = format!(r#","groups":{groups:?},"scope":"{scopes}""#);
        let token = self.authority.as_ref().unwrap().token(name, &more);
        let headers = [("authorization", format!("Bearer {token}"))];
        Client::connect_with(self.address, path, revision, capabilities, &headers).await
    }

    /// The directory of its policies.
    pub(crate) fn policy_dir(&self) -> PathBuf {
        self.policies.as_ref().unwrap().path().to_owned()
    }

    /// Writes other policies in the place of the first ones; the gateway finds them by itself.
    pub(crate) fn rewrite(&self, cedar: &str) {
        fs::write(self.policy_dir().join("main.cedar"), cedar).unwrap();
    }

    /// The handshake, which may be refused.
    pub(crate) async fn try_client_at(
        &self,
        path: &str,
        revision: Revision,
    ) -> Result<Client, HandshakeRefused> {
        Client::connect(self.address, path, revision).await
    }

    /// What operators see of one upstream: `ready`, `connecting` or `away`.
    pub(crate) fn state(&self, key: &str) -> &'static str {
        let statuses = self.app.statuses();
        let status = statuses.iter().find(|status| status.id.as_str() == key);
        status.unwrap().state
    }

    /// Whether an upstream is there and its tools are listed.
    pub(crate) fn offers(&self, key: &str) -> bool {
        let statuses = self.app.statuses();
        let status = statuses
            .iter()
            .find(|status| status.id.as_str() == key)
            .unwrap();
        status.state == "ready" && status.counts[0] > 0
    }

    /// What was left out, for operators.
    pub(crate) fn reports(&self, key: &str) -> Vec<String> {
        let statuses = self.app.statuses();
        let status = statuses.iter().find(|status| status.id.as_str() == key);
        status.unwrap().reports.clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}
