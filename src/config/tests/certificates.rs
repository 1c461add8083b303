//! Certificates and keys: what is none, what belongs to another, and what no longer counts.

use super::*;

#[test]
fn certificates_that_are_none_and_keys_of_others_are_refused() {
    let files = Files::with(
        "listen: { tls: { cert: \"${file:cert.pem}\", key: \"${file:other.pem}\" } }\n\
         upstreams:\n\
         \x20 a: { url: \"https://a/\", tls: { ca: /etc/ca.pem } }\n\
         \x20 b: { url: \"https://b/\", tls: { cert: \"${file:cert.pem}\" } }\n",
    );
    files.add("cert.pem", CERT);
    files.add("other.pem", OTHER_KEY);
    let all: Vec<(String, String)> = files
        .rejected()
        .problems
        .into_iter()
        .map(|problem| (problem.path, problem.message))
        .collect();
    assert_eq!(all[0].0, "listen.tls.key");
    assert!(all[0].1.contains("does not belong"));
    assert_eq!(
        all[1],
        ("upstreams.a.tls.ca".into(), "no certificate in PEM".into())
    );
    assert_eq!(
        all[2],
        (
            "upstreams.b.tls.key".into(),
            "a certificate without its key".into()
        )
    );
    assert_eq!(
        only("listen: { tls: {} }\n".replace("{}", "on").as_str()).path,
        "listen.tls"
    );
}

/// A certificate that ends on this day, in PEM, and its key.
fn ending(year: i32, month: u8, day: u8) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(vec!["usher.test".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, month, day);
    let key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    (cert.pem(), key.serialize_pem())
}

/// SECURITY OPS-5.
#[test]
fn ops_5_certificates_of_our_own_that_have_expired_are_refused_wherever_they_are_shown() {
    let yaml = |name: &str| {
        format!(
            "listen: {{ tls: {{ cert: \"${{file:{name}.pem}}\", key: \"${{file:{name}-key.pem}}\" }} }}\n\
             upstreams:\n\
             \x20 a: {{ url: \"https://a/\", tls: {{ cert: \"${{file:{name}.pem}}\", key: \"${{file:{name}-key.pem}}\" }} }}\n"
        )
    };
    let files = Files::with(&yaml("old"));
    for (name, (cert, key)) in [
        ("old", ending(2021, 1, 1)),
        ("new", ending(2121, 1, 1)),
        // Somebody's who took the commands of a tutorial.
        (
            "v1",
            (
                include_str!("v1.pem").to_owned(),
                include_str!("v1-key.pem").to_owned(),
            ),
        ),
    ] {
        files.add(&format!("{name}.pem"), &cert);
        files.add(&format!("{name}-key.pem"), &key);
    }
    // Who works on keys or policies, and shows none of them, is not held up.
    assert!(files.load().is_ok());
    let told = |files: &Files| -> Vec<(usize, String, String)> {
        let loaded = load_to_serve(&files.path("usher.yaml"), &vars);
        let problems = loaded.expect_err("a problem").problems.into_iter();
        problems
            .map(|problem| (problem.line, problem.path, problem.message))
            .collect()
    };
    let expired = "a certificate that expired on 2021-01-01";
    assert_eq!(
        told(&files),
        [
            (1, "listen.tls.cert".into(), expired.into()),
            (3, "upstreams.a.tls.cert".into(), expired.into()),
        ]
    );
    // One that serves already and was started with them is not kept from reading the rest again; others are refused.
    let running = StartCertificates::of(&files.plan());
    let again = |shown: &StartCertificates| -> Vec<String> {
        match load_again(&files.path("usher.yaml"), &vars, shown) {
            Ok(_) => Vec::new(),
            Err(rejected) => rejected.problems.into_iter().map(|it| it.path).collect(),
        }
    };
    assert!(again(&running).is_empty());
    let all = ["listen.tls.cert", "upstreams.a.tls.cert"];
    assert_eq!(again(&StartCertificates::default()), all);
    let moved = yaml("old").replace(" a: ", " b: ");
    files.add("usher.yaml", &moved);
    assert_eq!(again(&running), ["upstreams.b.tls.cert"]);
    files.add("usher.yaml", &yaml("old"));
    let (cert, key) = ending(2022, 1, 1);
    files.add("old.pem", &cert);
    files.add("old-key.pem", &key);
    assert_eq!(again(&running), all);
    files.add("usher.yaml", &yaml("v1"));
    let told = told(&files);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0].1, "listen.tls.cert");
    assert!(
        told[0].2.starts_with("a certificate of version 1"),
        "{told:?}"
    );
    files.add("usher.yaml", &yaml("new"));
    let plan = files.plan();
    let when =
        |seconds| std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    // 2120-12-31 and 2121-01-02.
    assert_eq!(plan.ending_before(when(4_765_046_400)), []);
    let day = "2121-01-01".to_owned();
    assert_eq!(
        plan.ending_before(when(4_765_219_200)),
        [
            ("listen.tls.cert".to_owned(), day.clone()),
            ("upstreams.a.tls.cert".to_owned(), day)
        ]
    );
}
