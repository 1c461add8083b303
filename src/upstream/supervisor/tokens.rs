//! Tests: upstreams that answer to nobody without a token: who lends theirs, and for how long.

use std::{sync::atomic::AtomicBool, time::Duration};

use super::{
    tests::{healthy, serving, started, started_on},
    *,
};
use crate::{
    call::{Assertion, Identity, IdentityKind},
    connect::{
        Connections,
        spec::{AccountSpec, ClientSpec, ConnectSpec, ServerSpec::Discovered},
    },
    fetch::{Address, Fetcher, TlsSpec},
    logged::Logged,
    tasks::Tasks,
    upstream::{
        State,
        credentials::{Credentials, Loan},
        scripted::{Play, Sent, an_address, terms},
        spec::{
            ClientAuth, Endpoint, Grant, GrantSpec, ListsAs, ServerSpec, SubjectType,
            TokenEndpoint, UpstreamSpec,
        },
        terms::Terms,
    },
};

/// An upstream that reads each principal's lists with their own token; nobody gives any out.
fn each_their_own() -> UpstreamSpec {
    let mut spec = an_address();
    let Endpoint::Http(http) = &mut spec.endpoint else {
        panic!()
    };
    let at = Address::configured("http://127.0.0.1:1/token", false).unwrap();
    http.grant = Some(Box::new(GrantSpec {
        grant: Grant::TokenExchange {
            subject: SubjectType::AccessToken,
        },
        server: ServerSpec {
            token_endpoint: TokenEndpoint::Url(at),
            client_id: "usher".into(),
            client_secret: "secret".into(),
            client_auth: ClientAuth::Basic,
        },
        resource: "https://u.example/mcp".into(),
        audience: None,
        scopes: Vec::new(),
        lists: ListsAs::Principal,
        ca: None,
    }));
    spec
}

fn somebody(name: &str) -> Arc<Identity> {
    Arc::new(Identity {
        assertion: Some(Assertion(name.to_owned().into())),
        ..Identity::named(IdentityKind::User, name)
    })
}

/// SECURITY EGR-10: whoever lends a token is forgotten when nothing is reached with it any more.
#[tokio::test(start_paused = true)]
async fn a_loan_ends_with_what_it_was_for_whoever_ends_that() {
    let spec = each_their_own();
    let terms = terms(&spec);
    let processes = serving(|_, _| Play::Hang);
    let (_sink, upstream, _tasks) = started_on(&spec, Arc::clone(&terms), &processes);
    let loan = terms.credentials.as_ref().map(Credentials::loan).unwrap();
    let (ana, ben) = (somebody("ana"), somebody("ben"));
    while processes.made().is_empty() {
        tokio::task::yield_now().await;
    }
    loan.offer(&ana);
    assert!(loan.lender().is_some(), "it is being reached");
    upstream.disable();
    while upstream.status().state != State::Disabled {
        tokio::task::yield_now().await;
    }
    assert!(!loan.is_open());
    assert_eq!(Arc::strong_count(&ana), 1);
    // Nor does anybody lend to what is not to be used: only whoever will read their lists knows them.
    let _claim = upstream.claim(&ben);
    assert_eq!(Arc::strong_count(&ben), 2);
}

/// What is as it should be is no warning, and told once until something else happens.
#[tokio::test(start_paused = true)]
async fn that_nobody_has_come_yet_is_told_once_and_not_as_a_credential_that_was_refused() {
    let (down, wants) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(true)),
    );
    let script = {
        let (down, wants) = (Arc::clone(&down), Arc::clone(&wants));
        move |_, sent: &Sent| match (down.load(Ordering::SeqCst), wants.load(Ordering::SeqCst)) {
            (true, _) => Play::Fail(UpstreamError::unreached("down")),
            (false, true) => Play::Fail(UpstreamError::denied(401)),
            (false, false) => healthy(0, sent),
        }
    };
    let spec = an_address();
    let account = AccountSpec {
        address: "https://u.example/mcp".into(),
        tls: TlsSpec::default(),
        resource: None,
        server: Discovered,
        client: ClientSpec::Given {
            id: "c".into(),
            secret: None,
        },
        scopes: None,
    };
    let connect = ConnectSpec {
        accounts: [(spec.id.clone(), account)].into(),
        ..ConnectSpec::default()
    };
    let tasks = Tasks::new();
    let connections = Connections::open(connect, Fetcher::new(None).unwrap(), &tasks).unwrap();
    let (bounds, interest) = (Default::default(), Arc::default());
    let terms = Terms::with(&spec, bounds, interest, tasks.clone(), Some(connections));
    let logged = Logged::new();
    let told = |words: &str| logged.text().matches(words).count();
    let (_sink, upstream, _tasks) = started_on(&spec, terms, &serving(script));
    let waits = "nobody has logged in yet; its lists come with the first login";
    sleep(Duration::from_secs(600)).await;
    assert_eq!((told(waits), told("WARN")), (1, 0), "{}", logged.text());
    let status = upstream.status();
    assert_eq!(status.state, State::Away);
    assert!(status.awaits, "nobody is to be called for it");
    assert!(status.error.unwrap().words.ends_with(waits));
    down.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(100)).await;
    assert!(told("unavailable: down") >= 1);
    let status = upstream.status();
    assert!(status.state == State::Away && !status.awaits);
    down.store(false, Ordering::SeqCst);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(told(waits), 2);
    assert!(upstream.status().awaits);
    wants.store(false, Ordering::SeqCst);
    sleep(Duration::from_secs(100)).await;
    let status = upstream.status();
    assert!(status.state == State::Ready && !status.awaits);
    assert_eq!(told("refused our credential"), 0);
}

/// Somebody came, and with what they have it is not reached either.
#[tokio::test(start_paused = true)]
async fn what_went_wrong_with_a_token_that_was_lent_is_told_as_that() {
    let spec = each_their_own();
    let logged = Logged::new();
    let processes = serving(|_, _| Play::Fail(UpstreamError::denied(401)));
    let (_sink, upstream, _tasks) = started(&spec, &processes);
    upstream.settled().await;
    let text = logged.text();
    assert!(
        text.contains("INFO") && text.contains("nobody has come with a token yet"),
        "{text}"
    );
    let _claim = upstream.claim(&somebody("ana"));
    sleep(Duration::from_secs(5)).await;
    let text = logged.text();
    assert!(text.contains("upstream cannot be reached"), "{text}");
}

/// SECURITY 6
#[tokio::test(start_paused = true)]
async fn attempts_are_spaced_however_many_come_whose_tokens_are_refused() {
    let processes = serving(|_, _| Play::Fail(UpstreamError::denied(401)));
    let (_sink, upstream, _tasks) = started(&each_their_own(), &processes);
    upstream.settled().await;
    let before = upstream.status().restarts;
    let began = Instant::now();
    let mut comers = 0;
    while began.elapsed() < Duration::from_secs(10) {
        let _claim = upstream.claim(&somebody(&format!("u{comers}")));
        comers += 1;
        sleep(Duration::from_millis(50)).await;
    }
    let attempts = upstream.status().restarts - before;
    assert!((2..=10).contains(&attempts), "{attempts}, by {comers}");
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_and_comes_again_and_again_keeps_nobody_else_out() {
    let loan = Loan::default();
    let (ana, ben) = (somebody("ana"), somebody("ben"));
    let lends = |who| {
        loan.lender()
            .is_some_and(|lender| Arc::ptr_eq(&lender, who))
    };
    loan.offer(&ana);
    let reaching = loan.reach();
    assert!(lends(&ana));
    loan.lent(&ana);
    // Also while it is still being found out.
    loan.offer(&ben);
    loan.offer(&ana);
    assert!(!reaching.done(false));
    loan.offer(&ana);
    let reaching = loan.reach();
    assert!(lends(&ben));
    loan.lent(&ben);
    loan.offer(&ana);
    assert!(!reaching.done(false));
    // Nobody else has come.
    let reaching = loan.reach();
    assert!(lends(&ana));
    reaching.done(true);
    drop(loan.reach());
    assert_eq!((Arc::strong_count(&ana), Arc::strong_count(&ben)), (1, 1));
}

/// What keeps the gateway out whoever asks may be what stands in front of the server.
#[tokio::test(start_paused = true)]
async fn a_403_is_no_login_that_nobody_has_made_yet() {
    let logged = Logged::new();
    let processes = serving(|_, _| Play::Fail(UpstreamError::denied(403)));
    let (_sink, upstream, _tasks) = started(&each_their_own(), &processes);
    upstream.settled().await;
    let text = logged.text();
    assert!(
        text.contains("WARN") && text.contains("HTTP 403") && !text.contains("nobody has"),
        "{text}"
    );
}

/// The gateway's own look is with nobody's token, and proves nothing.
#[tokio::test(start_paused = true)]
async fn a_server_in_doubt_that_wants_tokens_now_is_reached_anew_with_somebodys() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let processes = serving(move |number, sent| match (number, sent.method.as_str()) {
        (0, "tools/list") => match asked.fetch_add(1, Ordering::SeqCst) {
            0 => healthy(0, sent),
            1 => Play::Status(404),
            _ => Play::Fail(UpstreamError::denied(401)),
        },
        (0, _) => healthy(0, sent),
        _ => Play::Fail(UpstreamError::denied(401)),
    });
    let (sink, upstream, _tasks) = started(&each_their_own(), &processes);
    upstream.settled().await;
    assert_eq!(upstream.status().state, State::Ready);
    upstream.refresh();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(upstream.status().state, State::Away);
    assert!(sink.last().away);
}
