//! Raw to plan: every rule about values, every broken one reported with its place and a hint.
//!
//! A rule never stops the next one from being looked at. Whatever is broken is replaced by its default, so that the rest
//! can be judged; the plan is thrown away if anything was broken.

mod admin;
pub(super) mod audit;
mod auth;
mod bounds;
mod catalog;
mod connections;
mod grants;
mod limits;
mod listen;
mod pem;
mod pins;
mod places;
pub(super) mod policy;
mod rules;
mod sanitize;
mod telemetry;
mod upstream;
mod validate;

use std::{fmt, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};

pub(super) use upstream::is_loopback;

use super::{
    Plan, Vars,
    loaded::Loaded,
    problem::Findings,
    raw::{ListenTls, Raw, State},
    secrets,
    tree::{Node, Origin, Scalar, written},
    typed,
    units::{Secret, Size, Time},
};

/// The plan that `tree` means, with everything wrong with it in `findings`.
pub(super) fn check(tree: Node, findings: &mut Findings) -> Plan {
    checked(tree, findings, None)
}

/// The same, with what is wrong with the files that a start reads and the places where it writes, which `vars` say where nothing else
/// does.
pub(super) fn examine(tree: Node, vars: Vars<'_>, findings: &mut Findings) -> Plan {
    checked(tree, findings, Some(vars))
}

fn checked(mut tree: Node, findings: &mut Findings, places: Option<Vars<'_>>) -> Plan {
    let loaded = Loaded::of(&tree);
    let (raw, struck) = typed::read::<Raw>(&mut tree, findings);
    let mut check = Check {
        tree,
        struck,
        findings,
        confided: Vec::new(),
    };
    let legacy_sse = raw.listen.legacy_sse;
    let proxied = matches!(raw.listen.tls, Some(ListenTls::TerminatedUpstream));
    let asked = auth::has_method(raw.auth.as_ref());
    let listen = listen::listen(&mut check, raw.listen, &raw.bounds.http, asked);
    let proof = bounds::proof(&mut check, &raw.bounds.auth);
    let auth = auth::auth(&mut check, raw.auth, &listen, proxied, proof);
    let admin = admin::admin(&mut check, raw.admin, &listen);
    let endpoint = listen::endpoint(&mut check, raw.endpoint, legacy_sse);
    let limits = limits::rules(
        &mut check,
        &raw.limits,
        &raw.bounds,
        &rules::Known {
            upstreams: rules::upstream_keys(raw.upstreams.0.iter().map(|(key, _)| key)),
            toolsets: raw.toolsets.0.iter().map(|(key, _)| key.as_str()).collect(),
        },
    );
    let queue = limits::queue(&mut check, &raw.bounds);
    let json = bounds::json(&mut check, &raw.bounds.json);
    let asking = bounds::asking(&mut check, &raw.bounds.resume);
    let peer = bounds::peer(&mut check, &raw.bounds, json, asking);
    let messages = bounds::messages(json, asking, listen.bounds.body_bytes);
    let upstreams = upstream::upstreams(&mut check, &raw.upstreams, &raw.definitions, queue, peer);
    let catalog = catalog::rules(
        &mut check,
        &raw.upstreams,
        &raw.toolsets,
        &raw.names,
        &raw.page_size,
        &raw.bounds,
        &raw.validate,
    );
    let connect = connections::connections(
        &mut check,
        raw.connections,
        &raw.upstreams,
        &listen,
        &endpoint,
    );
    let keys = raw.upstreams.0.iter().map(|(key, _)| key.as_str());
    let audit = audit::audit(&mut check, raw.audit, &keys.collect());
    let sanitize = sanitize::rules(&mut check, &raw.sanitize, &raw.upstreams);
    let pins = pins::pins(
        &mut check,
        &raw.definitions,
        &raw.upstreams,
        raw.state.dir.as_deref(),
    );
    let listens = limits::listens(&mut check, &raw.bounds.subscriptions);
    let memory = limits::memory(&mut check, &raw.bounds, listen.bounds.body_bytes);
    let telemetry = telemetry::telemetry(&mut check, raw.telemetry);
    let mut plan = Plan {
        audit,
        telemetry,
        loaded,
        admin,
        sanitize,
        pins,
        connect,
        listen,
        auth,
        endpoint,
        legacy_sse,
        upstreams,
        catalog,
        policy: policy::policy(&mut check, raw.policy),
        state_keys: check.state_keys(raw.state),
        sessions: limits::sessions(&mut check, &raw.bounds.sessions, &listens),
        limits,
        listens,
        memory,
        messages,
        asking,
        confided: Vec::new(),
    };
    if let Some(vars) = places {
        places::look(&mut check, &plan, vars);
    }
    plan.confided = check.confided;
    plan
}

/// What every rule needs.
struct Check<'f> {
    tree: Node,
    /// What could not be read, and is not in `tree` any more: where it was written.
    struck: Vec<Vec<String>>,
    findings: &'f mut Findings,
    /// See [`Plan::confided`].
    confided: Vec<SecretString>,
}

impl Check<'_> {
    /// Something is wrong with the value at `path`.
    fn wrong(&mut self, path: &[&str], message: impl Into<String>, hint: impl Into<String>) {
        let place = self.tree.place_of(path);
        let message = self.tree.redacted(path, message.into());
        let path = self.as_written(path);
        self.findings.report(place, written(&path), message, hint);
    }

    /// Something is wrong with the key at `path`.
    fn wrong_key(&mut self, path: &[&str], message: impl Into<String>, hint: impl Into<String>) {
        let place = self.tree.key_place_of(path);
        let path = self.as_written(path);
        self.findings.report(place, written(&path), message, hint);
    }

    /// Something is not there; unless it was, and was already reported as unreadable.
    fn missing(&mut self, path: &[&str], message: impl Into<String>, hint: impl Into<String>) {
        if !self.was_struck(path) {
            self.wrong_key(path, message, hint);
        }
    }

    /// Whether something stood at `path`, or in it, that could not be read.
    fn was_struck(&self, path: &[&str]) -> bool {
        let path = self.as_written(path);
        self.struck.iter().any(|struck| struck.starts_with(&path))
    }

    fn as_written(&self, path: &[&str]) -> Vec<String> {
        self.tree.as_written(path, &self.struck)
    }

    /// SECURITY 10: a secret is a reference, and not to a file that everybody may read.
    fn secret(&mut self, path: &[&str]) {
        let origin = self
            .tree
            .at(path)
            .and_then(Node::scalar)
            .filter(|scalar| !scalar.is_null())
            .map(|scalar: &Scalar| scalar.origin.clone());
        match origin {
            Some(Origin::Written) => self.wrong(
                path,
                "a secret stands in the file itself",
                "write `${env:NAME}` and export NAME, or `${file:/path}`; and replace the secret, it may have been seen",
            ),
            Some(Origin::Referenced {
                exposed: Some(file),
                ..
            }) => {
                let file = file.display();
                self.wrong(
                    path,
                    format!("everybody on this machine may read `{file}`"),
                    format!("chmod o-r {file}"),
                );
            }
            Some(Origin::Referenced { exposed: None, .. }) | None => {}
        }
    }

    /// The same of a header that is sent beside a credential: many hold no secret, and nobody has to say which.
    fn header(&mut self, path: &[&str], name: &str, value: &str) {
        if self.is_referenced(path) || secrets::is_told_in_header(name, value) {
            self.secret(path);
        }
    }

    /// Whether the value at `path` is a reference, at least in part.
    fn is_referenced(&self, path: &[&str]) -> bool {
        let scalar = self.tree.at(path).and_then(Node::scalar);
        scalar.is_some_and(|scalar| scalar.origin != Origin::Written)
    }

    /// A number within its range, or its default.
    fn count(
        &mut self,
        path: &[&str],
        value: Option<usize>,
        default: usize,
        range: (usize, usize),
    ) -> usize {
        self.within(path, value.unwrap_or(default), default, range, |number| {
            *number
        })
    }

    /// A size within its range, or its default.
    fn size(
        &mut self,
        path: &[&str],
        value: Option<Size>,
        default: usize,
        range: (usize, usize),
    ) -> usize {
        let value = value.map_or(default, |size| size.0);
        self.within(path, value, default, range, |bytes| Size(*bytes))
    }

    /// A time within its range, or its default.
    fn time(
        &mut self,
        path: &[&str],
        value: Option<Time>,
        default: Duration,
        range: (Duration, Duration),
    ) -> Duration {
        let value = value.map_or(default, |time| time.0);
        self.within(path, value, default, range, |time| Time(*time))
    }

    fn within<T: PartialOrd, D: fmt::Display>(
        &mut self,
        path: &[&str],
        value: T,
        default: T,
        (least, most): (T, T),
        shown: impl Fn(&T) -> D,
    ) -> T {
        if value >= least && value <= most {
            return value;
        }
        let message = format!("{} is out of range", shown(&value));
        let hint = format!(
            "between {} and {}; the default is {}",
            shown(&least),
            shown(&most),
            shown(&default)
        );
        self.wrong(path, message, hint);
        default
    }

    fn state_keys(&mut self, state: State) -> Vec<SecretString> {
        if state.key.is_none() && !state.former_keys.is_empty() {
            self.missing(
                &["state", "key"],
                "former keys, and none that is used now",
                "give the new one as `key`; `openssl rand -hex 32` makes a good one",
            );
        }
        let key = state.key.map(|key| self.key(&["state", "key"], key));
        let mut keys: Vec<_> = key.into_iter().collect();
        for (index, key) in state.former_keys.into_iter().enumerate() {
            keys.push(self.key(&["state", "former_keys", &index.to_string()], key));
        }
        keys
    }

    /// A key that something is sealed with.
    fn key(&mut self, path: &[&str], key: Secret) -> SecretString {
        self.secret(path);
        if key.0.expose_secret().len() < MIN_KEY_BYTES {
            self.wrong(
                path,
                format!("a key of fewer than {MIN_KEY_BYTES} bytes"),
                "`openssl rand -hex 32` makes a good one",
            );
        }
        key.0
    }
}

const MIN_KEY_BYTES: usize = 32;

/// Seconds.
const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Whether `glob` can be meant: not empty, not endless.
fn globs(check: &mut Check<'_>, path: &[&str], globs: &[String]) {
    for (index, glob) in globs.iter().enumerate() {
        if glob.is_empty() || glob.len() > 256 {
            let index = index.to_string();
            let path: Vec<&str> = path.iter().copied().chain([index.as_str()]).collect();
            check.wrong(
                &path,
                "not a pattern",
                "a name, in which `*` is any run of characters and `?` any one",
            );
        }
    }
}
