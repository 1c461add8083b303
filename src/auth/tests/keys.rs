//! Keys of issuers: new ones, ones that are gone, and none.

use super::*;

// SECURITY AUTHN-5
#[test]
fn keys_that_are_gone_prove_nothing_any_more_and_end_what_they_proved() {
    let (old, new) = (Signer::ed("old"), Signer::ed("new"));
    let authenticator = knowing(&[&old]);
    let token = old.token(&claims(""));
    let identity = who(judge(&authenticator, &token, NOW));
    authenticator.put_keys(0, set(&[&old, &new]), NOW + 3_600);
    assert!(
        Arc::ptr_eq(&identity, &who(judge(&authenticator, &token, NOW))),
        "verified again"
    );
    who(judge(&authenticator, &new.token(&claims("")), NOW));
    authenticator.put_keys(0, set(&[&new]), NOW + 3_600);
    assert!(identity.revoked.is_cancelled());
    let again = |asked| {
        let presented = Presented {
            bearer: Some(&token),
            ..Presented::default()
        };
        authenticator.judge(presented, &[RESOURCE.into()], asked, NOW)
    };
    assert!(matches!(again(Asked::First), Verdict::NeedsKeys(0)));
    assert!(is_refused(&again(Asked::Again)));
}

// SECURITY AUTHN-1, AUTHN-5, AUTHN-7
#[test]
fn keys_that_are_all_gone_prove_nothing_any_more_and_none_that_were_ever_there_accuse_nobody() {
    let signer = Signer::ed("k");
    let token = signer.token(&claims(""));
    let none = || {
        let text = r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#;
        KeySet::as_it_is(text.into(), &ProofLimits::default()).unwrap()
    };
    let presented = Presented {
        bearer: Some(&token),
        ..Presented::default()
    };
    let authenticator = Authenticator::new(spec(vec![issuer()]));
    let ask = |asked, now| authenticator.judge(presented, &[RESOURCE.into()], asked, now);
    let unavailable = |verdict| matches!(verdict, Verdict::Refused(AuthError::Unavailable));
    authenticator.put_keys(0, none(), NOW + 60);
    assert!(matches!(ask(Asked::First, NOW), Verdict::NeedsKeys(0)));
    assert!(unavailable(ask(Asked::Again, NOW)));
    authenticator.put_keys(0, set(&[&signer]), NOW + 60);
    let identity = who(ask(Asked::First, NOW));
    authenticator.put_keys(0, none(), NOW + 60);
    assert!(identity.revoked.is_cancelled());
    assert!(!authenticator.has_keys(0, NOW));
    assert!(matches!(ask(Asked::First, NOW), Verdict::NeedsKeys(0)));
    assert!(is_refused(&ask(Asked::Again, NOW)));
    // Who cannot be asked for so long may have some by now.
    assert!(unavailable(ask(Asked::Again, NOW + 61)));
    authenticator.put_keys(0, set(&[&signer]), NOW + 60);
    who(ask(Asked::First, NOW));
}

// SECURITY AUTHN-7
#[test]
fn without_keys_that_serve_nobody_is_let_in_and_nobody_is_called_a_liar() {
    let signer = Signer::ed("k");
    let authenticator = knowing(&[&signer]);
    let token = signer.token(&claims(&format!(r#","exp2":{NOW}"#)).replace("600", "9600"));
    let presented = Presented {
        bearer: Some(&token),
        ..Presented::default()
    };
    let ask = |asked, now| authenticator.judge(presented, &[RESOURCE.into()], asked, now);
    assert!(matches!(ask(Asked::First, NOW), Verdict::Proved(_)));
    let late = NOW + 3_601;
    let long =
        signer.token(&claims("").replace(&(NOW + 600).to_string(), &(NOW + 9_000).to_string()));
    let presented = Presented {
        bearer: Some(&long),
        ..Presented::default()
    };
    let ask = |asked, now| authenticator.judge(presented, &[RESOURCE.into()], asked, now);
    assert!(matches!(ask(Asked::First, NOW), Verdict::Proved(_)));
    assert!(matches!(ask(Asked::First, NOW + 3_600), Verdict::Proved(_)));
    assert!(matches!(ask(Asked::First, late), Verdict::NeedsKeys(0)));
    assert!(matches!(
        ask(Asked::Again, late),
        Verdict::Refused(AuthError::Unavailable)
    ));
    authenticator.put_keys(0, set(&[&signer]), late + 3_600);
    assert!(matches!(ask(Asked::First, late), Verdict::Proved(_)));
}

// SECURITY AUTHN-2, AUTHN-6
#[test]
fn an_unknown_key_is_worth_a_look_only_if_its_name_is_no_place() {
    let signer = Signer::ed("k");
    let authenticator = knowing(&[&signer]);
    for (kid, worth) in [
        ("other", true),
        ("https://evil.example/keys", false),
        ("../../etc/keys", false),
        ("a/b", false),
        ("a%2fb", false),
        ("a..b", false),
        ("", false),
        ("' OR 1=1", false),
    ] {
        let token = signer.sign(&format!(r#"{{"alg":"EdDSA","kid":"{kid}"}}"#), &claims(""));
        let verdict = judge(&authenticator, &token, NOW);
        assert_eq!(
            matches!(verdict, Verdict::NeedsKeys(0)),
            worth,
            "{kid}: {verdict:?}"
        );
        assert_eq!(is_refused(&verdict), !worth, "{kid}");
    }
}

#[test]
fn key_sets_over_their_bounds_or_of_another_shape_are_refused() {
    let many: Vec<_> = (0..101).map(|_| Signer::ed("k").jwk).collect();
    for (text, why) in [
        (
            format!(r#"{{"keys":[{}]}}"#, many.join(",")),
            BadKeySet::TooMany(100),
        ),
        (" ".repeat((256 << 10) + 1), BadKeySet::TooLarge(256 << 10)),
        ("[]".into(), BadKeySet::Shape),
        (r#"{"keys":{}}"#.into(), BadKeySet::Shape),
        (r#"{"keys":[]}"#.into(), BadKeySet::Nothing),
        (r#"{"keys":[],"keys":[]}"#.into(), BadKeySet::Shape),
    ] {
        assert_eq!(KeySet::parse(text.into()).unwrap_err(), why);
    }
    assert!(KeySet::parse(format!(r#"{{"keys":[{}]}}"#, many[..100].join(",")).into()).is_ok());
    let three = format!(r#"{{"keys":[{}]}}"#, many[..3].join(","));
    let default = ProofLimits::default();
    for (keys, bytes, noted) in [
        (4, three.len() + 1, vec![]),
        (3, three.len(), vec![]),
        (2, three.len(), vec![Bound::AuthKeys]),
        (3, three.len() - 1, vec![Bound::AuthKeySet]),
    ] {
        let limits = ProofLimits {
            keys,
            key_set_bytes: bytes,
            ..default
        };
        seen::take();
        let read = KeySet::within(three.clone().into(), &limits);
        assert_eq!((read.is_ok(), seen::take()), (noted.is_empty(), noted));
    }
}
