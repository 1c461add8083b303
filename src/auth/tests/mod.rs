//! Tokens that are taken and tokens that are not, each for its one reason.

mod keys;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, crypto::sign};

use super::{
    spec::{ALGORITHMS, ClaimNames, KeySource, ProofLimits},
    *,
};
use crate::{
    call::{End, IdentityKind},
    metrics::{Bound, seen},
};

const NOW: u64 = 1_800_000_000;
const ISSUER: &str = "https://id.example.com";
const RESOURCE: &str = "https://mcp.example.com/mcp";

/// Somebody who signs.
struct Signer {
    kid: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
    jwk: String,
}

impl Signer {
    fn ed(kid: &'static str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        Self {
            kid,
            algorithm: Algorithm::EdDSA,
            key: EncodingKey::from_ed_der(pkcs8.as_ref()),
            jwk: format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"{kid}","x":"{x}","use":"sig"}}"#),
        }
    }

    fn es(kid: &'static str) -> Self {
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &SystemRandom::new()).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref()).unwrap();
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        Self {
            kid,
            algorithm: Algorithm::ES256,
            key: EncodingKey::from_ec_der(pkcs8.as_ref()),
            jwk: format!(
                r#"{{"kty":"EC","crv":"P-256","kid":"{kid}","x":"{x}","y":"{y}","alg":"ES256"}}"#
            ),
        }
    }

    fn sign(&self, header: &str, claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let message = format!("{}.{}", part(header), part(claims));
        let signature = sign(message.as_bytes(), &self.key, self.algorithm).unwrap();
        format!("{message}.{signature}")
    }

    fn header(&self) -> String {
        let algorithm = format!("{:?}", self.algorithm);
        format!(
            r#"{{"alg":"{algorithm}","typ":"at+jwt","kid":"{}"}}"#,
            self.kid
        )
    }

    fn token(&self, claims: &str) -> String {
        self.sign(&self.header(), claims)
    }
}

fn claims(more: &str) -> String {
    let exp = NOW + 600;
    format!(r#"{{"iss":"{ISSUER}","sub":"ana","aud":"{RESOURCE}","exp":{exp}{more}}}"#)
}

fn issuer() -> IssuerSpec {
    IssuerSpec {
        issuer: ISSUER.into(),
        audiences: Vec::new(),
        algorithms: ALGORITHMS.to_vec(),
        keys: KeySource::File("keys.json".into()),
        refresh: Duration::from_secs(45),
        lifetime: Duration::from_secs(3_600),
        claims: ClaimNames::default(),
    }
}

fn spec(issuers: Vec<IssuerSpec>) -> AuthSpec {
    AuthSpec::new("https://mcp.example.com", issuers)
}

fn set(signers: &[&Signer]) -> KeySet {
    let keys: Vec<_> = signers.iter().map(|signer| signer.jwk.as_str()).collect();
    KeySet::parse(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).into()).unwrap()
}

fn knowing(signers: &[&Signer]) -> Authenticator {
    let authenticator = Authenticator::new(spec(vec![issuer()]));
    authenticator.put_keys(0, set(signers), NOW + 3_600);
    authenticator
}

fn judge(authenticator: &Authenticator, token: &str, now: u64) -> Verdict {
    let presented = Presented {
        bearer: Some(token),
        ..Presented::default()
    };
    authenticator.judge(presented, &[RESOURCE.into()], Asked::First, now)
}

fn who(verdict: Verdict) -> Arc<Identity> {
    match verdict {
        Verdict::Proved(identity) => identity,
        Verdict::Refused(error) => panic!("{error}"),
        Verdict::NeedsKeys(_) | Verdict::NeedsIntrospection => panic!("not decided"),
    }
}

fn is_refused(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Refused(AuthError::Invalid(_)))
}

#[test]
fn a_sound_token_is_who_it_says_with_groups_tenant_scopes_and_client() {
    for signer in [Signer::ed("k"), Signer::es("k")] {
        let mut issuer = issuer();
        issuer.claims.tenant = Some("org.id".into());
        issuer.claims.groups = "https://example.com/roles".into();
        let authenticator = Authenticator::new(spec(vec![issuer]));
        authenticator.put_keys(0, set(&[&signer]), NOW + 3_600);
        let more = r#","scope":"read write","azp":"app","org":{"id":"t1"},"https://example.com/roles":["eng","ops"]"#;
        let identity = who(judge(&authenticator, &signer.token(&claims(more)), NOW));
        assert_eq!(
            (identity.kind, &*identity.name),
            (IdentityKind::User, "ana")
        );
        assert_eq!(
            identity.principal.as_str(),
            "user https://id.example.com ana"
        );
        let texts = |list: &std::collections::BTreeSet<Arc<str>>| {
            list.iter().map(|it| it.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&identity.groups), ["eng", "ops"]);
        assert_eq!(texts(&identity.scopes), ["read", "write"]);
        assert_eq!(identity.tenant.as_deref(), Some("t1"));
        assert_eq!(identity.client.as_deref(), Some("app"));
        let end = End::new(time(NOW + 600).unwrap(), Duration::from_secs(31));
        assert_eq!(identity.until, Some(end));
    }
}

#[test]
fn a_client_that_is_its_own_subject_is_an_agent_and_never_the_user_of_that_name() {
    let signer = Signer::ed("k");
    let authenticator = knowing(&[&signer]);
    let agent = who(judge(
        &authenticator,
        &signer.token(&claims(r#","client_id":"ana""#)),
        NOW,
    ));
    let user = who(judge(&authenticator, &signer.token(&claims("")), NOW));
    assert_eq!(agent.kind, IdentityKind::Agent);
    assert_ne!(agent.principal, user.principal);
}

// SECURITY AUTHN-1
#[test]
fn tokens_that_are_late_early_foreign_or_forged_are_refused() {
    let (signer, stranger) = (Signer::ed("k"), Signer::ed("k"));
    let authenticator = knowing(&[&signer]);
    let token = signer.token(&claims(""));
    assert_eq!(&*who(judge(&authenticator, &token, NOW)).name, "ana");
    assert!(
        is_refused(&judge(&authenticator, &token, NOW + 631)),
        "late, though it was verified"
    );
    let fresh = knowing(&[&signer]);
    assert!(is_refused(&judge(&fresh, &token, NOW + 631)), "late");
    let early = claims(&format!(r#","nbf":{}"#, NOW + 31));
    assert!(is_refused(&judge(&fresh, &signer.token(&early), NOW)));
    let from_the_future = claims(&format!(r#","iat":{}"#, NOW + 31));
    assert!(is_refused(&judge(
        &fresh,
        &signer.token(&from_the_future),
        NOW
    )));
    assert!(
        is_refused(&judge(&fresh, &stranger.token(&claims("")), NOW)),
        "signature"
    );
    let issuer = claims("").replace(ISSUER, "https://id.example.com/");
    assert!(
        is_refused(&judge(&fresh, &signer.token(&issuer), NOW)),
        "issuer"
    );
    let cut = &token[..token.len() - 4];
    assert!(is_refused(&judge(&fresh, cut, NOW)));
    for text in ["", ".", "..", "a.b.c", "{}.{}.{}", &"a".repeat(20_000)] {
        assert!(is_refused(&judge(&fresh, text, NOW)), "{text}");
    }
}

// SECURITY AUTHN-1, AUTHN-3
#[test]
fn an_audience_counts_byte_for_byte_or_not_at_all() {
    let signer = Signer::ed("k");
    let with = |aud: &str| {
        let claims = claims("").replace(&format!("\"{RESOURCE}\""), aud);
        judge(&knowing(&[&signer]), &signer.token(&claims), NOW)
    };
    who(with(&format!(r#"["https://other.example","{RESOURCE}"]"#)));
    for wrong in [
        r#""https://mcp.example.com/mcp/""#,
        r#""https://mcp.example.com""#,
        r#""https://mcp.example.com/mcp2""#,
        r#""HTTPS://mcp.example.com/mcp""#,
        r#""https://mcp.example.com:443/mcp""#,
        "[]",
        "null",
        "7",
        r#"["https://mcp.example.com/mcp",7]"#,
        r#"{"a":"https://mcp.example.com/mcp"}"#,
    ] {
        assert!(is_refused(&with(wrong)), "{wrong}");
    }
    let without = format!(r#"{{"iss":"{ISSUER}","sub":"ana","exp":{}}}"#, NOW + 600);
    assert!(is_refused(&judge(
        &knowing(&[&signer]),
        &signer.token(&without),
        NOW
    )));
    // What was verified for one endpoint is not thereby good for another.
    let authenticator = knowing(&[&signer]);
    let token = signer.token(&claims(""));
    who(judge(&authenticator, &token, NOW));
    let presented = Presented {
        bearer: Some(&token),
        ..Presented::default()
    };
    let other = ["https://mcp.example.com/mcp/oncall".into()];
    assert!(is_refused(&authenticator.judge(
        presented,
        &other,
        Asked::First,
        NOW
    )));
    who(judge(&authenticator, &token, NOW));
}

// SECURITY AUTHN-2
#[test]
fn games_with_the_algorithm_and_the_header_are_refused() {
    let signer = Signer::es("k");
    let authenticator = knowing(&[&signer]);
    let header = |more: &str| format!(r#"{{"alg":"ES256","kid":"k"{more}}}"#);
    who(judge(
        &authenticator,
        &signer.sign(&header(""), &claims("")),
        NOW,
    ));
    for more in [
        r#","crit":["exp"]"#,
        r#","crit":[]"#,
        r#","b64":false"#,
        r#","zip":"DEF""#,
        r#","jku":"https://evil.example/keys""#,
        r#","x5u":"https://evil.example/cert""#,
        r#","x5c":[]"#,
        &format!(r#","jwk":{}"#, Signer::es("k").jwk),
        r#","typ":"dpop+jwt""#,
        r#","typ":7"#,
        r#","alg":"ES256""#,
        r#","kid":"k""#,
    ] {
        assert!(
            is_refused(&judge(
                &authenticator,
                &signer.sign(&header(more), &claims("")),
                NOW
            )),
            "{more}"
        );
    }
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None","kid":"k"}"#,
        r#"{"kid":"k"}"#,
        r#"{"alg":7}"#,
    ] {
        let unsigned = format!("{}.{}.", part(header), part(&claims("")));
        assert!(
            is_refused(&judge(&authenticator, &unsigned, NOW)),
            "{header}"
        );
        assert!(is_refused(&judge(
            &authenticator,
            &signer.sign(header, &claims("")),
            NOW
        )));
    }
    // The public key as the secret of an HMAC.
    let message = format!(
        "{}.{}",
        part(r#"{"alg":"HS256","kid":"k"}"#),
        part(&claims(""))
    );
    let secret = EncodingKey::from_secret(signer.jwk.as_bytes());
    let forged = sign(message.as_bytes(), &secret, Algorithm::HS256).unwrap();
    assert!(is_refused(&judge(
        &authenticator,
        &format!("{message}.{forged}"),
        NOW
    )));
    // An algorithm that this issuer may not use, though the key would fit.
    let mut narrow = issuer();
    narrow.algorithms = vec![Algorithm::RS256];
    let authenticator = Authenticator::new(spec(vec![narrow]));
    authenticator.put_keys(0, set(&[&signer]), NOW + 3_600);
    assert!(is_refused(&judge(
        &authenticator,
        &signer.token(&claims("")),
        NOW
    )));
}

// SECURITY AUTHN-2: a set that publishes a shared secret vouches for nobody.
#[test]
fn a_shared_secret_in_a_key_set_verifies_nothing() {
    let secret = URL_SAFE_NO_PAD.encode("0123456789abcdef0123456789abcdef");
    let text = format!(r#"{{"keys":[{{"kty":"oct","kid":"k","k":"{secret}"}}]}}"#);
    assert_eq!(KeySet::parse(text.into()).unwrap_err(), BadKeySet::Nothing);
}

// SECURITY AUTHN-3
#[test]
fn claims_of_wrong_types_missing_or_twice_are_refused() {
    let signer = Signer::ed("k");
    let authenticator = knowing(&[&signer]);
    let refused = |claims: &str| is_refused(&judge(&authenticator, &signer.token(claims), NOW));
    let exp = NOW + 600;
    let base = format!(r#""iss":"{ISSUER}","aud":"{RESOURCE}""#);
    for rest in [
        r#""sub":"ana""#.to_owned(),
        format!(r#""sub":"ana","exp":"{exp}""#),
        r#""sub":"ana","exp":null"#.into(),
        r#""sub":"ana","exp":-1"#.into(),
        r#""sub":"ana","exp":1e300"#.into(),
        format!(r#""sub":7,"exp":{exp}"#),
        format!(r#""sub":"","exp":{exp}"#),
        format!(r#""sub":null,"exp":{exp}"#),
        format!(r#""exp":{exp}"#),
        format!(r#""sub":"ana","exp":{exp},"exp":{exp}"#),
        format!(r#""sub":"ana","s\u0075b":"eve","exp":{exp}"#),
        format!(r#""sub":"ana","exp":{exp},"nbf":"{NOW}""#),
        format!(r#""sub":"ana","exp":{exp},"groups":{{"a":1}}"#),
        format!(r#""sub":"ana","exp":{exp},"groups":["a",1]"#),
        format!(r#""sub":"ana","exp":{exp},"scope":7"#),
        format!(r#""sub":"ana","exp":{exp},"azp":["app"]"#),
        format!(r#""sub":"ana","exp":{exp},"cnf":{{"jkt":"x"}}"#),
        format!(r#""sub":"a\u0000na","exp":{exp}"#),
    ] {
        assert!(refused(&format!("{{{base},{rest}}}")), "{rest}");
    }
    for iss in ["7", "null", r#"["https://id.example.com"]"#] {
        let claims = claims("").replace(&format!("\"{ISSUER}\""), iss);
        assert!(refused(&claims), "{iss}");
    }
    assert!(!refused(&claims("")));
}

#[test]
fn each_issuer_vouches_for_its_own_tokens_only() {
    let (one, two) = (Signer::ed("k"), Signer::ed("k"));
    let mut second = issuer();
    second.issuer = "https://second.example".into();
    let authenticator = Authenticator::new(spec(vec![issuer(), second]));
    authenticator.put_keys(0, set(&[&one]), NOW + 3_600);
    authenticator.put_keys(1, set(&[&two]), NOW + 3_600);
    let of_second = claims("").replace(ISSUER, "https://second.example");
    let a = who(judge(&authenticator, &one.token(&claims("")), NOW));
    let b = who(judge(&authenticator, &two.token(&of_second), NOW));
    assert_ne!(a.principal, b.principal);
    assert!(is_refused(&judge(
        &authenticator,
        &one.token(&of_second),
        NOW
    )));
    assert!(is_refused(&judge(
        &authenticator,
        &two.token(&claims("")),
        NOW
    )));
}

/// One that asks a server about tokens.
fn asking() -> Authenticator {
    let mut spec = spec(Vec::new());
    spec.introspection = Some(spec::IntrospectionSpec {
        url: crate::fetch::Address::configured("https://id.example.com/introspect", false).unwrap(),
        client_id: "usher".into(),
        client_secret: "s".into(),
        issuer: ISSUER.into(),
        audiences: Vec::new(),
        require_audience: true,
        cache: Duration::from_secs(45),
        claims: ClaimNames::default(),
    });
    Authenticator::new(spec)
}

/// What becomes of an answer about a token.
fn answered(authenticator: &Authenticator, answer: &str, now: u64) -> Verdict {
    let answer = bytes::Bytes::from(answer.to_owned());
    authenticator.put_introspected("opaque", answer, &[RESOURCE.into()], now)
}

/// An active token with these claims more.
fn active(more: &str) -> String {
    format!(r#"{{"active":true,"sub":"ana","aud":"{RESOURCE}"{more}}}"#)
}

// SECURITY AUTHN-5, AUTHZ-10
#[test]
fn what_is_introspected_ends_when_something_else_is_said_of_it_and_not_when_its_end_is_moved() {
    let authenticator = asking();
    let put = |groups: &str, end: u64, now| {
        let more = format!(r#","groups":[{groups}],"exp":{}"#, NOW + end);
        who(answered(&authenticator, &active(&more), now))
    };
    let first = put(r#""a","b""#, 600, NOW);
    let moved = put(r#""a","b""#, 900, NOW + 46);
    assert!(first.until < moved.until && !first.revoked.is_cancelled());
    assert_eq!(authenticator.introspected_in_use().len(), 1);
    let fewer = put(r#""a""#, 900, NOW + 92);
    assert!(first.revoked.is_cancelled() && moved.revoked.is_cancelled());
    assert!(!fewer.revoked.is_cancelled());
    drop((first, moved));
    assert!(is_refused(&answered(
        &authenticator,
        r#"{"active":false}"#,
        NOW + 138
    )));
    assert!(fewer.revoked.is_cancelled());
    // Nor does it go on where it is for somewhere else by now.
    let here = who(answered(&authenticator, &active(""), NOW));
    let elsewhere = r#"{"active":true,"sub":"ana","aud":"https://other.example"}"#;
    assert!(is_refused(&answered(&authenticator, elsewhere, NOW)));
    assert!(here.revoked.is_cancelled());
}

// SECURITY AUTHN-5
#[test]
fn what_hangs_on_a_token_that_was_introspected_is_looked_after_when_the_table_has_no_room_for_it() {
    let authenticator = asking();
    let put = |more: &str| who(answered(&authenticator, &active(more), NOW));
    let held = put("");
    authenticator.cache.evict_all();
    assert_eq!(authenticator.introspected_in_use().len(), 1);
    assert!(Arc::ptr_eq(&held, &put("")));
    authenticator.cache.evict_all();
    put(r#","groups":["a"]"#);
    assert!(held.revoked.is_cancelled());
    drop(held);
    assert!(
        authenticator.introspected_in_use().is_empty(),
        "in the table alone"
    );
}

#[test]
fn a_token_whose_end_has_come_is_asked_about_again() {
    let authenticator = asking();
    let ends = format!(r#","exp":{}"#, NOW + 10);
    who(answered(&authenticator, &active(&ends), NOW));
    who(judge(&authenticator, "opaque", NOW + 10));
    let late = NOW + 45;
    assert!(matches!(
        judge(&authenticator, "opaque", late),
        Verdict::NeedsIntrospection
    ));
    assert!(is_refused(&answered(&authenticator, &active(&ends), late)));
    let moved = format!(r#","exp":{}"#, NOW + 600);
    who(answered(&authenticator, &active(&moved), late));
    who(judge(&authenticator, "opaque", late));
}

#[test]
fn what_is_introspected_is_kept_for_a_while_and_ends_when_it_is_no_longer_active() {
    let authenticator = asking();
    let put = |answer: &str, now| answered(&authenticator, answer, now);
    assert!(matches!(
        judge(&authenticator, "opaque", NOW),
        Verdict::NeedsIntrospection
    ));
    for wrong in [
        r#"{"active":"true","sub":"ana"}"#,
        r#"{"active":false}"#,
        r#"{"active":true}"#,
        r#"{"active":true,"sub":"ana"}"#,
        r#"{"active":true,"sub":"ana","aud":"https://mcp.example.com/mcp","iss":"https://evil.example"}"#,
        "[]",
    ] {
        assert!(matches!(put(wrong, NOW), Verdict::Refused(_)), "{wrong}");
        assert!(matches!(
            judge(&authenticator, "opaque", NOW),
            Verdict::NeedsIntrospection
        ));
    }
    let active = format!(r#"{{"active":true,"sub":"ana","aud":"{RESOURCE}","scope":"a b"}}"#);
    who(put(&active, NOW));
    let identity = who(judge(&authenticator, "opaque", NOW + 45));
    assert_eq!(identity.scopes.len(), 2);
    assert!(matches!(
        judge(&authenticator, "opaque", NOW + 46),
        Verdict::NeedsIntrospection
    ));
    who(put(&active, NOW));
    who(put(&active, NOW + 46));
    let again = who(judge(&authenticator, "opaque", NOW + 46));
    assert_eq!(authenticator.introspected_in_use().len(), 1);
    assert!(is_refused(&put(r#"{"active":false}"#, NOW + 50)));
    assert!(again.revoked.is_cancelled());
    assert!(matches!(
        judge(&authenticator, "opaque", NOW + 50),
        Verdict::NeedsIntrospection
    ));
}

#[test]
fn nothing_is_presented_and_nobody_is_let_in_unless_anonymous_is_written_down() {
    let nobody = |spec| {
        let authenticator = Authenticator::new(spec);
        authenticator.judge(Presented::default(), &[RESOURCE.into()], Asked::First, NOW)
    };
    let mut open = spec(vec![issuer()]);
    assert!(matches!(
        nobody(open.clone()),
        Verdict::Refused(AuthError::Missing)
    ));
    open.anonymous = true;
    assert_eq!(who(nobody(open)).kind, IdentityKind::Anonymous);
}

/// SECURITY 6: a token, the difference of clocks.
#[test]
fn a_token_may_have_its_bytes_and_its_seconds_and_no_more() {
    let signer = Signer::ed("k");
    let token = signer.token(&claims(""));
    let judged = |limits, now| {
        let spec = AuthSpec {
            limits,
            ..spec(vec![issuer()])
        };
        let authenticator = Authenticator::new(spec);
        authenticator.put_keys(0, set(&[&signer]), NOW + 3_600);
        seen::take();
        let verdict = judge(&authenticator, &token, now);
        (matches!(verdict, Verdict::Proved(_)), seen::take())
    };
    let limits = |token_bytes, skew| ProofLimits {
        token_bytes,
        skew,
        ..ProofLimits::default()
    };
    assert_eq!(judged(limits(token.len() + 1, 30), NOW), (true, vec![]));
    assert_eq!(judged(limits(token.len(), 30), NOW), (true, vec![]));
    let longer = judged(limits(token.len() - 1, 30), NOW);
    assert_eq!(longer, (false, vec![Bound::Token]));
    for (late, proved) in [(4, true), (5, true), (6, false)] {
        assert_eq!(
            judged(limits(9_999, 5), NOW + 600 + late).0,
            proved,
            "{late}"
        );
    }
}

/// SECURITY 6, AUTHN-1
#[test]
fn nobody_is_asked_about_what_can_be_no_token() {
    let authenticator = Authenticator::new(AuthSpec {
        limits: ProofLimits {
            token_bytes: 8,
            ..ProofLimits::default()
        },
        ..asking().spec().clone()
    });
    seen::take();
    for (token, is_asked, noted) in [
        ("", false, vec![]),
        ("1234567", true, vec![]),
        ("12345678", true, vec![]),
        ("123456789", false, vec![Bound::Token]),
    ] {
        let verdict = judge(&authenticator, token, NOW);
        let needs = matches!(verdict, Verdict::NeedsIntrospection);
        assert_eq!(
            (needs, is_refused(&verdict), seen::take()),
            (is_asked, !is_asked, noted),
            "{token}"
        );
    }
}
