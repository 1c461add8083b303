//! What does it cost to know who calls: a token that was verified before, one that was not, and an API key?
//!
//! Budget: at most 1 µs for a token that was verified before.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "keys of our own are well-formed; how long the token is belongs to the figure"
)]

use std::{hint::black_box, sync::Arc, time::Duration};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use criterion::{Criterion, criterion_group, criterion_main};
use jsonwebtoken::{Algorithm, EncodingKey, crypto::sign};
use secrecy::ExposeSecret as _;
use usher::auth::{
    Asked, Authenticator, KeySet, Presented, Verdict,
    keys::{KeyFile, KeyTable, KeyWish, create},
    spec::{ALGORITHMS, AuthSpec, ClaimNames, IssuerSpec, KeySource, KeysSpec},
};

const NOW: u64 = 1_800_000_000;
const ISSUER: &str = "https://id.example.com";
const RESOURCE: &str = "https://mcp.example.com/mcp";

/// An authenticator that knows one issuer's key and one API key; a token of each.
fn scene() -> (Authenticator, String, String) {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("the key");
    let x = URL_SAFE_NO_PAD.encode(pair.public_key());
    let set = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"k","x":"{x}"}}]}}"#);
    let claims = format!(
        r#"{{"iss":"{ISSUER}","sub":"ana","aud":"{RESOURCE}","exp":{},"scope":"mcp tools","azp":"client","groups":["engineering","on-call","readers"],"jti":"{}"}}"#,
        NOW + 600,
        "j".repeat(400)
    );
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let message = format!(
        "{}.{}",
        part(r#"{"alg":"EdDSA","kid":"k","typ":"at+jwt"}"#),
        part(&claims)
    );
    let key = EncodingKey::from_ed_der(pkcs8.as_ref());
    let signature = sign(message.as_bytes(), &key, Algorithm::EdDSA).expect("signed");
    let secret: secrecy::SecretString = "0123456789abcdef0123456789abcdef".into();
    let spec = AuthSpec {
        resource: "https://mcp.example.com".into(),
        issuers: vec![IssuerSpec {
            issuer: ISSUER.into(),
            audiences: Vec::new(),
            algorithms: ALGORITHMS.to_vec(),
            keys: KeySource::File("jwks.json".into()),
            refresh: Duration::from_secs(45),
            lifetime: Duration::from_secs(3_600),
            claims: ClaimNames::default(),
        }],
        keys: Some(KeysSpec {
            file: "keys.json".into(),
            secret: secret.clone(),
        }),
        certificates: None,
        introspection: None,
        anonymous: false,
        required_scopes: Arc::new([]),
        supported_scopes: Vec::new(),
        failures_per_minute: 10,
        limits: Default::default(),
    };
    let authenticator = Authenticator::new(spec);
    authenticator.put_keys(0, KeySet::parse(set.into()).expect("keys"), NOW + 3_600);
    let wish = KeyWish {
        name: "ci".into(),
        owner: "ana".into(),
        ..KeyWish::default()
    };
    let api_key = create(wish, &secret, NOW);
    let file = KeyFile {
        keys: vec![api_key.record],
    };
    authenticator.put_api_keys(KeyTable::of(&file));
    let text = api_key.text.expose_secret().to_owned();
    (authenticator, format!("{message}.{signature}"), text)
}

fn authenticate(criterion: &mut Criterion) {
    let (authenticator, token, key) = scene();
    let audiences = [Arc::from(RESOURCE)];
    let judge = |authenticator: &Authenticator, text: &str| {
        let presented = Presented {
            bearer: Some(text),
            ..Presented::default()
        };
        let verdict = authenticator.judge(presented, &audiences, Asked::First, NOW);
        assert!(matches!(verdict, Verdict::Proved(_)));
        verdict
    };
    println!("a token of {} bytes", token.len());
    criterion.bench_function("a token verified before", |bencher| {
        bencher.iter(|| judge(&authenticator, black_box(&token)));
    });
    criterion.bench_function("an API key", |bencher| {
        bencher.iter(|| judge(&authenticator, black_box(&key)));
    });
    criterion.bench_function("a token seen for the first time", |bencher| {
        bencher.iter_batched(
            || scene().0,
            |other| {
                let presented = Presented {
                    bearer: Some(black_box(&token)),
                    ..Presented::default()
                };
                // Of another key: the signature is checked, and does not fit.
                other.judge(presented, &audiences, Asked::First, NOW)
            },
            criterion::BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, authenticate);
criterion_main!(benches);
