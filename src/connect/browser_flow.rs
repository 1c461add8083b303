//! What browsers do: see a login, go on with it, and come back (PROTOCOL F6, F7).
//!
//! Guarantees: nobody is sent anywhere before they have seen whose login it is and gone on; a code is exchanged only for the
//! browser that left, from the server that it left for; no text of a server's is repeated.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::oneshot;

use super::{
    CALLBACK, ConnectError, Connections, DOCUMENT, Grant,
    discover::origin,
    flows::{self, Back, BadVisit, Leaving},
    register::{self, Use},
    token::{self, TokenError},
};
use crate::{json::Json, protocol::UpstreamId, seal::unix_seconds};

/// What a person is shown before they go on.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Who the login is for.
    pub who: Arc<str>,
    /// What for.
    pub upstream: UpstreamId,
    /// Where the person will be sent: `https://host`.
    pub server: String,
    /// What will be asked for there.
    pub scopes: Vec<String>,
}

/// What a browser comes back with.
#[derive(Debug, Clone, Default)]
pub struct Callback {
    /// The state.
    pub state: String,
    /// The code, where the person agreed.
    pub code: Option<String>,
    /// A word, where not.
    pub error: Option<String>,
    /// Who answers (RFC 9207).
    pub iss: Option<String>,
}

/// A login that came to something.
#[derive(Debug, Clone)]
pub struct Done {
    /// For whom.
    pub who: Arc<str>,
    /// What for.
    pub upstream: UpstreamId,
    /// What the browser is to remember: [`Connections::browser_cookie`].
    pub browser: String,
}

/// Why a login does not go on. What a person is told is written with the page.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// The link or the browser.
    #[error(transparent)]
    Visit(#[from] BadVisit),
    /// The person did not agree.
    #[error("the person did not agree")]
    Denied,
    /// The server refused.
    #[error("the authorization server answered with an error")]
    Refused,
    /// The answer is not of the server that the browser was sent to.
    #[error("the answer names another issuer, or none although it should")]
    WrongIssuer,
    /// Something is not as it should be, here or there.
    #[error(transparent)]
    Failed(#[from] ConnectError),
}

impl Connections {
    /// Whether the browser that remembers this may be used for the login of a link, or of a state: not if it is another
    /// principal's.
    ///
    /// # Errors
    /// [`BadVisit::OtherPerson`]; [`BadVisit::Gone`] is for the other questions to find.
    pub fn vet(&self, link: &str, remembered: Option<&str>) -> Result<(), Refusal> {
        match self.shared.flows.whose(link) {
            Some(whose) if self.shared.browsers.is_foreign(remembered, &whose) => {
                Err(BadVisit::OtherPerson.into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The same for the login of a state.
    ///
    /// # Errors
    /// As [`Connections::vet`].
    pub fn vet_state(&self, state: &str, remembered: Option<&str>) -> Result<(), Refusal> {
        let link = self.shared.flows.link_of_state(state);
        link.map_or(Ok(()), |link| self.vet(&link, remembered))
    }

    /// Whether the browser that remembers this was used to log in by whose login a link is.
    pub fn knows(&self, link: &str, remembered: Option<&str>) -> bool {
        let whose = self.shared.flows.whose(link);
        whose.is_some_and(|whose| self.shared.browsers.is_of(remembered, &whose))
    }

    /// The name of the cookie in which a browser remembers who logged in with it.
    pub fn browser_cookie(&self) -> &'static str {
        if self.is_encrypted() {
            "__Host-usher-browser"
        } else {
            "usher-browser"
        }
    }

    /// What the browser with this cookie is shown.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn visit(&self, link: &str, cookie: Option<&str>) -> Result<Prompt, Refusal> {
        let shown = self.shared.flows.visit(link, cookie)?;
        let login = self.login(&shown.account.upstream).await?;
        let scopes = self.asked_for(&login.scopes, &shown.account);
        Ok(Prompt {
            who: shown.who,
            upstream: shown.account.upstream,
            server: origin(&login.server.authorize),
            scopes,
        })
    }

    /// The person goes on: where the browser with this cookie is sent.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn go_on(&self, link: &str, cookie: &str) -> Result<String, Refusal> {
        let shown = self.shared.flows.visit(link, Some(cookie))?;
        let upstream = &shown.account.upstream;
        let login = self.login(upstream).await?;
        let scopes = self.asked_for(&login.scopes, &shown.account);
        let client = self
            .client(upstream, &login.server, Use::Login(&scopes))
            .await
            .map_err(Refusal::Failed)?;
        let redirect = format!("{}{CALLBACK}", self.base()?);
        let verifier = SecretString::from(flows::random());
        let challenge = flows::challenge(&verifier);
        let scope = scopes.join(" ");
        let leaving = Leaving {
            login: Arc::clone(&login),
            scopes,
            client: client.clone(),
            verifier,
            redirect: redirect.clone(),
        };
        let state = self.shared.flows.leave(link, cookie, leaving)?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &redirect)
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
        // OpenID Connect gives refresh tokens to those alone who were asked (Core, 11).
        if login.scopes.iter().any(|scope| scope == "offline_access") {
            query.append_pair("prompt", "consent");
        }
        if let Some(resource) = &login.resource {
            query.append_pair("resource", resource);
        }
        let at = login.server.authorize.uri();
        let joint = if at.query().is_some() { '&' } else { '?' };
        Ok(format!("{at}{joint}{}", query.finish()))
    }

    /// The name of the cookie that has to come with a state, if it is one of ours.
    pub fn cookie_of_state(&self, state: &str) -> Option<String> {
        let link = self.shared.flows.link_of_state(state)?;
        Some(self.cookie_of(&link))
    }

    /// The name of the cookie of one link: each has its own, so that one login does not disturb another. On https it is tied to
    /// this host, and no other page of the domain can set it.
    pub fn cookie_of(&self, link: &str) -> String {
        let tied = if self.is_encrypted() { "__Host-" } else { "" };
        let short: String = flows::challenge(&SecretString::from(link))
            .chars()
            .take(16)
            .collect();
        format!("{tied}usher-login-{short}")
    }

    /// Whether browsers reach the pages over https.
    pub fn is_encrypted(&self) -> bool {
        self.base().is_ok_and(|base| base.starts_with("https://"))
    }

    /// The browser with this cookie came back.
    ///
    /// # Errors
    /// [`Refusal`]; then no token was kept, and unless the refusal is of the code itself, no code was sent anywhere.
    pub async fn come_back(
        &self,
        callback: Callback,
        cookie: Option<&str>,
    ) -> Result<Done, Refusal> {
        let back = match self.shared.flows.back(&callback.state, cookie) {
            Ok(back) => back,
            Err(bad) => {
                self.shared.grants.tell();
                return Err(bad.into());
            }
        };
        // To the end, whether the browser waits for it or not: a code is good once.
        let (done, outcome) = oneshot::channel();
        let this = self.clone();
        self.shared.tasks.spawn(async move {
            let notice = back.notice.clone();
            let result = this.finish(callback, back).await;
            this.shared.flows.finished(&notice);
            // Whoever waits hears of the end either way.
            this.shared.grants.tell();
            drop(done.send(result));
        });
        outcome
            .await
            .unwrap_or(Err(Refusal::Failed(ConnectError::Stopping)))
    }

    async fn finish(&self, callback: Callback, back: Back) -> Result<Done, Refusal> {
        let Back { shown, leaving, .. } = back;
        let server = &leaving.login.server;
        // RFC 9207 2.4, before anything else of the answer is believed, errors included.
        match &callback.iss {
            Some(iss) if *iss != server.issuer && self.knows_issuer(&shown.account.upstream) => {
                return Err(Refusal::WrongIssuer);
            }
            None if server.names_itself => return Err(Refusal::WrongIssuer),
            Some(_) | None => {}
        }
        match callback.error.as_deref() {
            None => {}
            Some("access_denied") => return Err(Refusal::Denied),
            Some(_) => return Err(Refusal::Refused),
        }
        let code = callback.code.map(SecretString::from);
        let code = code.ok_or(Refusal::Refused)?;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code.expose_secret()),
            ("redirect_uri", leaving.redirect.as_str()),
            ("code_verifier", leaving.verifier.expose_secret()),
        ];
        let resource = leaving.login.resource.clone();
        fields.extend(resource.as_deref().map(|resource| ("resource", resource)));
        let fetcher = self.fetcher(&shown.account.upstream);
        let tokens = token::ask(server, &leaving.client, &fields, fetcher).await;
        if leaving.client.registered && matches!(tokens, Err(TokenError::InvalidClient)) {
            self.forget_client(server, &leaving.client).await;
        }
        let tokens = tokens.map_err(ConnectError::from)?;
        let account = shown.account;
        let now = unix_seconds();
        // The logins of an account are told apart by it.
        let before = self.current(&account).map(|grant| grant.since);
        let since = before.map_or(now, |before| now.max(before.saturating_add(1)));
        let grant = Grant {
            access: tokens.access,
            refresh: tokens.refresh,
            until: tokens.life.map(|life| now.saturating_add(life)),
            life: tokens.life,
            issuer: server.issuer.clone(),
            address: self.account(&account.upstream)?.address.clone(),
            resource,
            scope: tokens.scope,
            since,
            who: shown.who.to_string(),
            client: (leaving.client.registered).then(|| leaving.client.id.clone()),
        };
        let (this, of) = (self.clone(), account.clone());
        // Before anybody hears of the grant, who may find at once what it lacks.
        let met = move || this.shared.wants.met(&of, &leaving.scopes);
        let (this, of) = (self.clone(), account.clone());
        let keep = move || this.shared.grants.put(&of, grant, met);
        let kept = tokio::task::spawn_blocking(keep).await;
        kept.map_err(|_| ConnectError::Stopping)?
            .map_err(ConnectError::from)?;
        self.shared.flows.settle(&account);
        tracing::info!(upstream = %account.upstream, principal = account.principal.as_str(), "a principal has connected");
        Ok(Done {
            who: shown.who,
            browser: self.shared.browsers.of(&account.principal),
            upstream: account.upstream,
        })
    }

    /// Whether the issuer is known, and not made up for a server without metadata.
    fn knows_issuer(&self, upstream: &UpstreamId) -> bool {
        let account = self.shared.spec.accounts.get(upstream);
        account
            .is_some_and(|account| !matches!(account.server, super::spec::ServerSpec::Given { .. }))
    }

    /// The document about ourselves; `None` where browsers do not reach us over https, since no server takes it then.
    pub fn document(&self) -> Option<Json> {
        let base = self.base().ok().filter(|_| self.is_encrypted())?;
        let id = format!("{base}{DOCUMENT}");
        let redirect = format!("{base}{CALLBACK}");
        Some(register::about(Some(&id), &redirect, "none", ""))
    }
}
