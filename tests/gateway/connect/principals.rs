//! Whose a login is: fixed when its link is made, whoever finishes it (PROTOCOL F7, F10, F11, SECURITY I2).

use std::{collections::HashMap, sync::Arc, time::Duration};

use secrecy::ExposeSecret;
use tokio::time::Instant;
use usher::{
    call::Principal,
    connect::{
        Account, BadVisit, Callback, Connections, Refusal, Settled,
        spec::{AccountSpec, ClientSpec, ConnectSpec, ServerSpec},
    },
    fetch::{Fetcher, TlsSpec},
    protocol::UpstreamId,
    tasks::Tasks,
};

use super::{Browser, LoginServer};

// Links are random: of names in them only those can be told from chance that hold a character that no link has, and that no
// address escapes.
const ANA: &str = "ana.example";
const BOB: &str = "bob.example";

struct Scene {
    server: LoginServer,
    connections: Connections,
    tasks: Tasks,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

fn account(principal: &str) -> Account {
    let upstream = UpstreamId::parse("github").unwrap();
    Account::of(&upstream, &Principal::new(principal))
}

impl Scene {
    fn set() -> Self {
        let server = LoginServer::start();
        let github = AccountSpec {
            address: "https://mcp.example/mcp".into(),
            tls: TlsSpec::default(),
            resource: None,
            server: ServerSpec::Issuer(server.issuer()),
            client: ClientSpec::Given {
                id: "usher".into(),
                secret: Some("CLIENT-SECRET".into()),
            },
            scopes: None,
        };
        let spec = ConnectSpec {
            accounts: [(UpstreamId::parse("github").unwrap(), github)].into(),
            url: Some("https://usher.example".into()),
            ..ConnectSpec::default()
        };
        let tasks = Tasks::new();
        let fetcher = Fetcher::new(None).unwrap();
        let connections = Connections::open(spec, fetcher, &tasks).unwrap();
        Self {
            server,
            connections,
            tasks,
        }
    }

    /// A link for this principal, and the notice of it.
    fn link(&self, principal: &str) -> (String, Arc<str>) {
        let link = self
            .connections
            .link(&account(principal), &principal.into());
        let link = link.unwrap();
        let (base, id) = link.url.split_once("?login=").unwrap();
        assert_eq!(base, "https://usher.example/connect");
        let what = "nobody is named in a link";
        assert!(!link.url.contains(principal), "{what}: {}", link.url);
        (id.to_owned(), link.notice)
    }

    /// Goes on with a link in the browser of this cookie, as far as the authorization server: what comes back.
    async fn gone(&self, link: &str, cookie: &str) -> Callback {
        let at = self.connections.go_on(link, cookie).await.unwrap();
        let back = Browser::default().sent_back(&at).await;
        let (base, query) = back.split_once('?').unwrap();
        assert_eq!(base, "https://usher.example/connect/callback");
        let mut said: HashMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        Callback {
            state: said.remove("state").unwrap(),
            code: said.remove("code"),
            error: None,
            iss: said.remove("iss"),
        }
    }
}

#[tokio::test]
async fn what_one_principal_is_given_is_no_other_principals() {
    let scene = Scene::set();
    let (ana, bob) = (account(ANA), account(BOB));
    let (link, notice) = scene.link(ANA);
    let (other, others) = scene.link(BOB);
    assert!(link != other && notice != others);
    let back = scene.gone(&link, "anas browser").await;
    let done = scene
        .connections
        .come_back(back, Some("anas browser"))
        .await;
    assert_eq!(&*done.unwrap().who, ANA);
    let grant = scene.connections.grant(&ana).await.unwrap().unwrap();
    assert_eq!(grant.access.expose_secret(), &scene.server.tokens()[0]);
    assert!(scene.connections.grant(&bob).await.unwrap().is_none());
    let soon = Instant::now() + Duration::from_millis(20);
    let settled = |whose: Account, notice: Arc<str>| {
        let connections = &scene.connections;
        async move { connections.settled(&whose, &notice, None, soon).await }
    };
    assert_eq!(settled(ana.clone(), notice.clone()).await, Settled::Granted);
    assert_eq!(settled(bob.clone(), others.clone()).await, Settled::Pending);
    // Bob cannot end Ana's, by any name that he knows.
    scene.connections.give_up(&bob, &notice);
    assert!(scene.connections.revoke(&bob).await.unwrap().is_none());
    assert!(scene.connections.grant(&ana).await.unwrap().is_some());
    let taken_back = scene.server.told("/revoke").len();
    let told = scene.connections.revoke(&ana).await.unwrap();
    assert!(told.unwrap().is_ok());
    assert!(scene.connections.grant(&ana).await.unwrap().is_none());
    let told = scene.server.told("/revoke");
    assert_eq!(told.len(), taken_back + 1);
    assert!(told[0].form["token"].starts_with("REFRESH-"));
}

#[tokio::test]
async fn the_state_of_one_login_ends_no_other() {
    let scene = Scene::set();
    let (anas, _) = scene.link(ANA);
    let (bobs, _) = scene.link(BOB);
    let of_ana = scene.gone(&anas, "anas browser").await;
    let of_bob = scene.gone(&bobs, "bobs browser").await;
    // Bob has Ana's browser come back with his state and code, so that what she does next would be done for him; or takes her
    // code to his own.
    let swapped = scene
        .connections
        .come_back(of_bob.clone(), Some("anas browser"))
        .await;
    assert!(matches!(
        swapped,
        Err(Refusal::Visit(BadVisit::OtherBrowser))
    ));
    let mixed = Callback {
        code: of_bob.code,
        ..of_ana
    };
    // The code was made for another challenge: the server takes it from nobody but who left for it.
    let mixed = scene
        .connections
        .come_back(mixed, Some("anas browser"))
        .await;
    assert!(matches!(mixed, Err(Refusal::Failed(_))), "{mixed:?}");
    for principal in [ANA, BOB] {
        let grant = scene.connections.grant(&account(principal)).await;
        assert!(grant.unwrap().is_none(), "{principal}");
    }
    assert!(scene.server.tokens().is_empty());
}

#[tokio::test]
async fn over_https_a_cookie_is_tied_to_this_host_and_a_document_says_who_we_are() {
    let scene = Scene::set();
    let (link, _) = scene.link(ANA);
    let name = scene.connections.cookie_of(&link);
    assert!(name.starts_with("__Host-usher-login-"), "{name}");
    assert!(!link.contains(&name[19..]), "nor does it name its link");
    let document = scene.connections.document().unwrap();
    let document: serde_json::Value = serde_json::from_str(document.as_str()).unwrap();
    assert_eq!(
        document["client_id"],
        "https://usher.example/connect/client.json"
    );
    assert_eq!(
        document["redirect_uris"][0],
        "https://usher.example/connect/callback"
    );
    assert_eq!(document["token_endpoint_auth_method"], "none");
}

#[tokio::test]
async fn nothing_of_a_secret_shows_in_debug_output() {
    let scene = Scene::set();
    let (link, _) = scene.link(ANA);
    let back = scene.gone(&link, "anas browser").await;
    scene
        .connections
        .come_back(back, Some("anas browser"))
        .await
        .unwrap();
    let grant = scene.connections.current(&account(ANA)).unwrap();
    let shown = format!(
        "{:?} {grant:?} {:?}",
        scene.connections,
        scene.connections.list()
    );
    for marker in ["ACCESS", "REFRESH", "CLIENT-SECRET", &link] {
        assert!(!shown.contains(marker), "{shown}");
    }
}
