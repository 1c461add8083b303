//! `auth:`: what it means, and everything that may be wrong with it, at its place.

use crate::auth::spec::{ALGORITHMS, Algorithm, CertificateName, KeySource};

use super::*;

const SECRET: &str = "0123456789abcdef0123456789abcdef\n";

fn files(yaml: &str) -> Files {
    let files = Files::with(yaml);
    files.add("secret", SECRET);
    files.add("cert.pem", CERT);
    files.add("key.pem", KEY);
    files
}

fn auth(yaml: &str) -> crate::auth::spec::AuthSpec {
    files(yaml).plan().auth.expect("auth")
}

/// Path and message of each problem.
fn wrong(yaml: &str) -> Vec<(String, String)> {
    let problems = files(yaml).rejected().problems;
    problems
        .into_iter()
        .map(|one| (one.path, one.message))
        .collect()
}

// SECURITY AUTHZ-4
#[test]
fn whoever_says_who_somebody_is_on_its_own_is_counted_once() {
    let jwt =
        "jwt: [{ issuer: \"https://id.example.com\" }, { issuer: \"https://ci.example.com\" }]";
    let asked = "introspection: { url: \"https://id.example.com/ask\", client_id: usher, client_secret: \"${file:secret}\", issuer: \"https://id.example.com\" }";
    let mtls = "listen: { tls: { cert: \"${file:cert.pem}\", key: \"${file:key.pem}\", client_ca: \"${file:cert.pem}\" } }";
    let keys = "keys: { file: keys.json, secret: \"${file:secret}\" }";
    for (yaml, count) in [
        (format!("auth: {{ {keys}, anonymous: true }}\n"), 0),
        (format!("auth: {{ {asked}, {keys} }}\n"), 1),
        (format!("auth: {{ {jwt}, {asked} }}\n"), 2),
        (format!("{mtls}\nauth: {{ {jwt}, mtls: {{}} }}\n"), 3),
    ] {
        assert_eq!(auth(&yaml).authorities(), count, "{yaml}");
    }
}

// PRODUCT 3
#[test]
fn files_that_a_start_could_not_use_are_told_to_whoever_asks_for_all() {
    let both = "auth: { jwt: [{ issuer: ci, audience: [usher], jwks_file: jwks.json }], keys: { file: keys.json, secret: \"${file:secret}\" } }\n";
    let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    let (jwks, keys) = ("auth.jwt[0].jwks_file", "auth.keys.file");
    for (set, file, wrong) in [
        (None, None, &[jwks][..]),
        (Some(key), None, &[]),
        (Some(key), Some(r#"{"keys":[]}"#), &[]),
        (Some("{\"keys\":[]}"), Some("garbage"), &[jwks, keys]),
        (Some("garbage"), Some("{}"), &[jwks, keys]),
    ] {
        let files = files(both);
        for (name, text) in [("jwks.json", set), ("keys.json", file)] {
            if let Some(text) = text {
                files.add(name, text);
            }
        }
        // Who reads it to make keys, or again, is not kept from that.
        drop(files.plan());
        assert_eq!(files.examined(), wrong, "{set:?} {file:?}");
    }
    // Of one that others may write to nothing else is told.
    let files = files(both);
    files.add("jwks.json", key);
    files.add_with_mode("keys.json", "garbage", 0o602);
    assert_eq!(files.examined(), [keys]);
}

// PRODUCT 3
#[test]
fn places_where_a_start_could_not_write_are_told_to_whoever_asks_for_all() {
    let yaml = "\
audit: { dir: records }
state: { dir: state }
connections: { store: store, keys: [\"${file:secret}\"] }
upstreams: { a: { url: \"https://a.example/mcp\", auth: { authorization_code: {} } } }
";
    let all = ["audit.dir", "state.dir", "connections.store"];
    // What is not there is made.
    assert_eq!(files(yaml).examined(), [""; 0]);
    let found = files(yaml);
    for name in ["records", "state", "store"] {
        found.add(name, "a file");
    }
    assert_eq!(found.examined(), all);
    let open = files(yaml);
    for (name, mode) in [("records", 0o755), ("state/pins", 0o770), ("store", 0o750)] {
        let place = open.path(name);
        fs::create_dir_all(&place).expect("made");
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).expect("mode set");
    }
    assert_eq!(open.examined(), all[1..]);
    drop(open.plan());
}

// PRODUCT 3
#[test]
fn places_that_this_user_may_not_write_to_are_told_there_or_not() {
    let yaml = "\
audit: { dir: closed }
state: { dir: closed/below/it }
connections: { store: kept/store, keys: [\"${file:secret}\"] }
upstreams: { a: { url: \"https://a.example/mcp\", auth: { authorization_code: {} } } }
";
    let files = files(yaml);
    for (name, mode) in [("closed", 0o500), ("kept", 0o700)] {
        let place = files.path(name);
        fs::create_dir_all(&place).expect("made");
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).expect("mode set");
    }
    // Root may write anywhere that is not mounted read-only.
    let told: &[&str] = match fs::write(files.path("closed/probe"), "") {
        Ok(()) => &[],
        Err(_) => &["audit.dir", "state.dir"],
    };
    assert_eq!(files.examined(), told);
}

// PRODUCT 3
#[test]
fn the_place_of_records_is_looked_at_where_the_file_does_not_say_it() {
    for (audit, told) in [
        ("", &["audit"][..]),
        ("audit: { durability: kernel }\n", &["audit"]),
        ("audit: off\n", &[]),
        ("audit: { dir: records }\n", &[]),
    ] {
        let files = files(audit);
        assert_eq!(files.examined(), [""; 0], "{audit}");
        files.add("own", "a file");
        assert_eq!(files.examined(), told, "{audit}");
    }
}

// SECURITY 10
#[test]
fn records_and_their_keys_are_kept_from_everybody() {
    let yaml = "audit: { dir: records }\n";
    let open = files(yaml);
    let records = open.path("records");
    fs::create_dir_all(&records).expect("made");
    open.add_with_mode("records/key.pem", "", 0o660);
    assert_eq!(open.examined(), [""; 0]);
    open.add_with_mode("records/key.pem", "", 0o644);
    assert_eq!(open.examined(), ["audit.dir"]);
    open.add_with_mode("records/key.pem", "", 0o600);
    fs::set_permissions(&records, fs::Permissions::from_mode(0o777)).expect("mode set");
    assert_eq!(open.examined(), ["audit.dir"]);
}

// SECURITY OPS-1
#[test]
fn files_that_say_who_is_admitted_are_refused_where_others_may_write_to_them() {
    let yaml = "auth: { jwt: [{ issuer: ci, audience: [usher], jwks_file: jwks.json }], keys: { file: keys.json, secret: \"${file:secret}\" } }\n";
    let files = files(yaml);
    for name in ["jwks.json", "keys.json"] {
        for (mode, fine) in [(0o602, false), (0o666, false), (0o644, true), (0o660, true)] {
            let path = files.add_with_mode(name, "{\"keys\":[]}", mode);
            if fine {
                drop(files.plan());
                continue;
            }
            let problems = files.rejected().problems;
            let said = format!("others may write to `{}` (mode {mode:o})", path.display());
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].message, said);
        }
    }
}

#[test]
fn every_method_reaches_the_plan_with_its_defaults() {
    let yaml = "\
listen: { tls: { cert: \"${file:cert.pem}\", key: \"${file:key.pem}\", client_ca: \"${file:cert.pem}\" } }
auth:
  resource: https://mcp.example.com
  jwt:
    - issuer: https://id.example.com
    - issuer: ci
      audience: [usher]
      jwks_file: jwks.json
      algorithms: [ES256]
      claims: { user: email, tenant: org.id }
      refresh: 10s
      lifetime: 2h
  keys: { file: keys.json, secret: \"${file:secret}\" }
  mtls: { user: [subject_cn], groups: [services] }
  introspection: { url: https://id.example.com/i, client_id: usher, client_secret: \"${file:secret}\", issuer: https://id.example.com }
  scopes: { required: [mcp], supported: [\"a:b\"] }
";
    let files = files(yaml);
    let auth = files.plan().auth.expect("auth");
    assert_eq!(&*auth.resource, "https://mcp.example.com");
    let [first, second] = &auth.issuers[..] else {
        panic!("{:?}", auth.issuers);
    };
    assert!(
        matches!(&first.keys, KeySource::Discovered(at) if at.uri() == "https://id.example.com/")
    );
    assert_eq!(first.algorithms, ALGORITHMS);
    assert_eq!(
        (first.refresh.as_secs(), first.lifetime.as_secs()),
        (45, 3_600)
    );
    assert!(first.audiences.is_empty());
    assert_eq!(second.keys, KeySource::File(files.path("jwks.json")));
    assert_eq!(second.algorithms, [Algorithm::ES256]);
    assert_eq!(
        (&*second.claims.user, &*second.claims.groups),
        ("email", "groups")
    );
    let keys = auth.keys.expect("keys");
    assert_eq!(
        keys.file,
        files.path("keys.json"),
        "beside the file that names it"
    );
    let certificates = auth.certificates.expect("certificates");
    assert_eq!(certificates.user, [CertificateName::SubjectCn]);
    let introspection = auth.introspection.expect("introspection");
    assert!(introspection.require_audience);
    assert_eq!(introspection.cache.as_secs(), 45);
    assert_eq!(auth.failures_per_minute, 10);
    assert!(!auth.anonymous);
}

#[test]
fn the_resource_is_made_of_how_clients_reach_the_gateway() {
    let jwt = "auth: { jwt: [{ issuer: https://id.example.com }] }\n";
    for (listen, resource) in [
        ("", "http://127.0.0.1:8808"),
        (
            "listen: { address: \"0.0.0.0:80\", hosts: [mcp.example.com, b.example], tls: terminated_upstream }\n",
            "https://mcp.example.com",
        ),
        (
            "listen: { address: \"0.0.0.0:443\", hosts: [mcp.example.com], tls: { cert: \"${file:cert.pem}\", key: \"${file:key.pem}\" } }\n",
            "https://mcp.example.com",
        ),
        (
            "listen: { address: \"0.0.0.0:8443\", hosts: [mcp.example.com], tls: { cert: \"${file:cert.pem}\", key: \"${file:key.pem}\" } }\n",
            "https://mcp.example.com:8443",
        ),
    ] {
        assert_eq!(&*auth(&format!("{listen}{jwt}")).resource, resource);
    }
}

#[test]
fn an_address_that_others_reach_is_allowed_with_a_method_and_not_with_anonymous_alone() {
    let listen =
        "listen: { address: \"0.0.0.0:80\", hosts: [mcp.example.com], tls: terminated_upstream }\n";
    let anonymous = wrong(&format!("{listen}auth: {{ anonymous: true }}\n"));
    assert_eq!(anonymous.len(), 1);
    assert!(
        anonymous[0].1.contains("no authentication method"),
        "{anonymous:?}"
    );
    let keys = "auth: { anonymous: true, keys: { file: k, secret: \"${file:secret}\" } }\n";
    assert!(auth(&format!("{listen}{keys}")).anonymous);
    assert!(auth("auth: { anonymous: true }\n").anonymous);
}

#[test]
fn what_cannot_be_meant_is_told_at_its_place() {
    let paths =
        |yaml: &str| -> Vec<String> { wrong(yaml).into_iter().map(|(path, _)| path).collect() };
    for (yaml, path) in [
        ("auth: {}\n", "auth"),
        ("auth: { jwt: [{}] }\n", "auth.jwt[0]"),
        (
            "auth: { jwt: [{ issuer: http://id.example.com }] }\n",
            "auth.jwt[0].issuer",
        ),
        ("auth: { jwt: [{ issuer: id }] }\n", "auth.jwt[0].issuer"),
        (
            "auth: { jwt: [{ issuer: \"a b\", jwks_file: k }] }\n",
            "auth.jwt[0].issuer",
        ),
        (
            "auth: { jwt: [{ issuer: i, jwks_file: k, jwks_url: https://k/ }] }\n",
            "auth.jwt[0].jwks_file",
        ),
        (
            "auth: { jwt: [{ issuer: i, jwks_url: \"http://k.example/\" }] }\n",
            "auth.jwt[0].jwks_url",
        ),
        (
            "auth: { jwt: [{ issuer: i, jwks_file: k, algorithms: [HS256] }] }\n",
            "auth.jwt[0].algorithms[0]",
        ),
        (
            "auth: { jwt: [{ issuer: i, jwks_file: k, refresh: 51s }] }\n",
            "auth.jwt[0].refresh",
        ),
        (
            "auth: { jwt: [{ issuer: i, jwks_file: k, refresh: 1s }] }\n",
            "auth.jwt[0].refresh",
        ),
        (
            "auth: { jwt: [{ issuer: i, jwks_file: k, audiance: [a] }] }\n",
            "auth.jwt[0].audiance",
        ),
        (
            "auth: { jwt: [{ issuer: i, jwks_file: k }, { issuer: i, jwks_file: k }] }\n",
            "auth.jwt[1].issuer",
        ),
        (
            "auth: { anonymous: true, resource: \"https://x/mcp\" }\n",
            "auth.resource",
        ),
        (
            "auth: { anonymous: true, resource: \"http://mcp.example.com\" }\n",
            "auth.resource",
        ),
        (
            "auth: { anonymous: true, scopes: { required: [\"a b\"] } }\n",
            "auth.scopes.required[0]",
        ),
        (
            "auth: { anonymous: true, scopes: { supported: [offline_access] } }\n",
            "auth.scopes.supported[0]",
        ),
        (
            "auth: { anonymous: true, failures_per_minute: 0 }\n",
            "auth.failures_per_minute",
        ),
        (
            "auth: { keys: { file: k, secret: \"${env:TOKEN}\" } }\n",
            "auth.keys.secret",
        ),
        (
            "auth: { keys: { file: k, secret: 0123456789abcdef0123456789abcdef } }\n",
            "auth.keys.secret",
        ),
        (
            "auth: { keys: { secret: \"${file:secret}\" } }\n",
            "auth.keys",
        ),
        ("auth: { mtls: {} }\n", "auth.mtls"),
    ] {
        let found = paths(yaml);
        assert!(
            found.len() == 1 && (found[0] == path || found[0].starts_with(&format!("{path}."))),
            "{yaml}{found:?}"
        );
    }
    assert_eq!(wrong("auth: { introspection: {} }\n").len(), 4);
}

#[test]
fn a_secret_of_auth_is_blotted_out_of_drawings_and_an_issuer_is_not() {
    let files = files(
        "auth:\n  jwt: [{ issuer: http://id.example.com }]\n  keys: { file: k, secret: a-secret-that-is-written-down-here }\n",
    );
    let drawn = files.rejected().drawn(Colour::Plain);
    assert!(!drawn.contains("a-secret-that"), "{drawn}");
    assert!(drawn.contains("http://id.example.com"), "{drawn}");
}

// SECURITY AUTHN-5
#[test]
fn keys_are_read_often_enough_that_one_that_is_removed_ends_its_streams_within_a_minute() {
    let of = |refresh: &str| {
        format!("auth: {{ jwt: [{{ issuer: i, jwks_file: k, refresh: {refresh} }}] }}\n")
    };
    assert_eq!(auth(&of("50s")).issuers[0].refresh.as_secs(), 50);
    for long in ["51s", "10m"] {
        let [problem] = &files(&of(long)).rejected().problems[..] else {
            panic!("one problem");
        };
        assert!(
            problem.message.starts_with("longer than 50 s"),
            "{problem:?}"
        );
    }
}

// SECURITY HTTP-12
#[test]
fn trusted_proxies_are_addresses_and_networks_and_never_everybody() {
    let of = |proxies: &str| format!("listen: {{ trusted_proxies: [{proxies}] }}\n");
    let plan = files(&of("127.0.0.1, 10.1.0.0/16, \"::1\"")).plan();
    let nets: Vec<_> = plan
        .listen
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(nets, ["127.0.0.1/32", "10.1.0.0/16", "::1/128"]);
    assert!(files("{}\n").plan().listen.trusted_proxies.is_empty());
    for everybody in ["0.0.0.0/0", "\"::/0\"", "proxy.example", "10.1.0.0/33"] {
        let found = wrong(&of(everybody));
        assert_eq!(found[0].0, "listen.trusted_proxies[0]", "{everybody}");
    }
}
