//! Values planted in every secret slot of this hop, and a search for them in all that comes out (SECURITY 10).

use std::{
    io,
    sync::{Arc, Mutex},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use tracing_subscriber::fmt::MakeWriter;

use super::{
    principals::{side, somebody},
    *,
};

const BEARER: &str = "mk1-bearer-7f3a9";
const PASSWORD: &str = "mk2-passw/rd+7f3a9";
const OURS_THERE: &str = "mk3-client-s&cret-7f3a9";
const SUBJECT: &str = "mk4-subject-7f3a9";
const PRESENTED: &str = "mk5-presented-7f3a9";
/// In every token that the scripted issuer gives to the gateway itself; in those for others stands their subject.
const GIVEN: &str = "t0k-service-";

/// Everything that is written.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Written {
    /// Every log line of this thread, at every level, for as long as the guards live; with one line at the beginning.
    pub(crate) fn hears_everything(&self) -> impl Drop + use<> {
        // While there is one subscriber only, what other tests' threads log first is taken for unwanted everywhere.
        struct Hearing(
            #[expect(dead_code, reason = "held")] tracing::Dispatch,
            Option<tracing::subscriber::DefaultGuard>,
        );

        impl Drop for Hearing {
            fn drop(&mut self) {
                self.1.take();
            }
        }

        let second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(self.clone())
            .finish();
        // Every task of such a test runs on its thread.
        let logs = tracing::subscriber::set_default(subscriber);
        tracing::trace!("the log is heard");
        Hearing(second, Some(logs))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    pub(crate) fn note(&self, text: &str) {
        self.0.lock().unwrap().extend_from_slice(text.as_bytes());
    }
}

/// Whether a text holds a marker, plainly or in an encoding. Of Base64 the part is looked for that does not depend on what
/// stands before and after.
pub(crate) fn finds(text: &str, marker: &str) -> Option<String> {
    let bytes = marker.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = form_urlencoded::byte_serialize(bytes).collect();
    let mut spellings = vec![marker.to_owned(), hex.to_uppercase(), hex, percent];
    for before in ["", "x", "xx"] {
        let padded = format!("{before}{marker}");
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let encoded = engine.encode(&padded);
            let from = before.len().div_ceil(3) * 4;
            spellings.push(encoded[from..encoded.len() - 2].to_owned());
        }
    }
    spellings.push(STANDARD.encode(bytes));
    spellings
        .into_iter()
        .find(|spelling| text.contains(spelling.as_str()))
}

#[test]
fn a_marker_is_found_in_every_spelling() {
    for text in [
        format!("a {SUBJECT} b"),
        STANDARD.encode(format!("Bearer {SUBJECT} and more")),
        URL_SAFE_NO_PAD.encode(format!("a{SUBJECT}")),
        SUBJECT.bytes().map(|byte| format!("{byte:02x}")).collect(),
        form_urlencoded::byte_serialize(PASSWORD.as_bytes()).collect(),
    ] {
        let found = finds(&text, SUBJECT).or_else(|| finds(&text, PASSWORD));
        assert!(found.is_some(), "{text}");
    }
    assert_eq!(finds("nothing of it", SUBJECT), None);
}

#[tokio::test]
async fn no_credential_of_this_hop_is_in_any_answer_log_or_file() {
    let written = Written::default();
    let _logs = written.hears_everything();
    let vars = [
        ("BEARER", BEARER),
        ("PASSWORD", PASSWORD),
        ("SECRET", OURS_THERE),
    ];
    let issuer = Issuer::start();
    let auths = [
        "bearer: \"${env:BEARER}\"".to_owned(),
        "basic: { user: \"${env:BEARER}\", password: \"${env:PASSWORD}\" }".to_owned(),
        "header: { name: x-key, value: \"${env:BEARER}\" }".to_owned(),
        grant("client_credentials", &issuer),
        grant("token_exchange", &issuer),
    ];
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for auth in &auths {
            let notes = Upstream::http(revision).tools([tool("t")]);
            drive(&written, &notes, auth, &vars, revision).await;
        }
    }
    // A server that says what it was asked, in all that it can say.
    issuer.answer(400, r#"{"error":"$asked","error_description":"$asked"}"#);
    let exchange = grant("token_exchange", &issuer);
    // Where it is up without a token of the gateway's own, the exchange itself is what fails.
    let open = exchange.replace("scopes:", "lists: nobody, scopes:");
    for auth in &[auths[3].clone(), exchange, open] {
        let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
        drive(&written, &notes, auth, &vars, Revision::V2026_07_28).await;
    }
    let text = written.text();
    for told in ["the log is heard", "no token for an upstream"] {
        assert!(text.contains(told), "the log is not heard: {told}");
    }
    for marker in [BEARER, PASSWORD, OURS_THERE, SUBJECT, PRESENTED, GIVEN] {
        if let Some(spelling) = finds(&text, marker) {
            let at = text.find(&spelling).unwrap();
            let around = &text[at.saturating_sub(300)..(at + 100).min(text.len())];
            panic!("`{marker}` is there as `{spelling}`: …{around}…");
        }
    }
}

/// Calls that go well and calls that go wrong; whatever comes back, is said of it or lies in a file is noted.
async fn drive(
    written: &Written,
    notes: &Upstream,
    auth: &str,
    vars: &[(&str, &str)],
    revision: Revision,
) {
    let gateway = Secretive::start(notes, auth, vars).await;
    let client = gateway.client(revision).await;
    let people = side(notes, auth, vars).await;
    for status in [None, Some(401), Some(403), Some(302), Some(500)] {
        if let Some(status) = status {
            notes.now_on("tools/call", move |_| Play::Status(status));
        }
        let presented = format!("Bearer {PRESENTED}");
        let ask = client.call("notes_t", "{}");
        let answer = ask.header("authorization", &presented).await;
        written.note(&format!("{:?} {}", answer.headers, answer.body));
        let outcome = people.call(&somebody("ana", Some(SUBJECT)), revision).await;
        written.note(&format!("{outcome:?}"));
    }
    written.note(&format!("{:?}", gateway.app.statuses()));
    let (plan, directory) = plan(notes, auth, vars);
    written.note(&format!("{plan:?}"));
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap().path();
        if file.is_file() {
            written.note(&std::fs::read_to_string(file).unwrap());
        }
    }
}
