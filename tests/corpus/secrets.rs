//! Secrets that nobody uses: made at run time from tables of formats, in places where secrets are found.
//!
//! The tables are written from the providers' documentation and the rules of gitleaks (see README.md), not from the tables of
//! the detectors, and say what a format is in another way. Nothing that looks like a secret stands in this file: beginnings
//! and what follows them are put together when it runs. The same seed gives the same corpus. Deliberately absent: real secrets.

use usher::sanitize::Class;

use super::{
    draw::Draw,
    formats::{FORMED, NAMED},
    sample::Sample,
};

/// Texts around a secret that say nothing of whose it is; `{n}` is the name in capitals, `{s}` the secret.
const AROUND: &[&str] = &[
    "{n}={s}\n",
    "export {n}=\"{s}\"\nexport DEBUG=1\n",
    "services:\n  app:\n    environment:\n      {n}: {s}\n      PORT: 8080\n",
    "{\"name\": \"prod\", \"key\": \"{s}\", \"ttl\": 60}",
    "client = connect('{s}', timeout=30)",
    "2026-03-01T10:22:31Z INFO  worker[12] using credential {s} for upload",
    "curl -s -H 'Authorization: Bearer {s}' https://api.example.net/v1/items",
    "I rotated it yesterday, the new one is {s}, please update the pipeline.",
    "https://api.example.net/v2/list?limit=10&token={s}",
    "{s}",
    "- [ ] remove `{s}` from the wiki\n",
    "{\"config.ini\": \"{n}={s}\\nBACKUP_ENABLED=true\"}",
];

/// Texts in which the name decides; `{i}` is what the name begins with.
const ASSIGNED: &[&str] = &[
    "{i}_token={s}",
    "{i}_api_key = \"{s}\"",
    "export {I}_TOKEN='{s}'\n",
    "{\n    \"{i}_token\": \"{s}\"\n}",
    "{i}_secret: {s}\n",
    "const {i}Token = \"{s}\";",
    "{i}Token := `{s}`",
    "System.setProperty(\"{I}_TOKEN\", \"{s}\")",
    "  \"{i}Token\" => \"{s}\"",
    "{I}_TOKEN ?= \"{s}\"",
    "os.environ[\"{I}_API_KEY\"] = \"{s}\"",
    "- name: {I}_TOKEN\n  value: \"{s}\"\n",
    "const {I}_API_KEY: &str = \"{s}\";",
    "public const string {i}Token = \"{s}\";",
    "<tr><td>{I}_TOKEN</td><td>{s}</td></tr>",
    "FROM debian\nENV {I}_API_KEY {s}\n",
];

/// Texts with a secret of no provider; the secret stands between the bars.
const WHOLE: &[(&str, &str)] = &[
    ("laravel", "APP_ENV=local\nAPP_KEY=base64:|<s43>=|\n"),
    ("wallet_key", "DEPLOYER_PRIVATE_KEY=|0x<h64>|"),
    ("wallet_key", "{\"private_key\": \"|<h64>|\"}"),
    (
        "shared_access_signature",
        "https://a1.blob.core.windows.net/c/f?sv=2022-11-02&se=2026-03-10T14:58:25Z&sp=r&sig=|<a20>%2F<a21>%3D|",
    ),
    ("section_yaml", "datadog:\n  site: eu\n  api_key: |<a40>|\n"),
    (
        "section_json",
        "{\"mixpanel\": {\"api_secret\": \"|<a32>|\"}}",
    ),
    (
        "section_toml",
        "[cloudsmith]\nowner = \"a\"\ntoken = \"|<a40>|\"\n",
    ),
    ("header_key", "X-API-Key: |<a32>|"),
    ("header_key", "{\"PRIVATE-TOKEN\": \"|<b40>|\"}"),
    ("header_scheme", "Authorization: ApiKey |<a40>|"),
    (
        "netrc",
        "machine git.internal\n  login deploy\n  password |<a24>|\n",
    ),
    (
        "netrc_of_people",
        "machine git.internal login deploy password |staple<d4>correct|",
    ),
    (
        "putty_ed25519",
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: laptop\nPublic-Lines: 2\n<s64>\n<s16>\nPrivate-Lines: 1\n|<s48>|\nPrivate-MAC: <h64>\n",
    ),
    (
        "one_time",
        "otpauth://totp/Shop:ann?secret=|<t32>|&issuer=Shop",
    ),
    ("npmrc", "//npm.internal/:_authToken=|<a36>|"),
    (
        "connection_go",
        "dsn: svc:|<a16>|@tcp(db.internal:3306)/shop?parseTime=true",
    ),
    (
        "connection_oracle",
        "jdbc:oracle:thin:app/|<a16>|@//db.internal:1521/ORCL",
    ),
    ("curl_joined", "curl -usvc:|<a20>| https://api.internal/v1"),
    (
        "url_postgres",
        "DATABASE_URL=postgres://svc_billing:|<a14>|@db-3.internal:5432/billing",
    ),
    (
        "url_postgres",
        "postgresql+psycopg2://app:|<a9>#<d2>|@10.0.3.7/app",
    ),
    (
        "url_mysql",
        "mysql://reporting:|<a16>|@mysql.prod.svc:3306/reports?ssl=true",
    ),
    (
        "url_mongodb",
        "mongodb+srv://crawler:|<a18>|@cluster0.ab1cd.mongodb.net/pages",
    ),
    (
        "url_redis",
        "REDIS_URL=rediss://:|<a32>|@cache.internal:6380/0",
    ),
    ("url_amqp", "amqps://worker:|<a20>|@mq-1.internal/jobs"),
    (
        "url_http",
        "git clone https://deploy:|<a20>|@git.internal/team/app.git",
    ),
    ("url_ftp", "ftp://backup:|<a12>|@files.internal/daily"),
    (
        "connection_mssql",
        "Server=tcp:sql1.internal,1433;Database=erp;User ID=erp_app;Password=|<a16>|;Encrypt=true;",
    ),
    (
        "connection_jdbc",
        "jdbc:mysql://db.internal:3306/shop?user=shop&password=|<a14>|&useSSL=true",
    ),
    (
        "connection_libpq",
        "host=db.internal port=5432 user=metrics password=|<a14>| dbname=metrics",
    ),
    (
        "connection_azure_redis",
        "app.redis.cache.windows.net:6380,password=|<s43>=|,ssl=True,abortConnect=False",
    ),
    (
        "azure_storage",
        "DefaultEndpointsProtocol=https;AccountName=backups;AccountKey=|<s86>==|;EndpointSuffix=core.windows.net",
    ),
    (
        "curl_user",
        "curl -u admin:|<a14>| https://jenkins.internal/job/x/build",
    ),
    (
        "slack_webhook",
        "https://hooks.slack.com/services/|T<u8>/B<u8>/<a24>|",
    ),
    (
        "discord_webhook",
        "https://discord.com/api/webhooks/|<d18>/<b68>|",
    ),
    (
        "teams_webhook",
        "https://acme.webhook.office.com/webhookb2/|<U>@<U>/IncomingWebhook/<h32>/<U>|",
    ),
    (
        "webhook_office",
        "https://outlook.office.com/webhook/|<U>@<U>/IncomingWebhook/<h32>/<U>|",
    ),
    (
        "wireguard",
        "[Interface]\nAddress = 10.8.0.2/32\nPrivateKey = |<s42>A=|\nListenPort = 51820\n",
    ),
    (
        "wireguard",
        "[Peer]\nPresharedKey = |<s42>c=|\nEndpoint = vpn.internal:51820\n",
    ),
    ("npm_legacy", "export NPM_TOKEN=|<U>|\n"),
    ("vault_unseal", "Unseal Key 2: |<s44>|\n"),
    (
        "kubernetes_bootstrap",
        "KUBEADM_BOOTSTRAP_TOKEN: \"|<l6>.<l16>|\"\n",
    ),
    ("bearer_header", "Authorization: Bearer |<a40>|\n"),
    (
        "private_key_pkcs8",
        "-----BEGIN PRIVATE KEY-----\n|MII<s61>\n<s64>\n<s64>\n<s20>|\n-----END PRIVATE KEY-----\n",
    ),
    (
        "private_key_rsa",
        "key: |-----BEGIN RSA PRIVATE KEY-----\\n|MIIE<s60>\\n<s64>\\n<s30>==|\\n-----END RSA PRIVATE KEY-----",
    ),
    (
        "private_key_openssh",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n|b3BlbnNzaC1rZXktdjE<s51>\n<s70>\n<s40>|\n-----END OPENSSH PRIVATE KEY-----\n",
    ),
    (
        "private_key_pgp",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n|lQWG<s60>\n<s64>\n=<s4>|\n-----END PGP PRIVATE KEY BLOCK-----\n",
    ),
    (
        "private_key_xml",
        "<RSAKeyValue><Modulus><s171>=</Modulus><Exponent>AQAB</Exponent><P>|<s86>==|</P></RSAKeyValue>",
    ),
    (
        "private_key_xml",
        "<RSAKeyValue><Modulus><s171>=</Modulus><Exponent>AQAB</Exponent>\n <D>|<s171>=|</D>\n</RSAKeyValue>",
    ),
    (
        "private_key_ssh2",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"laptop\"\n|<a50><s20>\n<s70>\n<s40>|\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n",
    ),
    (
        "azure_keys_listed",
        "[\n  {\n    \"keyName\": \"key1\",\n    \"permissions\": \"FULL\",\n    \"value\": \"|<s86>==|\"\n  }\n]",
    ),
    (
        "secretsmanager",
        "{\"Name\":\"prod/db\",\"SecretString\":\"{\\\"username\\\":\\\"app\\\",\\\"password\\\":\\\"|<a12><d2><a4>|\\\"}\"}",
    ),
    (
        "registry_settings",
        "{\"auths\":{\"r.internal\":{\"username\":\"ci\",\"password\":\"|<a12><d2><a2>|\"}}}",
    ),
    (
        "npmrc_password",
        "//npm.internal/:username=ci\n//npm.internal/:_password=|<a18><d2><a4>|\n",
    ),
    ("sshpass", "sshpass -p |<a12><d2><a4>| ssh deploy@db-1"),
    (
        "mysql_joined",
        "mysql -h db-1 -u app -p|<a12><d2><a4>| shop < a.sql",
    ),
    (
        "secure_string",
        "$p = ConvertTo-SecureString \"|<a10>!<d3>|\" -AsPlainText -Force",
    ),
    (
        "sql_user",
        "CREATE USER 'app'@'%' IDENTIFIED BY '|<a15><d2>|';",
    ),
    ("share", "smbclient //files/data -U deploy%|<a14><d2>|"),
    (
        "kubernetes_json",
        "{\"apiVersion\":\"v1\",\"data\":{\"key\":\"|<s40>|\"},\"kind\":\"Secret\"}",
    ),
    ("node_address", "RPC=https://mainnet.infura.io/v3/|<h32>|\n"),
    (
        "static_key_openvpn",
        "<tls-auth>\n-----BEGIN OpenVPN Static key V1-----\n|<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>\n<h32>|\n-----END OpenVPN Static key V1-----\n</tls-auth>\n",
    ),
    (
        "key_json",
        "{\"kty\":\"oct\",\"alg\":\"HS256\",\"k\":\"|<b43>|\"}",
    ),
    (
        "key_json",
        "{\n  \"kty\": \"OKP\",\n  \"crv\": \"Ed25519\",\n  \"d\": \"|<b43>|\",\n  \"x\": \"<b43>\"\n}",
    ),
    (
        "key_json",
        "{\"p\":\"|<b171>|\",\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"<b342>\"}",
    ),
    (
        "private_key_putty",
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 2\n<s64>\n<s20>\nPrivate-Lines: 1\n|<s64>\n<s12>|\nPrivate-MAC: <h64>\n",
    ),
];

/// How many texts are made of each format.
const EACH: usize = 10;

/// Texts with one secret each.
pub(crate) fn positives() -> Vec<Sample> {
    let mut draw = Draw::new(0x005E_C2E7);
    let mut all = Vec::new();
    for (family, name, form) in FORMED {
        for nth in 0..EACH {
            let around = AROUND[(nth + family.len()) % AROUND.len()].replace("{n}", name);
            all.push(placed(family, &around, &draw.form(form)));
        }
    }
    for (family, name, form) in NAMED {
        for nth in 0..EACH {
            let around = ASSIGNED[(nth + family.len()) % ASSIGNED.len()]
                .replace("{i}", name)
                .replace("{I}", &name.to_uppercase());
            all.push(placed(family, &around, &draw.form(form)));
        }
    }
    for (family, whole) in WHOLE {
        for _ in 0..EACH {
            let text = draw.form(&whole.replace('|', "\u{1}"));
            let mut parts = text.rsplitn(3, '\u{1}');
            if let (Some(after), Some(found), Some(before)) =
                (parts.next(), parts.next(), parts.next())
            {
                all.push(Sample::positive(
                    Class::Secret,
                    *family,
                    &before.replace('\u{1}', "|"),
                    found,
                    after,
                ));
            }
        }
    }
    all
}

fn placed(family: &'static str, around: &str, secret: &str) -> Sample {
    let (before, after) = around.split_once("{s}").unwrap_or((around, ""));
    Sample::positive(Class::Secret, family, before, secret, after)
}

/// Texts that look as if they held a secret, and hold none.
pub(crate) fn negatives() -> Vec<Sample> {
    let mut draw = Draw::new(0x00C1_EA17);
    let mut all = Vec::new();
    let mut add = |family: &'static str, text: String| {
        all.push(Sample::negative(Class::Secret, family, text))
    };
    for _ in 0..8 {
        for (family, form) in LOOKS {
            add(family, draw.form(form));
        }
    }
    for (_, name, form) in FORMED {
        let begins: String = form
            .replace('|', "")
            .chars()
            .take_while(|letter| *letter != '<')
            .collect();
        if begins.len() > 2 {
            add("placeholder", format!("{name}={begins}{}", "x".repeat(30)));
            add("placeholder", format!("{name}=<your-token-here>"));
            add(
                "placeholder",
                format!("{name}={begins}your_token_goes_here"),
            );
            add("variable", format!("{name}=${{{name}}}"));
            add(
                "short",
                format!("the prefix `{begins}` says what kind of token it is"),
            );
            add("ellipsis", format!("{name}={begins}..."));
        }
    }
    for (_, name, _) in NAMED {
        add(
            "named_placeholder",
            format!("{name}_api_key = \"YOUR_{}_API_KEY\"", name.to_uppercase()),
        );
        add(
            "named_variable",
            format!(
                "{name}_token: ${{{{ secrets.{}_TOKEN }}}}",
                name.to_uppercase()
            ),
        );
        add(
            "named_call",
            format!("const {name}Token = config.get('{name}.credentials.token')"),
        );
        add(
            "named_digest",
            format!("{name}-sdk-4.2.1.tgz sha256: {}", draw.form("<h64>")),
        );
        add(
            "named_version",
            draw.form(&format!(
                "\"{name}\": {{ \"version\": \"3.1.4\", \"integrity\": \"sha512-<s86>==\" }}"
            )),
        );
    }
    all
}

/// What is not secret though it looks like it, as forms.
const LOOKS: &[(&str, &str)] = &[
    (
        "key_type",
        "key: ed25519.Ed25519PrivateKey | rsa.RSAPublicKey",
    ),
    (
        "object_key",
        "\"StorageLocation\": {\"Bucket\": \"b\", \"Key\": \"Build_<a16>.zip\"}",
    ),
    ("key_id", "aws apigateway get-usage-plan-key --key-id <a40>"),
    ("name", "cache_key_<h28> and app_live_<h32>"),
    ("mask", "kind: Secret\ndata:\n  token: KipT|T1BTKio=\n"),
    (
        "manifest_words",
        "kind: Secret\ndata:\n  password: cGFzc|3dvcmQK\n  token: bXktc2Vj|cmV0LXRva2VuCg==\n",
    ),
    (
        "manifest_certificate",
        "kind: Secret\ndata:\n  tls.crt: LS0tLS1CRUdJTiBDRVJU|SUZJQ0FURS0tLS0tCk1JSUM1R<s80>\n",
    ),
    (
        "search_key",
        "algolia: { appId: '<u10>', apiKey: '<h32>', indexName: 'docs' }",
    ),
    ("code", "privateKey = ssh.NewEd25519Generator()"),
    (
        "code",
        "storageKey, Util.decodeFromBase64(userCertificate), 3",
    ),
    (
        "key_of_code",
        "(\"-----BEGIN PRIVATE KEY-----\\n\")\n .append(Base64.getEncoder().encodeToString(storeKey.getEncoded()))\n .append(\"-----END PRIVATE KEY-----\")",
    ),
    (
        "public_key",
        "{\"keys\":[{\"kty\":\"EC\",\"kid\":\"<b43>\",\"x\":\"<b43>\",\"y\":\"<b43>\"},{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"<b342>\"}]}",
    ),
    (
        "public_key",
        "untrusted comment: minisign public key <u16>\nRWR<s53>\n",
    ),
    ("build", "cache/<h32>.<a16>.o and <h32>.<l16>"),
    (
        "public_key",
        "<DSAKeyValue><P><s86>==</P><Q><s27>=</Q><G><s86>==</G></DSAKeyValue>",
    ),
    ("address", "G<t55> and S<t55>"),
    (
        "statement",
        "CREATE USER app IDENTIFIED BY 'PasswordOfTheUser'; mysql -u app -pYourPassword1",
    ),
    ("flag", "mkdir -p build<l12> && cp -a <a20> /srv"),
    ("lock_file", "      \"integrity\": \"sha512-K3<a84>==\","),
    ("uuid", "request_id=<U> took 31ms"),
    ("provider_id", "postmark-message-id: <U>"),
    ("provider_id", "fastly-request-id: <h32>"),
    ("provider_id", "algolia_object_id: <h32>"),
    ("thing_id", "evt_<a24> and cus_<a14> of pi_<a24>"),
    ("cut_off", "ZENTRO_API_KEY=<a30>..."),
    ("uuid", "\"id\": \"<U>\", \"token_count\": 812"),
    ("git_hash", "commit <h40>\nAuthor: A <a@example.org>"),
    ("git_hash", "index <h7>..<h7> 100644"),
    ("git_hash", "git checkout <h40> # last good"),
    ("lock_file", "      \"integrity\": \"sha512-<s86>==\","),
    ("lock_file", "checksum = \"<h64>\""),
    ("lock_file", "github.com/pkg/errors v0.9.1 h1:<s43>="),
    (
        "lock_file",
        "  resolved \"https://registry.example.org/ms/-/ms-2.1.3.tgz#<h40>\"",
    ),
    (
        "lock_file",
        "github.com/aws/aws-sdk-go-v2/credentials v1.19.30 h1:<s43>=",
    ),
    (
        "lock_file",
        "google.golang.org/api v0.290.0/go.mod h1:<s43>=",
    ),
    ("lock_file", "requests==2.32.3 --hash=sha256:<h64>"),
    (
        "image",
        "<img src=\"data:image/png;base64,iVBORw0KGgo<s400>==\">",
    ),
    ("image", "\"image/png\": \"<s70>/K2|<a62>+<s60>\""),
    (
        "image",
        "\"image/png\": \"<s60>+/<s10>\\nK3|<a66>/<s9>\\n<s76>\"",
    ),
    ("font", "url(data:font/woff2;base64,<s90>/EAA|A<a70>+<s40>)"),
    ("image", "<s60>/EAAA<a40>+<s90>=="),
    (
        "pagination",
        "$ aws pricing get-products\n{\n    \"NextToken\": \"<s190>==\"\n}",
    ),
    (
        "client_id",
        "aws cognito-idp sign-up --client-id <l26> --username diego",
    ),
    (
        "resource_name",
        "\"ARN\": \"arn:aws:secretsmanager:us-west-2:123456789012:secret:OrdersDatabaseSecret-a1<l4>\"",
    ),
    (
        "manual",
        " -u, --user <user:password>   Server user and password",
    ),
    (
        "class_name",
        "from stripe.params import token_params  # \"ConfirmationTokenCreateParamsPaymentMethodDataP24\": (",
    ),
    ("digest", "docker pull app@sha256:<h64>"),
    ("digest", "ETag: \"<h32>\""),
    ("digest", "md5sum: <h32>  file.bin"),
    (
        "hex_dump",
        "00000010: <h4> <h4> <h4> <h4> <h4> <h4> <h4> <h4>  ................",
    ),
    ("fingerprint", "SHA256:<s43> deploy@host (ED25519)"),
    (
        "certificate",
        "-----BEGIN CERTIFICATE-----\nMII<s61>\n<s64>\n<s64>\n-----END CERTIFICATE-----",
    ),
    (
        "public_key",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<s43> me@host",
    ),
    (
        "public_key",
        "-----BEGIN PUBLIC KEY-----\nMII<s61>\n<s64>\n-----END PUBLIC KEY-----",
    ),
    (
        "minified",
        "function a(b,c){return b.d(c)?e[f]:g.h(c,{i:!0})}var j0=k1.<l8>(l2);",
    ),
    (
        "class_name",
        "<div class=\"css-<l6> _<a5>__container--active\">",
    ),
    ("asset", "/static/js/main.<h8>.chunk.js?v=<h20>"),
    ("trace", "traceparent: 00-<h32>-<h16>-01"),
    ("cursor", "nextCursor: \"<a12>\""),
    ("timestamp", "1700000<d6> 2026-01-05T08:12:44.<d6>Z"),
    ("aws_example", "aws_access_key_id = AKIA|IOSFODNN7EXAMPLE"),
    (
        "aws_example",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY|EXAMPLEKEY",
    ),
    (
        "url_placeholder",
        "postgres://user:password@localhost:5432/db",
    ),
    (
        "url_placeholder",
        "DATABASE_URL=mysql://root:root@127.0.0.1/test",
    ),
    ("url_placeholder", "redis://:${REDIS_PASSWORD}@cache:6379"),
    ("url_placeholder", "https://<user>:<password>@example.org/x"),
    (
        "url_plain",
        "http://localhost:8080/a@b see https://example.org:8443/x",
    ),
    ("code", "password = request.form['password']"),
    (
        "code",
        "let token = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok());",
    ),
    (
        "code",
        "def verify_password(plain_password: str, hashed_password: str) -> bool:",
    ),
    (
        "code",
        "private static final String SECRET_KEY_PROPERTY_NAME = \"app.security.secret-key\";",
    ),
    ("bearer_placeholder", "Authorization: Bearer <token>"),
    (
        "bearer_placeholder",
        "curl -H \"Authorization: Bearer $TOKEN\" https://api.example.org",
    ),
    (
        "key_name",
        "sort_key=created_at_descending_v2&primary_key=customer_identifier_01",
    ),
    ("arn", "arn:aws:iam::<d12>:role/service-role/deployer-<l8>"),
    (
        "module",
        "org.springframework.boot.autoconfigure.security.SecurityAutoConfiguration2",
    ),
    (
        "private_key_prose",
        "Paste the block from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY----- into the form.",
    ),
];
