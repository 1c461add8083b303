//! What is told as a secret, of which class, and what is let go.

use super::*;

pub(super) const BOTH: Wanted = Wanted {
    strong: true,
    weak: true,
};

pub(super) fn told(text: &str) -> Vec<(Class, String, String)> {
    let mut hits = Vec::new();
    detector(BOTH).inspect(text, &mut hits);
    hits.iter()
        .map(|hit| {
            (
                hit.class,
                hit.rule.to_string(),
                text[hit.span.clone()].to_owned(),
            )
        })
        .collect()
}

pub(super) fn strong(text: &str) -> Vec<String> {
    let hits = told(text).into_iter();
    hits.filter(|(class, ..)| *class == Class::Secret)
        .map(|(_, _, found)| found)
        .collect()
}

/// Thirty-six letters and digits, so that nothing here looks like a secret.
pub(super) fn body() -> String {
    ["k3Vq9ZtLw1", "Xc7Rb2NhYs", "8Md4Jp6GfT", "e5UaQo"].concat()
}

#[test]
fn every_rule_is_read_and_there_are_more_than_a_hundred_and_seventy_providers() {
    let mut providers: Vec<_> = rules()
        .iter()
        .map(|name| name.split('_').next().unwrap_or_default().to_owned())
        .collect();
    providers.dedup();
    assert!(providers.len() > 170, "{}", providers.len());
}

#[test]
fn a_token_is_told_without_its_name_at_the_start_at_the_end_and_between() {
    let token = format!("gh{}{}", "p_", body());
    for text in [
        token.clone(),
        format!("GITHUB_TOKEN={token}"),
        format!("{token}\nnext"),
        format!("one\n{token}"),
        format!("\"token\": \"{token}\","),
        format!("a\\n{token}\\nb"),
        format!("(see {token})."),
    ] {
        assert_eq!(strong(&text), [token.as_str()], "{text}");
    }
    assert_eq!(strong(&format!("x{token}")), [""; 0], "within a word");
    assert_eq!(strong(&token[..token.len() - 1]), [""; 0], "too short");
}

#[test]
fn of_services_whose_keys_are_alike_the_best_known_is_named() {
    for (begins, rule) in [("sk_live_", "stripe_key"), ("ak_live_", "pagarme_key")] {
        let key = format!("{begins}{}", &body()[..24]);
        let told = told(&format!("key: {key}."));
        assert_eq!(told, [(Class::Secret, rule.to_owned(), key)]);
    }
}

#[test]
fn placeholders_examples_and_names_are_no_secrets() {
    for text in [
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk_live_your_secret_key_goes_here_1",
        "API_KEY=${GITHUB_TOKEN}",
        "postgres://user:password@localhost/db",
        "datadog_api_key = \"<your-key>\"",
        "let s = s.ListResourceTemplatesResultSchema;",
        "extension: r.resolvedUsingTsExtension }",
    ] {
        assert_eq!(strong(text), [""; 0], "{text}");
    }
}

#[test]
fn a_name_and_an_assignment_tell_what_has_no_form_of_its_own() {
    let hex = "9f86d081884c7d65".repeat(2) + "1b0f3a5c";
    assert_eq!(
        strong(&format!("datadog_api_key = \"{hex}\"")),
        [hex.as_str()]
    );
    assert_eq!(strong(&format!("commit {hex}")), [""; 0]);
    assert_eq!(strong(&format!("\"datadog_sha1\": \"{hex}\"")), [""; 0]);
    let weak = told(&format!("session_secret: {}", body()));
    assert!(matches!(&weak[..], [(Class::WeakSecret, ..)]), "{weak:?}");
}

#[test]
fn a_word_announces_a_value_without_an_assignment() {
    for word in [
        "token",
        "apikey",
        "key",
        "secret",
        "credential",
        "Credential",
    ] {
        let told = told(&format!("use {word} {}", body()));
        assert!(
            matches!(&told[..], [(_, _, found)] if *found == body()),
            "{word}: {told:?}"
        );
    }
    let other = told(&format!("use parcel {}", body()));
    assert!(other.is_empty(), "{other:?}");
}

#[test]
fn names_in_which_no_token_begins_are_known_again_and_hide_none() {
    let uuid = "0af7651c-dd84-48f5-b916-cd43dd8448eb";
    let token = format!("gh{}{}", "p_", body());
    let key = "AKIAQYLPMN5HHHFPZAM2";
    let lines =
        ["request_id", "trace_id", "user_name", "node"].map(|name| format!(" {name}={uuid}\n"));
    let lines = lines.concat().repeat(2);
    for (name, value) in [
        (" request_id=", token.as_str()),
        ("\\nrequest_id=", key),
        (" x.trace_id=", token.as_str()),
        ("=", key),
    ] {
        let text = format!("{lines}{name}{value} and{name}{value}\n{lines}");
        assert_eq!(strong(&text), [value, value], "{text}");
    }
    // What goes on behind the sign is no name: it is not known again as one.
    let split = format!(
        "110201543:A{}",
        body().chars().cycle().take(34).collect::<String>()
    );
    let text = format!("{lines} bot {split}\n{lines} bot {split}\n");
    assert_eq!(strong(&text), [split.as_str(), split.as_str()], "{text}");
}

#[test]
fn of_an_address_only_the_password_is_told() {
    let password = ["hK9", "2mQx7", "Lp4"].concat();
    assert_eq!(
        strong(&format!("postgres://svc:{password}@db.internal:5432/app")),
        [password.as_str()]
    );
    assert_eq!(
        strong(&format!(
            "Server=db1;Database=erp;User Id=app;Password={password};"
        )),
        [password.as_str()]
    );
    for user in ["admin", "jason", "ruth", "ross", "raymond", "x9"] {
        let text = format!("curl -u {user}:{password} https://host/x");
        assert_eq!(strong(&text), [password.as_str()], "{text}");
    }
    let thin = format!("URL=jdbc:oracle:thin:walrus/{password}@//db:1521/ORCL");
    assert_eq!(strong(&thin), [password.as_str()]);
}

#[test]
fn what_begins_as_a_token_and_is_none_is_no_secret_whatever_its_name() {
    let hex = "9f86d081884c7d65".repeat(4);
    let token = ["do", "p_v1_"].concat() + &hex;
    assert_eq!(strong(&format!("api_token: {token}")), [token.as_str()]);
    for spoiled in [
        token[..token.len() - 30].to_owned(),
        token.replace("9f86", "9z86"),
    ] {
        for text in [
            format!("digitalocean_token: {spoiled}"),
            format!("Authorization: Bearer {spoiled}"),
            format!("kind: Secret\nstringData:\n  API_TOKEN: {spoiled}\n"),
        ] {
            let found = told(&text);
            let weak = |(class, ..): &(Class, String, String)| *class == Class::WeakSecret;
            assert!(found.iter().all(weak), "{text}: {found:?}");
        }
    }
    // What tokens of anybody begin with says nothing.
    for begins in ["key_", "api_", "secret_"] {
        let text = format!("Authorization: Bearer {begins}{hex}");
        assert_eq!(strong(&text).len(), 1, "{text}");
    }
    // Forms change, and grow.
    let longer = format!("{token}9f86d081");
    let text = format!("digitalocean_token: {longer}");
    assert_eq!(strong(&text), [longer]);
}

#[test]
fn what_is_for_all_to_see_is_no_secret_whatever_its_name() {
    let body = body();
    for value in [
        format!("pk.eyJ1IjoiYSJ9.{}", &body[..22]),
        format!(
            "arn:aws:secretsmanager:eu-west-1:115921685114:secret:k-{}",
            &body[..6]
        ),
        "projects/1234/secrets/JWT_SECRET1/versions/2".to_owned(),
    ] {
        let text = format!("mapboxApiToken: {value}");
        assert_eq!(strong(&text), [""; 0], "{text}");
    }
    let id = format!(
        "\"private_key_id\": \"{}\"",
        "9f86d081884c7d65".repeat(3).split_at(40).0
    );
    assert_eq!(strong(&format!("gcp {{{id}}}")), [""; 0]);
    assert_eq!(strong("python -u D:\\build\\Run1.py"), [""; 0]);
    assert_eq!(strong(&format!("feat_test_{body}")), [""; 0]);
}

#[test]
fn a_value_without_digits_is_drawn_at_random_where_its_case_turns_and_is_no_name() {
    let value = ["vvEagTiFXjoarlQq", "IJWxKcBiiVPCQpi"].concat();
    assert_eq!(strong(&format!("datadog_key: {value}")), [value]);
    for name in [
        "HTTPServerXMLParserConfigURL",
        "someLongNameOfAThingInSource",
    ] {
        assert_eq!(told(&format!("datadog_key: {name}")), []);
    }
}

#[test]
fn a_password_of_two_short_words_leaves_a_doubt() {
    for password in ["pass;word", "bar%25bar", "one+two%3F"] {
        let text = format!("mysql://foo:{password}@localhost/baz");
        let found = told(&text);
        assert!(
            matches!(&found[..], [(Class::WeakSecret, ..)]),
            "{password}: {found:?}"
        );
    }
    let longer = ["horse", "battery", "clip"].join("-");
    assert_eq!(strong(&format!("mysql://foo:{longer}@host/baz")), [longer]);
}

#[test]
fn a_password_for_curl_is_told_whole_however_long() {
    for length in [8, 120, 127, 128, 129, 4000] {
        for end in ["", "é", "ก🚀"] {
            let password = format!("{}{end}", &"x7Q!".repeat(1000)[..length]);
            for quote in ["", "'", "\"", "\\\""] {
                let text = format!("curl -u {quote}admin:{password}{quote} https://host/x");
                assert_eq!(strong(&text), [password.as_str()], "{text}");
            }
        }
    }
    let text = "curl -u \"admin:x7Q! \\\"y, z\" https://host/x";
    assert_eq!(strong(text), ["x7Q! \\\"y, z"]);
}

#[test]
fn a_password_for_curl_without_quotes_ends_with_the_string_it_stands_in() {
    let password = "Wq7!mZ2pLk4";
    for text in [
        format!("{{\"cmd\":\"curl -u admin:{password}\",\"a\":1,\"note\":\"your example\"}}"),
        format!(
            "{{\\\"cmd\\\":\\\"curl -u admin:{password}\\\",\\\"note\\\":\\\"your example\\\"}}"
        ),
        format!("['curl -u admin:{password}','your example']"),
        format!("`curl -u admin:{password}`,`your-example`"),
    ] {
        assert_eq!(strong(&text), [password], "{text}");
    }
    // What stands far behind says nothing of it.
    let long = format!("{}example", password.repeat(20));
    for quote in ["", "'"] {
        let text = format!("curl -u {quote}admin:{long}{quote} https://host/x");
        assert_eq!(strong(&text), [long.as_str()], "{text}");
    }
}

#[test]
fn of_a_private_key_the_body_is_told_and_a_certificate_is_none() {
    let lines = [body(), body().chars().rev().collect(), body()].join("\n");
    let block = |label: &str| format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n");
    assert_eq!(strong(&block("RSA PRIVATE KEY")), [lines.as_str()]);
    assert_eq!(strong(&block("CERTIFICATE")), [""; 0]);
    let cut = format!("-----BEGIN PRIVATE KEY-----\n{lines}");
    assert_eq!(strong(&cut), [lines.as_str()]);
    // In a change that takes it away every line begins with a dash.
    let gone = block("EC PRIVATE KEY").replace('\n', "\n-");
    let gone = format!("+++ /dev/null\n-{gone}");
    assert_eq!(
        strong(&gone),
        [format!("-{}\n-", lines.replace('\n', "\n-"))]
    );
}

#[test]
fn keys_that_others_found_are_told_by_their_form_or_their_name() {
    let (hex, letters) = ("9f86d081884c7d659a1fb2e93c07d4a6", "PaEkkznMrsZgbtOnAZRM");
    let uuid = "8c7d659f-86d0-4188-94c7-d659f86d0818";
    let long = hex.repeat(2);
    let session = format!("IQoJb3JpZ2luX2Vj{}", body().repeat(4));
    let matrix = format!("syt_cGxhdXJlbnQ_{letters}_3tepyz");
    let partner = format!("prtapi_{hex}");
    for (text, key) in [
        (format!("partner: {partner}"), partner.as_str()),
        (format!("token={matrix}"), &matrix),
        (format!("setx VALUE {session} /M"), &session),
        (format!("CC_TEST_REPORTER_ID={long}"), &long),
        (format!("HEX_API_KEY={hex}"), hex),
        (
            format!("https://serpapi.com/search.json?q=a&api_key={long}"),
            &long,
        ),
        (format!("string NpmToken = \"{uuid}\";"), uuid),
        (
            format!("curl -H \"Api-Token: {hex}\" https://a.example"),
            hex,
        ),
        (format!("shodan init {hex}"), hex),
    ] {
        assert_eq!(strong(&text), [key], "{text}");
    }
    for text in [
        format!("partner: prtapi_{}", &hex[1..]),
        format!("token=syt_cGxhdXJlbnQ_{}_3tepyz", &letters[1..]),
        format!("hex_key_of_colour={hex}"),
        format!("terraform state {hex}"),
    ] {
        assert_eq!(strong(&text), [""; 0], "{text}");
    }
}

#[test]
fn digests_of_packages_types_of_keys_and_names_of_keys_are_no_secrets() {
    let long = [body(), body().chars().rev().collect(), body()].concat();
    for text in [
        format!("\"integrity\": \"sha512-K3{}==\"", &long[..84]),
        "private_key: ed25519.Ed25519PrivateKey".to_owned(),
        format!("aws --key-id {}/{}", &body()[..20], &body()[17..]),
        format!("datadog_key: {}_1.zip", &body()[..20]),
        format!("backblaze:\n  Key: {}", body()),
        ["AKIA", "IOSFODNN7", "SECRETS"].concat(),
    ] {
        assert_eq!(strong(&text), [""; 0], "{text}");
    }
}

#[test]
fn a_token_whose_claims_are_not_readable_is_told_by_its_first_part() {
    let token = format!("eyJhbGciOiJIUzI1NiJ9.{}.{}", body(), body());
    assert_eq!(strong(&token), [token.as_str()]);
    assert_eq!(strong(&token.replace("eyJhbGci", "eyJxbGxx")), [""; 0]);
}

#[test]
fn what_is_drawn_at_random_has_few_digits_now_and_then() {
    // One capital before two small letters is no word yet, nor are small letters in a row.
    let live = ["rzp_", "live_8gybwzKso3gnrd"].concat();
    assert_eq!(strong(&live), [live.as_str()]);
    let small = ["h", "f_zglkbuwscimuuoczpewxrfqmpuougmheez"].concat();
    assert_eq!(strong(&small), [small.as_str()]);
    let letters = "BHEJLdXmthbvWqv2GkjS";
    assert_eq!(strong(&format!("runrunit_token: {letters}")), [letters]);
    let named = "shodan_token: CamelCaseName2OfThing";
    assert_eq!(strong(named), [""; 0]);
}

#[test]
fn a_key_of_django_may_have_a_sign_behind_its_first_letters() {
    let key = [
        "django-",
        "insecure-ka!=3r$+c3@oc4y9-gszr$mkdq+3fy8&z#ud*m%l640-c6nv$h",
    ];
    let key = key.concat();
    assert_eq!(strong(&format!("SECRET_KEY = \"{key}\"")), [key.as_str()]);
    assert_eq!(strong("django-insecure-settings!"), [""; 0]);
}

#[test]
fn the_shortest_key_of_putty_and_passwords_of_people_in_netrc_are_told() {
    let body = format!("{}{}", body(), &body()[..12]);
    let text =
        format!("PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{body}\nPrivate-MAC: 00\n");
    assert_eq!(strong(&text), [body.as_str()]);
    let password = "staple2724correct";
    let line = |word: &str| format!("machine git.test login bob {word} {password}\n");
    assert_eq!(strong(&line("password")), [password]);
    let other = format!("default login bob password {password}\n");
    assert_eq!(strong(&other), [password]);
    let told = format!("text: {other}");
    assert_eq!(strong(&told), [password]);
    let prose = format!("The default login is bob, password {password}");
    assert_eq!(strong(&prose), [""; 0]);
    assert_eq!(strong(&line("token")), [""; 0]);
    assert_eq!(strong(&format!("the password {password}")), [""; 0]);
}

#[test]
fn keys_of_wallets_are_told_by_their_name() {
    let key = format!(
        "0x{}",
        "9f86d081884c7d65a0b3"
            .repeat(4)
            .get(..64)
            .unwrap_or_default()
    );
    assert_eq!(strong(&format!("PRIVATE_KEY={key}")), [key.as_str()]);
    for text in [
        format!("const wallet = new ethers.Wallet(\"{key}\", provider);"),
        format!("const account = privateKeyToAccount('{key}')"),
        format!("acct = Account.from_key(\"{}\")", &key[2..]),
    ] {
        assert_eq!(strong(&text).len(), 1, "{text}");
    }
    assert_eq!(strong(&format!("tx: {key}")), [""; 0]);
}

#[test]
fn a_name_is_read_over_what_stands_between_it_and_its_value() {
    let hex = "9f86d081884c7d65".repeat(2);
    for text in [
        format!("const DATADOG_API_KEY: &str = \"{hex}\";"),
        format!("public const string DatadogApiKey = \"{hex}\";"),
        format!("<tr><td>Datadog API key</td><td>{hex}</td></tr>"),
        format!("<key>DatadogApiKey</key>\n<string>{hex}</string>"),
        format!("ENV DATADOG_API_KEY {hex}\n"),
        format!("setx DATADOG_API_KEY \"{hex}\""),
        format!("//registry.example.org/:_authToken={}\n", body()),
    ] {
        assert_eq!(strong(&text).len(), 1, "{text}");
    }
    for text in [
        format!("datadog_public_key: {hex}"),
        format!("<td>datadog</td><td>commit</td><td>{hex}</td>"),
        format!("datadog_message_id: {hex}"),
        format!("DATADOG_TAG {hex}"),
    ] {
        assert_eq!(strong(&text), [""; 0], "{text}");
    }
}

#[test]
fn a_digest_has_the_form_of_a_key_of_laravel_and_only_a_name_tells_them_apart() {
    let digest = ["base64:uU0nuZNNPgilLlLX2n2r", "+sSE7+N6U4DukIj3rOLvzek="].concat();
    let text = format!("{{\"contentDigest\":\"{digest}\"}}");
    assert_eq!(strong(&text), [""; 0], "{text}");
    let text = format!("APP_KEY={digest}");
    assert_eq!(strong(&text).len(), 1, "{text}");
}

#[test]
fn a_hash_at_the_beginning_of_a_name_is_a_word_of_its_own_or_none() {
    let value = &body()[..32];
    assert_eq!(strong(&format!("HASHNODE_API_KEY={value}")), [value]);
    assert_eq!(strong(&format!("stripe_key_hash={value}")), [""; 0]);
    assert_eq!(strong(&format!("stripe_hashed_key={value}")), [""; 0]);
}

#[test]
fn a_key_of_sixteen_characters_is_told_where_its_name_says_whose_it_is() {
    let key = ["K3VQ9ZTL", "W1XC7RB2"].concat();
    assert_eq!(strong(&format!("ACMECRM_API_KEY={key}")), [key.as_str()]);
    assert_eq!(strong(&format!("acmecrm_token={key}")), [""; 0]);
    assert_eq!(strong(&format!("API_KEY={key}")), [""; 0]);
}

#[test]
fn the_letter_of_an_escape_is_no_part_of_a_token_in_parts() {
    let token = format!("dp.sa.{}{}", body(), &body()[..7]);
    assert_eq!(strong(&format!("one\\n{token}\\ntwo")), [token.as_str()]);
}

#[test]
fn short_passwords_and_those_with_an_ampersand_are_told_whole() {
    let short = ["6es", "4p9r"].concat();
    assert_eq!(strong(&format!("postgres://app:{short}@db/x")), [short]);
    assert_eq!(strong("postgres://app:horse12@db/x"), [""; 0]);
    let and = ["Tr0ub4", "dor&481"].concat();
    let text = format!("Server=db;Database=x;Uid=app;Pwd={and};");
    assert_eq!(strong(&text), [and.as_str()]);
    let query = format!(
        "jdbc:mysql://db/x?user=app&password={}&useSSL=true",
        &body()[..12]
    );
    assert_eq!(strong(&query), [&body()[..12]]);
}

#[test]
fn schemes_of_headers_and_a_flag_without_a_space_are_known() {
    let value = body();
    for text in [
        format!("Authorization: ApiKey {value}"),
        format!("curl -usvc:{value} https://host/x"),
    ] {
        assert_eq!(strong(&text), [value.as_str()], "{text}");
    }
}

#[test]
fn one_class_may_be_asked_for_alone() {
    let text = format!("gh{}{} session_secret: {}", "p_", body(), body());
    let classes = |wanted| {
        let mut hits = Vec::new();
        detector(wanted).inspect(&text, &mut hits);
        hits.iter().map(|hit| hit.class).collect::<Vec<_>>()
    };
    assert_eq!(
        classes(Wanted {
            strong: true,
            weak: false
        }),
        [Class::Secret]
    );
    assert_eq!(
        classes(Wanted {
            strong: false,
            weak: true
        }),
        [Class::WeakSecret]
    );
}

#[test]
fn what_was_made_inert_is_not_told_again() {
    for text in [
        "token=[redacted:github_token]",
        "postgres://svc:[redacted:url_password]@db/x",
        "password: \"[redacted:password]\"",
    ] {
        assert_eq!(told(text), [], "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn hits_rise_and_lie_between_characters_whatever_the_text(text in "([a-z=:@/.\\-é\"' \n]{0,9}(ghp_|sk_live_|://|password=|-----BEGIN |eyJ|AKIA|~|1{0,9}){0,2}[A-Za-z0-9_]{0,40}){0,9}") {
        let mut hits = Vec::new();
        detector(BOTH).inspect(&text, &mut hits);
        let mut end = 0;
        for hit in &hits {
            proptest::prop_assert!(hit.span.start >= end && hit.span.start < hit.span.end);
            proptest::prop_assert!(text.get(hit.span.clone()).is_some());
            end = hit.span.end;
        }
    }
}
