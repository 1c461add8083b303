//! Logins under way: a link for one principal and one upstream, the browser that took it, the state that comes back.
//!
//! Guarantees: a link is good for ten minutes, in the first browser that goes on with it and in no other; a state comes back
//! once, to that browser, within ten minutes; whose login it is was fixed when the link was made. Bounds: 10,000 links, 8 of one
//! principal for one upstream, of which the oldest gives way. Deliberately absent: what is asked of the authorization server.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
    rand,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use super::{discover::Login, token::Client};
use crate::{call::Principal, protocol::UpstreamId};

/// How long a link is good, and after it the state.
pub const LIFE: Duration = Duration::from_secs(600);
/// The most links.
const LINKS: usize = 10_000;
/// The most links of one principal for one upstream.
const LINKS_EACH: usize = 8;

/// Whose login, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Account {
    /// What is logged in to.
    pub upstream: UpstreamId,
    /// Who.
    pub principal: Principal,
}

/// What a browser is told of a login.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) account: Account,
    /// What people call the principal.
    pub(super) who: Arc<str>,
}

/// What is needed once the browser comes back.
#[derive(Debug)]
pub(super) struct Leaving {
    /// Where the person was sent.
    pub(super) login: Arc<Login>,
    /// What was asked for there.
    pub(super) scopes: Vec<String>,
    /// As whom.
    pub(super) client: Client,
    /// The secret half of PKCE.
    pub(super) verifier: SecretString,
    /// Where the browser was told to come back to.
    pub(super) redirect: String,
}

/// A login that came back.
#[derive(Debug)]
pub(super) struct Back {
    pub(super) shown: Shown,
    pub(super) leaving: Leaving,
    /// The notice by which clients know it.
    pub(super) notice: Arc<str>,
}

/// Why a browser is sent away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadVisit {
    /// No such link or state: never given out, used, or too old.
    #[error("no such login, or not any more")]
    Gone,
    /// Another browser has it.
    #[error("another browser went on with this login")]
    OtherBrowser,
    /// Nobody said that the login is theirs, in a browser that is not known to be.
    #[error("it was not confirmed whose login it is")]
    Unconfirmed,
    /// Somebody else logged in with this browser.
    #[error("another principal logged in with this browser")]
    OtherPerson,
}

/// Every login under way.
#[derive(Debug, Default)]
pub(super) struct Flows {
    // Held for a few lookups, never across an await.
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    links: HashMap<String, Flow>,
    /// The links of each account, oldest first.
    accounts: HashMap<Account, Vec<String>>,
    /// The links of each notice.
    notices: HashMap<Arc<str>, String>,
    /// States, and the links they are of.
    states: HashMap<String, String>,
    /// Logins whose browser has come back, and whose code is being exchanged. As many as requests that are answered.
    finishing: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct Flow {
    shown: Shown,
    notice: Arc<str>,
    until: Instant,
    /// The digest of the cookie of the browser that went on with it.
    browser: Option<[u8; 32]>,
    /// Set while the person is at the authorization server.
    left: Option<(String, Leaving)>,
}

impl Flows {
    /// A link for this principal: one that is there and that no browser has taken yet, or a new one. `None` when there are too
    /// many. The second is a name for it that gives nobody anything.
    pub(super) fn link(&self, account: &Account, who: &Arc<str>) -> Option<(String, Arc<str>)> {
        let now = Instant::now();
        let mut inner = self.inner();
        let own = inner.accounts.get(account).map_or(&[][..], Vec::as_slice);
        let free = own.iter().find_map(|link| {
            let flow = inner.links.get(link)?;
            let fresh = flow.browser.is_none() && flow.until > now + LIFE / 2;
            fresh.then(|| (link.clone(), flow.notice.clone()))
        });
        if free.is_some() {
            return free;
        }
        if own.len() >= LINKS_EACH
            && let Some(oldest) = own.first().cloned()
        {
            inner.forget(&oldest);
        }
        if inner.links.len() >= LINKS {
            inner.sweep(now);
        }
        if inner.links.len() >= LINKS {
            return None;
        }
        let (link, notice): (String, Arc<str>) = (random(), random().into());
        let flow = Flow {
            shown: Shown {
                account: account.clone(),
                who: who.clone(),
            },
            notice: notice.clone(),
            until: now + LIFE,
            browser: None,
            left: None,
        };
        inner.links.insert(link.clone(), flow);
        inner.notices.insert(notice.clone(), link.clone());
        let own = inner.accounts.entry(account.clone()).or_default();
        own.push(link.clone());
        Some((link, notice))
    }

    /// Whether the login of this name may still come to something.
    pub(super) fn is_open(&self, notice: &str) -> bool {
        let now = Instant::now();
        let inner = self.inner();
        let flow = inner.notices.get(notice).and_then(|link| inner.open(link));
        inner.finishing.contains(notice) || flow.is_some_and(|flow| flow.until > now)
    }

    /// Gives up the login of this name, if it is this principal's. Whether no other login of theirs is under way.
    pub(super) fn give_up(&self, account: &Account, notice: &str) -> bool {
        let mut inner = self.inner();
        let link = inner.notices.get(notice).cloned();
        let own = inner.accounts.get(account);
        if let Some(link) = link
            && own.is_some_and(|own| own.contains(&link))
        {
            inner.forget(&link);
        }
        let own = inner.accounts.get(account);
        !own.is_some_and(|own| own.iter().any(|link| inner.open(link).is_some()))
    }

    /// Gives up every login of this account: it has come to something, or is no longer wanted.
    pub(super) fn settle(&self, account: &Account) {
        let mut inner = self.inner();
        let links = inner.accounts.get(account).cloned().unwrap_or_default();
        for link in links {
            inner.forget(&link);
        }
    }

    /// What the browser with this cookie, if it has one, is told of a link.
    ///
    /// # Errors
    /// [`BadVisit`].
    pub(super) fn visit(&self, link: &str, cookie: Option<&str>) -> Result<Shown, BadVisit> {
        let inner = self.inner();
        let flow = inner.open(link).ok_or(BadVisit::Gone)?;
        match &flow.browser {
            None => Ok(flow.shown.clone()),
            Some(browser) if cookie.is_some_and(|cookie| is_same(browser, cookie)) => {
                Ok(flow.shown.clone())
            }
            Some(_) => Err(BadVisit::OtherBrowser),
        }
    }

    /// The browser with this cookie goes on: from now on the login is this browser's alone. The state to come back with.
    ///
    /// # Errors
    /// [`BadVisit`].
    pub(super) fn leave(
        &self,
        link: &str,
        cookie: &str,
        leaving: Leaving,
    ) -> Result<String, BadVisit> {
        let mut inner = self.inner();
        let now = Instant::now();
        let flow = inner
            .links
            .get_mut(link)
            .filter(|flow| flow.until > now)
            .ok_or(BadVisit::Gone)?;
        if let Some(browser) = &flow.browser
            && !is_same(browser, cookie)
        {
            return Err(BadVisit::OtherBrowser);
        }
        flow.browser = Some(hash(cookie));
        flow.until = now + LIFE;
        let state = random();
        let before = flow.left.replace((state.clone(), leaving));
        // Whoever goes back and presses again leaves with another state; the first is void.
        if let Some((before, _)) = before {
            inner.states.remove(&before);
        }
        inner.states.insert(state.clone(), link.to_owned());
        Ok(state)
    }

    /// The link whose cookie has to come with a state.
    pub(super) fn link_of_state(&self, state: &str) -> Option<String> {
        self.inner().states.get(state).cloned()
    }

    /// Whose login a link is, if it is still one.
    pub(super) fn whose(&self, link: &str) -> Option<Principal> {
        let inner = self.inner();
        let flow = inner.open(link)?;
        Some(flow.shown.account.principal.clone())
    }

    /// A login that came back has come to something, or to nothing.
    pub(super) fn finished(&self, notice: &str) {
        self.inner().finishing.remove(notice);
    }

    /// The browser came back. Whatever comes of it, neither the state nor the link is good again. Until it is
    /// [finished](Self::finished) it may still come to something.
    ///
    /// # Errors
    /// [`BadVisit`].
    pub(super) fn back(&self, state: &str, cookie: Option<&str>) -> Result<Back, BadVisit> {
        let now = Instant::now();
        let mut inner = self.inner();
        let link = inner.states.remove(state).ok_or(BadVisit::Gone)?;
        let flow = inner.forget(&link).ok_or(BadVisit::Gone)?;
        let (browser, (_, leaving)) = flow.browser.zip(flow.left).ok_or(BadVisit::Gone)?;
        if flow.until <= now {
            return Err(BadVisit::Gone);
        }
        if !cookie.is_some_and(|cookie| is_same(&browser, cookie)) {
            return Err(BadVisit::OtherBrowser);
        }
        inner.finishing.insert(flow.notice.clone());
        Ok(Back {
            shown: flow.shown,
            leaving,
            notice: flow.notice,
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn open(&self, link: &str) -> Option<&Flow> {
        let now = Instant::now();
        self.links.get(link).filter(|flow| flow.until > now)
    }

    fn forget(&mut self, link: &str) -> Option<Flow> {
        let flow = self.links.remove(link)?;
        self.notices.remove(&flow.notice);
        if let Some((state, _)) = &flow.left {
            self.states.remove(state);
        }
        if let Some(own) = self.accounts.get_mut(&flow.shown.account) {
            own.retain(|other| other != link);
            if own.is_empty() {
                self.accounts.remove(&flow.shown.account);
            }
        }
        Some(flow)
    }

    fn sweep(&mut self, now: Instant) {
        let over = self.links.iter().filter(|(_, flow)| flow.until <= now);
        let over: Vec<_> = over.map(|(link, _)| link.clone()).collect();
        for link in over {
            self.forget(&link);
        }
    }
}

/// 256 random bits, as text for URLs and cookies.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(super) fn random() -> String {
    let mut bytes = [0; 32];
    // INVARIANT: the operating system's random source does not fail after boot; a process without one must not serve.
    rand::fill(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The public half of PKCE (RFC 7636 4.2, S256).
pub(super) fn challenge(verifier: &SecretString) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.expose_secret().as_bytes()))
}

fn hash(text: &str) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    out
}

fn is_same(hashed: &[u8; 32], cookie: &str) -> bool {
    verify_slices_are_equal(hashed, &hash(cookie)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        connect::discover::{Login, Server},
        fetch::Address,
    };

    fn account(principal: &str) -> Account {
        Account {
            upstream: UpstreamId::parse("github").unwrap(),
            principal: Principal::new(principal),
        }
    }

    fn link(flows: &Flows, principal: &str) -> String {
        flows.link(&account(principal), &"Ana".into()).unwrap().0
    }

    fn leaving() -> Leaving {
        let at = Address::discovered("https://login.example/x").unwrap();
        Leaving {
            login: Arc::new(Login {
                server: Server {
                    issuer: "https://login.example".into(),
                    authorize: at.clone(),
                    token: at,
                    register: None,
                    revoke: None,
                    names_itself: true,
                    takes_documents: false,
                    methods: Vec::new(),
                    offline: false,
                },
                resource: None,
                scopes: Vec::new(),
            }),
            scopes: Vec::new(),
            client: Client {
                id: "c".into(),
                secret: None,
                method: None,
                registered: false,
            },
            verifier: random().into(),
            redirect: "https://usher.example/connect/callback".into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_comes_back_once_and_to_its_own_browser() {
        let flows = Flows::default();
        let one = link(&flows, "ana");
        let state = flows.leave(&one, "cookie", leaving()).unwrap();
        let back = flows.back(&state, Some("cookie")).unwrap();
        assert_eq!(back.shown.account, account("ana"));
        assert_eq!(
            flows.back(&state, Some("cookie")).err(),
            Some(BadVisit::Gone)
        );
        assert_eq!(
            flows.visit(&one, Some("cookie")).err(),
            Some(BadVisit::Gone)
        );

        for cookie in [None, Some("other"), Some("")] {
            let two = link(&flows, "ana");
            let state = flows.leave(&two, "cookie", leaving()).unwrap();
            assert_eq!(
                flows.back(&state, cookie).err(),
                Some(BadVisit::OtherBrowser)
            );
            // A state that somebody else has seen is good for nobody.
            assert_eq!(
                flows.back(&state, Some("cookie")).err(),
                Some(BadVisit::Gone)
            );
        }
        assert_eq!(flows.back("x", Some("cookie")).err(), Some(BadVisit::Gone));
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_belongs_to_the_first_browser_that_goes_on_with_it() {
        let flows = Flows::default();
        let one = link(&flows, "ana");
        assert_eq!(link(&flows, "ana"), one, "given again while nobody took it");
        assert!(flows.visit(&one, None).is_ok());
        let first = flows.leave(&one, "cookie", leaving()).unwrap();
        assert_eq!(flows.visit(&one, None).err(), Some(BadVisit::OtherBrowser));
        assert_eq!(
            flows.leave(&one, "other", leaving()),
            Err(BadVisit::OtherBrowser)
        );
        assert!(flows.visit(&one, Some("cookie")).is_ok());
        assert_ne!(link(&flows, "ana"), one, "another for another browser");
        let second = flows.leave(&one, "cookie", leaving()).unwrap();
        assert_eq!(
            flows.back(&first, Some("cookie")).err(),
            Some(BadVisit::Gone)
        );
        assert!(flows.back(&second, Some("cookie")).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn links_and_states_end_after_ten_minutes() {
        let flows = Flows::default();
        let one = link(&flows, "ana");
        tokio::time::advance(LIFE).await;
        assert_eq!(flows.visit(&one, None).err(), Some(BadVisit::Gone));
        assert!(flows.leave(&one, "cookie", leaving()).is_err());
        let two = link(&flows, "ana");
        tokio::time::advance(LIFE - Duration::from_secs(1)).await;
        let state = flows.leave(&two, "cookie", leaving()).unwrap();
        tokio::time::advance(LIFE).await;
        assert_eq!(
            flows.back(&state, Some("cookie")).err(),
            Some(BadVisit::Gone)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn links_are_bounded_for_each_and_for_all() {
        let flows = Flows::default();
        let mut links = Vec::new();
        for _ in 0..=LINKS_EACH {
            let one = link(&flows, "ana");
            flows.leave(&one, "cookie", leaving()).unwrap();
            links.push(one);
        }
        let gone = |link: &String| flows.visit(link, Some("cookie")).is_err();
        assert_eq!(links.iter().filter(|link| gone(link)).count(), 1);
        for n in 0..LINKS - LINKS_EACH {
            link(&flows, &format!("p{n}"));
        }
        assert!(flows.link(&account("one too many"), &"x".into()).is_none());
        tokio::time::advance(LIFE).await;
        assert!(flows.link(&account("one too many"), &"x".into()).is_some());
        let inner = flows.inner();
        assert!(inner.states.is_empty(), "swept with their links");
        assert_eq!((inner.accounts.len(), inner.notices.len()), (1, 1));
    }

    #[test]
    fn the_challenge_is_that_of_the_specification() {
        // RFC 7636, appendix B.
        let verifier = SecretString::from("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(
            challenge(&verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
