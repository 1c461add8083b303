//! Parts of a configuration, for whoever needs no more of it.

use super::*;

const KEYS: &str = "auth.keys.file";

fn parts(yaml: &str, needed: &[&str]) -> Result<(Plan, Vec<String>), Rejected> {
    let files = Files::with(yaml);
    let (plan, wrong) = load_parts(&files.path("usher.yaml"), &|_| None, needed)?;
    let wrong = wrong.map_or_else(Vec::new, |rejected| rejected.problems);
    Ok((plan, wrong.into_iter().map(|it| it.path).collect()))
}

#[test]
fn what_is_wrong_elsewhere_is_told_and_stops_nobody() {
    let yaml = "
auth: { keys: { file: keys.json, secret: '${env:NOBODY}' } }
policy: { dir: policies }
zebra: 1
state: { dir: state, key: '${env:NOBODY}' }
upstreams:
  a: { url: 'https://a.example/mcp', headers: { authorization: '${env:NOBODY}' }, stripes: 2 }
  b: { url: 'https://b.example/mcp' }
";
    for needed in [
        &[KEYS][..],
        &["state.dir"],
        &["upstreams.*.url", "connections"],
    ] {
        let (plan, wrong) = parts(yaml, needed).unwrap();
        let elsewhere = [
            "auth.keys.secret",
            "zebra",
            "state.key",
            "upstreams.a.headers.authorization",
            "upstreams.a.stripes",
        ];
        assert_eq!(wrong, elsewhere, "{needed:?}");
        assert!(plan.auth.unwrap().keys.unwrap().file.ends_with("keys.json"));
        assert!(plan.pins.directory.unwrap().ends_with("state/pins"));
        assert_eq!(plan.upstreams.len(), 2);
    }
    let (_, wrong) = parts("auth: { keys: { file: k, secret: x } }", &["state"]).unwrap();
    assert_eq!(wrong, ["auth.keys.secret"; 2]);
    assert_eq!(parts("upstreams: {}", &[KEYS]).unwrap().1, [""; 0]);
}

#[test]
fn what_is_wrong_with_a_needed_part_or_a_whole_file_stops_everybody() {
    for (yaml, needed) in [
        ("auth: [", KEYS),
        ("auth: 7", KEYS),
        ("auth: { keys: 7 }", KEYS),
        (
            "auth: { keys: { file: [7], secret: '${env:NOBODY}' } }",
            KEYS,
        ),
        ("auth: { keys: { secret: '${env:NOBODY}' } }", KEYS),
        (
            "auth: { keys: { file: k, secret: '${env:NOBODY}' } }",
            "auth.keys",
        ),
        ("state: { dir: '${env:NOBODY}' }", "state.dir"),
        ("state: { dir: '' }", "state.dir"),
        ("include: [none.yaml]", "state.dir"),
        (
            "upstreams: { a: { url: '${env:NOBODY}' } }",
            "upstreams.*.url",
        ),
        ("upstreams: { a: 7 }", "upstreams.*.url"),
        ("upstreams: [a]", "upstreams.*.url"),
        // It may be a login, by a kind that is none.
        (
            "upstreams: { a: { url: 'https://a.example/mcp', auth: { authorisation_code: {} } } }",
            "upstreams.*.auth.authorization_code.client_id",
        ),
    ] {
        assert!(parts(yaml, &[needed]).is_err(), "{yaml}");
    }
    let files = Files::new();
    let missing = files.path("none.yaml");
    assert!(load_parts(&missing, &|_| None, &[KEYS]).is_err());
    // It can start programs.
    let writable = files.add_with_mode("usher.yaml", "zebra: 1", 0o666);
    assert!(load_parts(&writable, &|_| None, &[KEYS]).is_err());
}
