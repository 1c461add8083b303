//! Secrets: C4, whose form or context leaves no doubt, and C5, which may be some.
//!
//! One pass over the text finds places worth a closer look: runs of fourteen token characters, assignments, addresses, blocks
//! of keys. At each of them tables say whose secret may stand there; whatever is written by hand, counted up, or printed in
//! documentation is let go. The rules are data (`tokens.txt`, `contexts.txt`, `vendors.txt`, `services.txt`), each with its
//! source; the notice of gitleaks, from whose rules many forms are known, is in `LICENSE.gitleaks`.
//!
//! Guarantees: linear in the text, since every look is bounded; nothing is allocated for a text without a hit; the span of a
//! hit is the secret and not the name before it. Deliberately absent: asking a provider whether a secret is in use, and
//! secrets that are encoded, which are decoded before.
// SECURITY 7

mod armoured;
mod assign;
mod beside;
mod broken;
mod bytes;
mod checksums;
mod commands;
mod context;
mod ending;
mod exchange;
mod grammar;
mod manifest;
mod names;
mod next;
mod object;
mod pattern;
mod plausible;
mod prefixed;
mod public;
mod rules;
mod run;
mod said;
mod scan;
mod section;
mod service;
mod settings;
mod urls;
mod value;

use std::sync::{Arc, LazyLock};

use self::{rules::Rules, scan::Scan};
use super::{Class, Detector, Hit, Survey};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::read);
static NAMES: LazyLock<Names> = LazyLock::new(Names::new);

/// Which secrets are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// C4.
    pub strong: bool,
    /// C5.
    pub weak: bool,
}

/// Finds secrets. One look serves both classes: a [`Hit`] says of which it is.
#[derive(Debug, Clone, Copy)]
pub struct Secrets {
    wanted: Wanted,
}

/// Finds secrets of the classes that are wanted, C4 and C5, in one look.
pub fn detector(wanted: Wanted) -> Secrets {
    LazyLock::force(&RULES);
    LazyLock::force(&NAMES);
    Secrets { wanted }
}

/// The names of every rule, in order: for reference and for checks of configuration.
pub fn rules() -> Vec<Arc<str>> {
    let mut all: Vec<_> = RULES
        .tokens
        .iter()
        .map(|token| token.name.clone())
        .chain(RULES.contexts.iter().map(|context| context.name.clone()))
        .chain(RULES.meanings.iter().filter_map(|word| match word {
            rules::Word::Vendor(_, name) => Some(name.clone()),
            rules::Word::Secret | rules::Word::Harmless | rules::Word::Id => None,
        }))
        .chain(NAMES.all())
        .collect();
    all.sort();
    all.dedup();
    all
}

impl Detector for Secrets {
    fn class(&self) -> Class {
        if self.wanted.strong {
            Class::Secret
        } else {
            Class::WeakSecret
        }
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        self.inspect_surveyed(text, &Survey::of(text), hits);
    }

    fn inspect_surveyed(&self, text: &str, survey: &Survey, hits: &mut Vec<Hit>) {
        Scan::all(&RULES, &NAMES, self.wanted, text, survey, hits);
    }
}

/// Names of the rules that are code.
#[derive(Debug)]
struct Names {
    private_key: Arc<str>,
    token: Arc<str>,
    url: Arc<str>,
    connection: Arc<str>,
    basic: Arc<str>,
    bearer: Arc<str>,
    webhook: Arc<str>,
    node: Arc<str>,
    entra: Arc<str>,
    manifest: Arc<str>,
    password: Arc<str>,
    generic: Arc<str>,
    sidekiq: Arc<str>,
    netrc: Arc<str>,
    header: Arc<str>,
    signature: Arc<str>,
    signed: Arc<str>,
    pair: Arc<str>,
    account: Arc<str>,
    service: Arc<str>,
    exchange: Arc<str>,
    listed: Arc<str>,
}

impl Names {
    fn new() -> Self {
        Self {
            private_key: "private_key".into(),
            token: "json_web_token".into(),
            url: "url_password".into(),
            connection: "connection_password".into(),
            basic: "basic_credentials".into(),
            bearer: "bearer_token".into(),
            webhook: "webhook_address".into(),
            node: "node_address".into(),
            entra: "azure_client_secret".into(),
            manifest: "kubernetes_secret".into(),
            password: "password".into(),
            generic: "generic_secret".into(),
            sidekiq: "sidekiq_credentials".into(),
            netrc: "netrc_password".into(),
            header: "key_header".into(),
            signature: "azure_signature".into(),
            signed: "google_signature".into(),
            pair: "aws_secret_key".into(),
            account: "twilio_auth_token".into(),
            service: "service_key".into(),
            exchange: "login_exchange".into(),
            listed: "azure_storage_key".into(),
        }
    }

    fn all(&self) -> [Arc<str>; 22] {
        [
            &self.private_key,
            &self.token,
            &self.url,
            &self.connection,
            &self.basic,
            &self.bearer,
            &self.webhook,
            &self.node,
            &self.entra,
            &self.manifest,
            &self.password,
            &self.generic,
            &self.sidekiq,
            &self.netrc,
            &self.header,
            &self.signature,
            &self.signed,
            &self.pair,
            &self.account,
            &self.service,
            &self.exchange,
            &self.listed,
        ]
        .map(Arc::clone)
    }
}

#[cfg(test)]
mod tests;
