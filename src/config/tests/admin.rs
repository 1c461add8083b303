//! The admin listener's part of a configuration, and what operators are shown of a configuration.
//! The listener needs more where others reach it, and its tokens have a form.

use super::*;

/// Two tokens that are long enough, in files.
fn with_tokens(yaml: &str) -> Files {
    let files = Files::with(yaml);
    files.add("operator", "0123456789abcdef0123456789abcdef\n");
    files.add("auditor", "fedcba9876543210fedcba9876543210\n");
    files.add("short", "0123456789abcdef\n");
    files.add("spaced", "0123456789abcdef 0123456789abcdef\n");
    files.add("cert.pem", CERT);
    files.add("key.pem", KEY);
    files
}

/// Path and message of each problem.
fn wrong(yaml: &str) -> Vec<(String, String)> {
    let problems = with_tokens(yaml).rejected().problems;
    let told = problems.into_iter();
    told.map(|problem| (problem.path, problem.message))
        .collect()
}

#[test]
fn there_is_no_admin_listener_unless_it_is_written_down_and_then_it_is_on_loopback() {
    assert!(Files::with("# nothing\n").plan().admin.is_none());
    let admin = Files::with("admin: {}\n").plan().admin.unwrap();
    assert_eq!(admin.listen.address, ([127, 0, 0, 1], 8809).into());
    assert!(admin.is_private() && admin.token.is_none() && admin.auditor_token.is_none());
    let named = Files::with("admin: { hosts: [usher.example] }\n").plan();
    assert!(!named.admin.unwrap().is_private());
}

#[test]
fn an_address_that_others_reach_needs_tls_hosts_and_a_token() {
    let problems = wrong("admin: { address: \"0.0.0.0:8809\" }\n");
    assert_eq!(problems.len(), 3, "{problems:?}");
    for (path, message) in &problems {
        assert_eq!(path, "admin.address");
        assert!(
            message.starts_with("others can reach this address, but there is no `admin."),
            "{message}"
        );
    }
    let plan = with_tokens(
        "admin: { address: \"0.0.0.0:8809\", tls: terminated_upstream, hosts: [usher.example], token: \"${file:operator}\" }\n",
    )
    .plan();
    assert!(!plan.admin.unwrap().is_private());
    let plan =
        with_tokens("admin: { tls: { cert: \"${file:cert.pem}\", key: \"${file:key.pem}\" } }\n")
            .plan();
    assert!(plan.admin.unwrap().listen.tls.is_some());
}

#[test]
fn a_token_is_a_reference_long_enough_fit_for_a_header_and_nobody_elses() {
    for (yaml, path, told) in [
        (
            "admin: { token: 0123456789abcdef0123456789abcdef }\n",
            "admin.token",
            "stands in the file",
        ),
        (
            "admin: { token: \"${file:short}\" }\n",
            "admin.token",
            "no token of 32 to 1024",
        ),
        (
            "admin: { auditor_token: \"${file:spaced}\" }\n",
            "admin.auditor_token",
            "no token of 32 to 1024",
        ),
        (
            "admin: { token: \"${file:operator}\", auditor_token: \"${file:operator}\" }\n",
            "admin.auditor_token",
            "the same as",
        ),
        (
            "admin: { address: \"127.0.0.1:8808\" }\n",
            "admin.address",
            "where clients come in",
        ),
        (
            "admin: { address: localhost }\n",
            "admin.address",
            "not an address",
        ),
        (
            "admin: { hosts: [\"a/b\"] }\n",
            "admin.hosts[0]",
            "not a host name",
        ),
    ] {
        let problems = wrong(yaml);
        assert_eq!(problems.len(), 1, "{yaml}: {problems:?}");
        assert_eq!(problems[0].0, path, "{yaml}");
        assert!(problems[0].1.contains(told), "{problems:?}");
        assert!(!problems[0].1.contains("0123456789abcdef"), "{problems:?}");
    }
}

#[test]
fn operators_are_shown_the_file_with_references_and_nothing_they_lead_to() {
    let files = with_tokens(
        "\
include: [more.yaml]
admin: { token: \"${file:operator}\" }
limits: [{ per: principal, rate: 50/s }]
upstreams:
  shop:
    url: http://127.0.0.1:${env:PORT}/mcp
    headers: { X-Key: \"pre-${env:TOKEN}\" }
  run: { command: [x, --flag, --token, s3cret-marker-77aa], env: { A: written, B: \"${env:TOKEN}\" }, concurrency: 7 }
",
    );
    files.add("more.yaml", "page_size: { items: 9 }\n");
    let plan = files.plan();
    let shown = plan.loaded.json().as_str().to_owned();
    for secret in [
        "0123456789abcdef",
        "t0ken-marker-9f",
        "9000",
        "written",
        "marker-77aa",
    ] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    for part in [
        r#""token":"${file:operator}""#,
        r#""X-Key":"pre-${env:TOKEN}""#,
        r#""url":"http://127.0.0.1:${env:PORT}/mcp""#,
        r#""env":{"A":"(set)","B":"${env:TOKEN}"}"#,
        r#""command":["x","--flag","--token","(set)"]"#,
        r#""concurrency":7"#,
        r#""page_size":{"items":9}"#,
        r#""rate":"50/s""#,
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(!format!("{plan:?}").contains("0123456789abcdef"));
}

/// SECURITY 10: a certificate or a secret that was rotated, and what stands in the file and is shown to nobody.
#[test]
fn what_references_lead_to_by_now_makes_a_difference_and_so_does_what_is_not_shown() {
    let yaml = |own: &str| {
        format!(
            "\
admin: {{ token: \"${{file:operator}}\" }}
limits: [{{ per: principal, rate: \"${{file:rate}}\" }}]
upstreams:
  shop: {{ url: http://127.0.0.1:1/mcp, auth: {{ bearer: \"${{file:bearer}}\" }} }}
  run: {{ command: [x], env: {{ OWN: {own} }}, concurrency: ~ }}
"
        )
    };
    let files = with_tokens(&yaml("one"));
    files.add("bearer", "b3arer-marker\n");
    files.add("rate", "9/s");
    let before = files.plan().loaded;
    let now = || {
        let loaded = files.plan().loaded;
        assert_eq!(
            before.differs_in_limits_alone(&loaded),
            before.differing(&loaded).is_empty()
        );
        before.differing(&loaded)
    };
    assert!(now().is_empty(), "the same is read again");
    files.add("rate", "8/s");
    assert!(now().is_empty(), "limits are put in force");
    files.add("bearer", "an0ther-marker\n");
    assert_eq!(now(), ["upstreams.shop"]);
    files.add("operator", "another-token-of-32-characters-00\n");
    assert_eq!(now(), ["admin.token", "upstreams.shop"]);
    files.add("bearer", "b3arer-marker");
    files.add("operator", "0123456789abcdef0123456789abcdef");
    assert!(now().is_empty(), "it is what it was again");
    let other = &yaml("two").replace("concurrency: ~", "concurrency: null");
    files.add("usher.yaml", other);
    assert_eq!(now(), ["upstreams.run"]);
    assert_eq!(before.json(), files.plan().loaded.json());
    // Limits that were put in force leave what else was read at the start as it was.
    let stands = before.with_limits_of(&files.plan().loaded);
    assert_eq!(stands.differing(&files.plan().loaded), ["upstreams.run"]);
}

#[test]
fn whether_two_files_differ_in_limits_alone_is_told_and_limits_are_taken_over() {
    let of = |yaml: &str| Files::with(yaml).plan().loaded;
    let one = of("page_size: { items: 9 }\nlimits: [{ per: [], rate: 1/s }]\n");
    let other = of("page_size: { items: 9 }\nlimits: [{ per: [], rate: 2/s }]\n");
    let none = of("page_size: { items: 9 }\n");
    let another = of("page_size: { items: 8 }\nlimits: [{ per: [], rate: 2/s }]\n");
    assert!(one.differs_in_limits_alone(&other) && one.differs_in_limits_alone(&none));
    assert!(!one.differs_in_limits_alone(&another));
    assert_eq!(one.differing(&another), ["page_size.items"]);
    assert!(one.differing(&none).is_empty());
    let (early, late) = (
        of(
            "upstreams: { a: { url: http://127.0.0.1:1/mcp }, b: { url: http://127.0.0.1:1/mcp } }\n",
        ),
        of(
            "page_size: { items: 9 }\nupstreams: { b: { url: http://127.0.0.1:2/mcp }, c: { url: http://127.0.0.1:1/mcp } }\n",
        ),
    );
    let told = early.differing(&late);
    assert_eq!(
        told,
        ["upstreams.a", "upstreams.b", "upstreams.c", "page_size"]
    );
    let taken = one.with_limits_of(&another).json().as_str().to_owned();
    assert!(taken.contains("2/s") && taken.contains("9"), "{taken}");
    assert!(!one.with_limits_of(&none).json().as_str().contains("limits"));
    assert!(none.with_limits_of(&one).json().as_str().contains("1/s"));
    // What is said first is no difference, nor is a file that is read again.
    let before = of("limits: [{ per: [], rate: 1/s }]\npage_size: { items: 9 }\n");
    assert_eq!(before.with_limits_of(&before).json(), before.json());
}
