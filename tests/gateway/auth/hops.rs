//! No credential of a client crosses the gateway (SECURITY EGR-1), whatever hop it came by.

use base64::Engine as _;

use super::before;
use crate::harness::{Authority, Client, Revision, Upstream, resource, tool};

/// A word in the token that is nowhere else.
const MARK: &str = "planted-marker-7f3a";

/// What text may hold a credential as: itself, base64, hexadecimal, percent-coded.
fn spellings(credential: &str) -> Vec<String> {
    let base64 = base64::engine::general_purpose::STANDARD_NO_PAD.encode(credential);
    let hex: String = credential
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let percent: String = credential
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    vec![credential.to_owned(), base64, hex, percent]
}

#[tokio::test]
async fn egr_1_no_credential_of_a_client_reaches_an_upstream_in_any_revision() {
    let authority = Authority::start().await;
    for upstream in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let notes = Upstream::http(upstream)
            .tools([tool("t")])
            .resources([resource("note://1")]);
        let gateway = before(&notes, &authority, |_| {}).await;
        for revision in Revision::ALL {
            let token = authority.token("ana", &format!(r#","jti":"{MARK}""#));
            let headers = [
                ("authorization", format!("Bearer {token}")),
                ("cookie", format!("theme={MARK}")),
                ("proxy-authorization", format!("Basic {MARK}")),
                ("x-forwarded-authorization", MARK.to_owned()),
                ("x-anything", MARK.to_owned()),
            ];
            let client = Client::connect_with(gateway.address, "/mcp", revision, "{}", &headers);
            let client = client.await.unwrap();
            assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
            client.all("resources/list", "uri").await;
            let signature = token.rsplit_once('.').unwrap().1;
            for method in [
                "initialize",
                "server/discover",
                "tools/list",
                "tools/call",
                "resources/list",
                "notifications/initialized",
            ] {
                for heard in notes.heard(method) {
                    let all = format!("{:?} {}", heard.headers, heard.params);
                    for credential in [MARK, token.as_str(), signature] {
                        for spelling in spellings(credential) {
                            assert!(!all.contains(&spelling), "{revision} {method}: {all}");
                        }
                    }
                    assert!(!heard.headers.contains_key("authorization"), "{method}");
                }
            }
        }
        assert!(notes.heard("tools/call").len() >= Revision::ALL.len());
    }
}

/// A gateway as a process that writes down everything, and what it wrote.
struct Talkative {
    process: tokio::process::Child,
    address: std::net::SocketAddr,
    log: std::path::PathBuf,
}

impl Talkative {
    async fn start(directory: &std::path::Path, configuration: &str) -> Self {
        let log = directory.join("log");
        let file = directory.join("usher.yaml");
        std::fs::write(&file, configuration).unwrap();
        let out = || {
            std::fs::File::options()
                .create(true)
                .append(true)
                .open(&log)
                .unwrap()
        };
        let process = tokio::process::Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(["--log", "trace", "serve", "-c"])
            .arg(&file)
            .stdout(out())
            .stderr(out())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let address = crate::harness::eventually("it listens", || async {
            let told = std::fs::read_to_string(&log).ok()?;
            let (_, url) = told.split_once("usher is ready at http://")?;
            url.split_once("/mcp")?.0.parse().ok()
        })
        .await;
        Self {
            process,
            address,
            log,
        }
    }

    async fn end(mut self) -> String {
        let id = nix::unistd::Pid::from_raw(self.process.id().unwrap().try_into().unwrap());
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert!(self.process.wait().await.unwrap().success());
        std::fs::read_to_string(self.log).unwrap()
    }
}

// SECURITY 10, AUTHN-4
#[tokio::test]
async fn no_credential_is_in_any_answer_log_or_file_whatever_became_of_it() {
    let authority = Authority::start().await;
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let directory = tempfile::TempDir::new().unwrap();
    let secret = "planted-secret-0c51-of-more-than-thirty-two-bytes";
    let secret_file = directory.path().join("secret");
    std::fs::write(&secret_file, secret).unwrap();
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret_file, closed).unwrap();
    let everything = "permit(principal, action, resource);";
    std::fs::write(directory.path().join("all.cedar"), everything).unwrap();
    let configuration = format!(
        "listen: {{ address: \"127.0.0.1:0\" }}\nauth:\n  jwt: [{{ audience: [\"{}/mcp\"], issuer: \"{}\" }}]\n  keys: {{ file: keys.json, secret: \"${{file:secret}}\" }}\n  introspection: {{ url: \"{}/introspect\", client_id: usher, client_secret: \"${{file:secret}}\", issuer: \"{}\" }}\npolicy: {{ dir: . }}\nupstreams: {{ notes: {{ {} }} }}\n",
        crate::harness::RESOURCE,
        authority.issuer,
        "http://127.0.0.1:9",
        authority.issuer,
        notes.place(),
    );
    let gateway = Talkative::start(directory.path(), &configuration).await;
    let good = authority.token("ana", &format!(r#","jti":"{MARK}-good""#));
    let late = authority.token_until("ana", 1_000, &format!(r#","jti":"{MARK}-late""#));
    let opaque = format!("{MARK}-opaque");
    let key = format!("usher_000000000000_{MARK}");
    let mut credentials = vec![opaque.clone(), key.clone(), secret.to_owned()];
    for token in [&good, &late] {
        credentials.push(token.rsplit_once('.').unwrap().1.to_owned());
        credentials.push(token.split('.').nth(1).unwrap().to_owned());
    }
    // It listens before its server was asked what there is.
    crate::harness::eventually("the tool is listed", || async {
        let headers = [("authorization", format!("Bearer {good}"))];
        let revision = Revision::V2026_07_28;
        let client = Client::connect_with(gateway.address, "/mcp", revision, "{}", &headers);
        let answer = client.await.unwrap().call("notes_t", "{}").await;
        format!("{answer:?}").contains("called t").then_some(())
    })
    .await;
    let mut answers = String::new();
    for token in [&good, &late, &opaque, &key] {
        let bearer = ("authorization", format!("Bearer {token}"));
        let ways = [
            ("/mcp".to_owned(), vec![bearer.clone()]),
            ("/mcp".to_owned(), vec![("x-api-key", token.clone())]),
            (
                "/mcp".to_owned(),
                vec![bearer, ("x-api-key", token.clone())],
            ),
            (
                "/mcp".to_owned(),
                vec![("cookie", format!("token={token}"))],
            ),
            (format!("/mcp?access_token={token}"), vec![]),
        ];
        for (path, headers) in ways {
            let revision = Revision::V2026_07_28;
            let client = Client::connect_with(gateway.address, &path, revision, "{}", &headers);
            let answer = client.await.unwrap().call("notes_t", "{}").await;
            answers += &format!("{answer:?}\n");
        }
    }
    assert!(answers.contains("called t"), "{answers}");
    let mut all = gateway.end().await + &answers;
    assert!(
        all.contains("a request was not admitted"),
        "nothing was logged: {all}"
    );
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        if path != secret_file {
            all += &std::fs::read_to_string(path).unwrap();
        }
    }
    for credential in credentials {
        for spelling in spellings(&credential) {
            let line = all.lines().find(|line| line.contains(&spelling));
            assert_eq!(line, None, "a credential is shown");
        }
    }
}
