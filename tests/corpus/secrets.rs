//! Secrets that nobody uses: made at run time from tables of formats, in places where secrets are found.
//!
//! The tables are written from the providers' documentation and the rules of gitleaks (see README.md), not from the tables of
//! the detectors, and say what a format is in another way. Nothing that looks like a secret stands in this file: beginnings
//! and what follows them are put together when it runs. The same seed gives the same corpus. Deliberately absent: real secrets.

use usher::sanitize::Class;

use super::{draw::Draw, sample::Sample};

/// Formats with a beginning of their own: family, a name that configuration gives it, form.
///
/// In a form `<h32>` is thirty-two hexadecimal digits: `h` and `H` lower and upper case, `d` digits, `l` lower-case letters and
/// digits, `u` upper-case letters and digits, `a` letters and digits, `L` letters, `b` base64url, `s` base64, `t` base32, `U` a UUID.
const FORMED: &[(&str, &str, &str)] = &[
    ("github_classic", "GITHUB_TOKEN", "gh|p_<a36>"),
    ("github_oauth", "GH_TOKEN", "gh|o_<a36>"),
    ("github_server", "GITHUB_TOKEN", "gh|s_<a36>"),
    ("github_user", "GITHUB_TOKEN", "gh|u_<a36>"),
    ("github_refresh", "GITHUB_REFRESH", "gh|r_<a36>"),
    ("github_fine_grained", "GITHUB_PAT", "github_|pat_<a22>_<a59>"),
    ("gitlab_pat", "GITLAB_TOKEN", "gl|pat-<b20>"),
    ("gitlab_pat_routable", "GITLAB_TOKEN", "gl|pat-<b27>.<l9>"),
    ("gitlab_trigger", "GITLAB_TRIGGER", "gl|ptt-<h40>"),
    ("gitlab_runner", "RUNNER_TOKEN", "gl|rt-<b20>"),
    ("gitlab_runner_registration", "RUNNER_TOKEN", "GR134|8941<b20>"),
    ("gitlab_deploy", "DEPLOY_TOKEN", "gl|dt-<b20>"),
    ("gitlab_job", "JOB_TOKEN", "glcbt|-<a5>_<b20>"),
    ("gitlab_feed", "FEED_TOKEN", "gl|ft-<b20>"),
    ("gitlab_mail", "MAIL_TOKEN", "gl|imt-<b25>"),
    ("gitlab_agent", "AGENT_TOKEN", "gl|agent-<b50>"),
    ("gitlab_oauth_secret", "OAUTH_SECRET", "gl|oas-<b64>"),
    ("gitlab_scim", "SCIM_TOKEN", "gl|soat-<b20>"),
    ("gitlab_flags", "FLAG_TOKEN", "glff|ct-<b20>"),
    ("bitbucket_app", "BITBUCKET_PASSWORD", "AT|BB<a24><H8>"),
    ("npm", "NPM_TOKEN", "np|m_<a36>"),
    ("pypi", "PYPI_TOKEN", "pypi-AgEIcHlw|aS5vcmc<b70>"),
    ("rubygems", "GEM_HOST_API_KEY", "ruby|gems_<h48>"),
    ("clojars", "CLOJARS_TOKEN", "CLO|JARS_<h60>"),
    ("nuget", "NUGET_KEY", "oy|2<l43>"),
    ("dockerhub", "DOCKER_TOKEN", "dckr_|pat_<b27>"),
    ("jfrog", "ARTIFACTORY_KEY", "AK|Cp<a69>"),
    ("jfrog_reference", "ARTIFACTORY_TOKEN", "cmV|md<a59>"),
    ("circleci_personal", "CIRCLE_TOKEN", "CCI|PAT_<a22>_<h40>"),
    ("buildkite", "BUILDKITE_TOKEN", "bk|ua_<h40>"),
    ("sonarqube", "SONAR_TOKEN", "sq|u_<h40>"),
    ("sourcegraph", "SRC_ACCESS_TOKEN", "sg|p_<h16>_<h40>"),
    ("pulumi", "PULUMI_ACCESS_TOKEN", "pul|-<h40>"),
    ("prefect", "PREFECT_API_KEY", "pn|u_<a36>"),
    ("octopus", "OCTOPUS_KEY", "AP|I-<u26>"),
    ("harness", "HARNESS_KEY", "pa|t.<b22>.<a24>.<a20>"),
    ("infracost", "INFRACOST_API_KEY", "ic|o-<a32>"),
    ("scalingo", "SCALINGO_TOKEN", "tk-|us-<b48>"),
    ("postman", "POSTMAN_KEY", "PM|AK-<h24>-<h34>"),
    ("readme", "README_KEY", "rd|me_<l70>"),
    ("aws_key_id", "AWS_ACCESS_KEY_ID", "AK|IA<t16>"),
    ("aws_session_key_id", "AWS_ACCESS_KEY_ID", "AS|IA<t16>"),
    ("aws_bedrock", "BEDROCK_KEY", "AB|SKQmVkcm9ja0FQSUtleS1<a108>="),
    ("alibaba_id", "ALIBABA_ACCESS_KEY", "LT|AI<a20>"),
    ("tencent_id", "TENCENT_SECRET_ID", "AK|ID<a32>"),
    ("google_api", "GOOGLE_API_KEY", "AI|za<b35>"),
    ("google_oauth_access", "GOOGLE_TOKEN", "ya|29.<b120>"),
    ("google_oauth_secret", "GOOGLE_CLIENT_SECRET", "GOC|SPX-<b28>"),
    ("heroku_v2", "HEROKU_API_KEY", "HR|KU-AA<b58>"),
    ("digitalocean_pat", "DO_TOKEN", "do|p_v1_<h64>"),
    ("digitalocean_oauth", "DO_TOKEN", "do|o_v1_<h64>"),
    ("digitalocean_refresh", "DO_TOKEN", "do|r_v1_<h64>"),
    ("cloudflare_origin", "CF_ORIGIN_KEY", "v1|.0-<h24>-<h146>"),
    ("flyio", "FLY_API_TOKEN", "fo|1_<b43>"),
    ("flyio_macaroon", "FLY_API_TOKEN", "fm|2_<s160>"),
    ("planetscale_password", "PLANETSCALE_PASSWORD", "psc|ale_pw_<b43>"),
    ("planetscale_token", "PLANETSCALE_TOKEN", "psc|ale_tkn_<b43>"),
    ("planetscale_oauth", "PLANETSCALE_OAUTH", "psc|ale_oauth_<b43>"),
    ("supabase", "SUPABASE_TOKEN", "sb|p_<h40>"),
    ("databricks", "DATABRICKS_TOKEN", "da|pi<h32>"),
    ("tailscale", "TS_AUTHKEY", "ts|key-auth-<a12>-<a32>"),
    ("defined_networking", "DN_KEY", "dn|key-<l26>-<l52>"),
    ("openshift", "OC_TOKEN", "sha|256~<b43>"),
    ("doppler", "DOPPLER_TOKEN", "dp.|pt.<a43>"),
    ("doppler_service", "DOPPLER_TOKEN", "dp.|st.prd.<a43>"),
    ("vault_service", "VAULT_TOKEN", "hv|s.<b95>"),
    ("vault_batch", "VAULT_TOKEN", "hv|b.<b150>"),
    ("onepassword_secret", "OP_SECRET_KEY", "A|3-<u6>-<u11>-<u5>-<u5>-<u5>"),
    ("onepassword_service", "OP_SERVICE_ACCOUNT_TOKEN", "ops_|eyJ<s260>"),
    ("yandex_api", "YANDEX_KEY", "AQ|VN<b36>"),
    ("clickhouse", "CLICKHOUSE_KEY", "4b|1d<a38>"),
    ("terraform", "TF_TOKEN", "<a14>.atl|asv1.<b64>"),
    ("openai_legacy", "OPENAI_API_KEY", "sk|-<a20>T3Blb|kFJ<a20>"),
    ("openai_project", "OPENAI_API_KEY", "sk|-proj-<b74>T3Blb|kFJ<b74>"),
    ("openai_service", "OPENAI_API_KEY", "sk|-svcacct-<b58>T3Blb|kFJ<b58>"),
    ("anthropic", "ANTHROPIC_API_KEY", "sk|-ant-api03-<b93>AA"),
    ("anthropic_admin", "ANTHROPIC_ADMIN_KEY", "sk|-ant-admin01-<b93>AA"),
    ("openrouter", "OPENROUTER_API_KEY", "sk|-or-v1-<h64>"),
    ("huggingface", "HF_TOKEN", "h|f_<L34>"),
    ("huggingface_org", "HF_TOKEN", "api|_org_<L34>"),
    ("replicate", "REPLICATE_API_TOKEN", "r|8_<a37>"),
    ("groq", "GROQ_API_KEY", "gs|k_<a52>"),
    ("xai", "XAI_API_KEY", "xa|i-<a80>"),
    ("perplexity", "PPLX_KEY", "pp|lx-<a48>"),
    ("nvidia", "NVIDIA_API_KEY", "nv|api-<b64>"),
    ("elevenlabs", "XI_API_KEY", "s|k_<h48>"),
    ("pinecone", "PINECONE_API_KEY", "pc|sk_<a6>_<a63>"),
    ("langsmith", "LANGCHAIN_API_KEY", "ls|v2_pt_<h32>_<h10>"),
    ("slack_bot", "SLACK_BOT_TOKEN", "xox|b-<d12>-<d12>-<a24>"),
    ("slack_user", "SLACK_TOKEN", "xox|p-<d12>-<d12>-<d12>-<h32>"),
    ("slack_app", "SLACK_APP_TOKEN", "xap|p-1-A<u10>-<d13>-<h64>"),
    ("slack_workspace", "SLACK_TOKEN", "xox|a-2-<a40>"),
    ("slack_config", "SLACK_TOKEN", "xox|e.xoxp-1-<u163>"),
    ("discord_bot", "DISCORD_TOKEN", "M<a23>.<b6>.<b27>"),
    ("telegram", "TELEGRAM_BOT_TOKEN", "<d10>:A|A<b33>"),
    ("sendgrid", "SENDGRID_API_KEY", "S|G.<b22>.<b43>"),
    ("mailgun", "MAILGUN_KEY", "ke|y-<h32>"),
    ("mailchimp", "MAILCHIMP_KEY", "<h32>-u|s12"),
    ("brevo", "BREVO_KEY", "xkey|sib-<h64>-<a16>"),
    ("resend", "RESEND_API_KEY", "r|e_<a8>_<a24>"),
    ("twilio_key", "TWILIO_API_KEY", "S|K<h32>"),
    ("stripe_live", "STRIPE_SECRET_KEY", "sk_|live_<a24>"),
    ("stripe_long", "STRIPE_SECRET_KEY", "sk_|live_51<a97>"),
    ("stripe_test", "STRIPE_SECRET_KEY", "sk_|test_<a99>"),
    ("stripe_restricted", "STRIPE_KEY", "rk_|live_<a24>"),
    ("stripe_webhook", "STRIPE_WEBHOOK_SECRET", "wh|sec_<a32>"),
    ("square", "SQUARE_TOKEN", "EA|AA<b60>"),
    ("square_oauth", "SQUARE_SECRET", "sq0|csp-<b43>"),
    ("square_access", "SQUARE_TOKEN", "sq0|atp-<b22>"),
    ("shopify_access", "SHOPIFY_TOKEN", "sh|pat_<h32>"),
    ("shopify_custom", "SHOPIFY_TOKEN", "sh|pca_<h32>"),
    ("shopify_private", "SHOPIFY_TOKEN", "sh|ppa_<h32>"),
    ("shopify_shared", "SHOPIFY_SECRET", "sh|pss_<h32>"),
    ("razorpay", "RAZORPAY_KEY", "rzp|_live_<a14>"),
    ("flutterwave", "FLW_SECRET", "FLW|SECK_TEST-<h32>-X"),
    ("shippo", "SHIPPO_TOKEN", "shi|ppo_live_<h40>"),
    ("easypost", "EASYPOST_KEY", "EZ|AK<a54>"),
    ("easypost_test", "EASYPOST_KEY", "EZ|TK<a54>"),
    ("duffel", "DUFFEL_TOKEN", "duf|fel_live_<b43>"),
    ("plaid", "PLAID_TOKEN", "acc|ess-sandbox-<U>"),
    ("lob", "LOB_KEY", "li|ve_<h35>"),
    ("gocardless", "GOCARDLESS_TOKEN", "li|ve_<b40>"),
    ("atlassian", "ATLASSIAN_TOKEN", "AT|ATT3<b186>"),
    ("linear", "LINEAR_API_KEY", "lin_|api_<a40>"),
    ("notion", "NOTION_TOKEN", "nt|n_<d11><a35>"),
    ("notion_legacy", "NOTION_TOKEN", "sec|ret_<a43>"),
    ("figma", "FIGMA_TOKEN", "fi|gd_<b40>"),
    ("airtable", "AIRTABLE_PAT", "pa|t<a14>.<h64>"),
    ("contentful", "CONTENTFUL_PAT", "CF|PAT-<b43>"),
    ("frameio", "FRAMEIO_TOKEN", "fi|o-u-<b64>"),
    ("typeform", "TYPEFORM_TOKEN", "tf|p_<b59>"),
    ("hubspot", "HUBSPOT_TOKEN", "pa|t-na1-<U>"),
    ("dropbox_short", "DROPBOX_TOKEN", "s|l.<b135>"),
    ("asana_pat", "ASANA_TOKEN", "1/<d16>:<h32>"),
    ("apify", "APIFY_TOKEN", "api|fy_api_<a36>"),
    ("adobe", "ADOBE_SECRET", "p8|e-<l32>"),
    ("adafruit", "ADAFRUIT_KEY", "ai|o_<a28>"),
    ("intra42", "INTRA_SECRET", "s-s|4t2ud-<h64>"),
    ("settlemint", "SETTLEMINT_TOKEN", "sm_|pat_<a16>"),
    ("authress", "AUTHRESS_KEY", "sc_<l20>.<l5>.ac|c-<l20>.<b60>"),
    ("facebook_page", "FB_TOKEN", "EA|AC<a120>"),
    ("facebook_app", "FB_TOKEN", "<d15>\u{a6}<b27>"),
    ("grafana_cloud", "GRAFANA_TOKEN", "gl|c_<a60>"),
    ("grafana_service", "GRAFANA_TOKEN", "gl|sa_<a32>_<h8>"),
    ("grafana_legacy", "GRAFANA_KEY", "eyJr|Ijoi<a90>"),
    ("newrelic_user", "NEW_RELIC_KEY", "NR|AK-<u27>"),
    ("newrelic_browser", "NEW_RELIC_KEY", "NR|JS-<h19>"),
    ("newrelic_insert", "NEW_RELIC_KEY", "NR|II-<b32>"),
    ("sentry_user", "SENTRY_AUTH_TOKEN", "snt|ryu_<h64>"),
    ("dynatrace", "DT_TOKEN", "dt0|c01.<u24>.<u64>"),
    ("posthog", "POSTHOG_KEY", "ph|x_<a43>"),
    ("maxmind", "MAXMIND_KEY", "<a6>_<a29>_m|mk"),
    ("deno", "DENO_DEPLOY_TOKEN", "dd|p_<a36>"),
    ("launchdarkly_sdk", "LD_SDK_KEY", "sd|k-<U>"),
    ("age", "AGE_KEY", "AGE-SECRET-|KEY-1<q58>"),
    ("azure_entra", "AZURE_CLIENT_SECRET", "<a3>8|Q~<b34>"),
    ("jwt", "ACCESS_TOKEN", "ey|JhbGciOiJIUzI1NiJ9.ey|J<b80>.<b43>"),
    ("zoho", "ZOHO_TOKEN", "10|00.<h32>.<h32>"),
    ("figma_oauth", "FIGMA_OAUTH", "fig|o_<b42>"),
    ("salesforce", "SF_TOKEN", "00|D<a12>!<a96>"),
    ("fireworks", "FIREWORKS_KEY", "f|w_<a24>"),
    ("newrelic_license", "NEW_RELIC_LICENSE_KEY", "<h32>FFFF|NRAL"),
];

/// Formats that only a name gives away: family, what the name begins with, form.
const NAMED: &[(&str, &str, &str)] = &[
    ("named_adafruit", "adafruit", "<l32>"),
    ("named_algolia", "algolia", "<l32>"),
    ("named_asana", "asana", "<l32>"),
    ("named_atlassian", "confluence", "<l20><h4>"),
    ("named_aws_secret", "aws_secret_access", "<s40>"),
    ("named_beamer", "beamer", "b_<l44>"),
    ("named_bitbucket", "bitbucket", "<l32>"),
    ("named_bittrex", "bittrex", "<l32>"),
    ("named_cloudflare", "cloudflare", "<l40>"),
    ("named_cloudflare_global", "cloudflare_global", "<h37>"),
    ("named_codecov", "codecov", "<l32>"),
    ("named_cohere", "cohere", "<a40>"),
    ("named_coinbase", "coinbase", "<l64>"),
    ("named_confluent", "confluent", "<l16>"),
    ("named_confluent_secret", "confluent", "<l64>"),
    ("named_contentful", "contentful", "<b43>"),
    ("named_datadog", "datadog", "<h40>"),
    ("named_datadog_api", "datadog_api", "<h32>"),
    ("named_discord", "discord", "<h64>"),
    ("named_drone", "droneci", "<l32>"),
    ("named_dropbox", "dropbox", "<l15>"),
    ("named_etsy", "etsy", "<l24>"),
    ("named_facebook", "facebook", "<h32>"),
    ("named_fastly", "fastly", "<b32>"),
    ("named_finicity", "finicity", "<h32>"),
    ("named_finnhub", "finnhub", "<l20>"),
    ("named_flickr", "flickr", "<l32>"),
    ("named_freshbooks", "freshbooks", "<l64>"),
    ("named_gitter", "gitter", "<l40>"),
    ("named_heroku", "heroku", "<U>"),
    ("named_hubspot", "hubspot", "<U>"),
    ("named_intercom", "intercom", "<b60>"),
    ("named_jfrog", "artifactory", "<l73>"),
    ("named_kraken", "kraken", "<s86>"),
    ("named_kucoin", "kucoin", "<h24>"),
    ("named_launchdarkly", "launchdarkly", "<b40>"),
    ("named_linear", "linear", "<h32>"),
    ("named_linkedin", "linkedin", "<l16>"),
    ("named_looker", "looker", "<l24>"),
    ("named_mailgun_signing", "mailgun_signing", "<h32>-<h8>-<h8>"),
    ("named_mattermost", "mattermost", "<l26>"),
    ("named_meraki", "meraki", "<h40>"),
    ("named_messagebird", "messagebird", "<l25>"),
    ("named_netlify", "netlify", "<b43>"),
    ("named_nytimes", "nytimes", "<l32>"),
    ("named_okta", "okta", "00<b40>"),
    ("named_plaid", "plaid", "<l30>"),
    ("named_rapidapi", "rapidapi", "<l50>"),
    ("named_sendbird", "sendbird", "<h40>"),
    ("named_sentry", "sentry", "<h64>"),
    ("named_snyk", "snyk", "<U>"),
    ("named_sonar", "sonar", "<l40>"),
    ("named_squarespace", "squarespace", "<U>"),
    ("named_sumologic", "sumo", "<l64>"),
    ("named_travis", "travis", "<l22>"),
    ("named_twilio", "twilio_auth", "<h32>"),
    ("named_twitch", "twitch", "<l30>"),
    ("named_twitter", "twitter", "<a45>"),
    ("named_yandex", "yandex", "YC<b38>"),
    ("named_zendesk", "zendesk", "<l40>"),
    ("named_vercel", "vercel", "<a24>"),
    ("named_lokalise", "lokalise", "<h40>"),
    ("named_shodan", "shodan", "<a32>"),
];

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
];

/// Texts with a secret of no provider; the secret stands between the bars.
const WHOLE: &[(&str, &str)] = &[
    ("url_postgres", "DATABASE_URL=postgres://svc_billing:|<a14>|@db-3.internal:5432/billing"),
    ("url_postgres", "postgresql+psycopg2://app:|<a9>#<d2>|@10.0.3.7/app"),
    ("url_mysql", "mysql://reporting:|<a16>|@mysql.prod.svc:3306/reports?ssl=true"),
    ("url_mongodb", "mongodb+srv://crawler:|<a18>|@cluster0.ab1cd.mongodb.net/pages"),
    ("url_redis", "REDIS_URL=rediss://:|<a32>|@cache.internal:6380/0"),
    ("url_amqp", "amqps://worker:|<a20>|@mq-1.internal/jobs"),
    ("url_http", "git clone https://deploy:|<a20>|@git.internal/team/app.git"),
    ("url_ftp", "ftp://backup:|<a12>|@files.internal/daily"),
    ("connection_mssql", "Server=tcp:sql1.internal,1433;Database=erp;User ID=erp_app;Password=|<a16>|;Encrypt=true;"),
    ("connection_jdbc", "jdbc:mysql://db.internal:3306/shop?user=shop&password=|<a14>|&useSSL=true"),
    ("connection_libpq", "host=db.internal port=5432 user=metrics password=|<a14>| dbname=metrics"),
    ("connection_azure_redis", "app.redis.cache.windows.net:6380,password=|<s43>=|,ssl=True,abortConnect=False"),
    ("azure_storage", "DefaultEndpointsProtocol=https;AccountName=backups;AccountKey=|<s86>==|;EndpointSuffix=core.windows.net"),
    ("curl_user", "curl -u admin:|<a14>| https://jenkins.internal/job/x/build"),
    ("slack_webhook", "https://hooks.slack.com/services/|T<u8>/B<u8>/<a24>|"),
    ("discord_webhook", "https://discord.com/api/webhooks/|<d18>/<b68>|"),
    ("teams_webhook", "https://acme.webhook.office.com/webhookb2/|<U>@<U>/IncomingWebhook/<h32>/<U>|"),
    ("bearer_header", "Authorization: Bearer |<a40>|\n"),
    ("private_key_pkcs8", "-----BEGIN PRIVATE KEY-----\n|MII<s61>\n<s64>\n<s64>\n<s20>|\n-----END PRIVATE KEY-----\n"),
    ("private_key_rsa", "key: |-----BEGIN RSA PRIVATE KEY-----\\n|MIIE<s60>\\n<s64>\\n<s30>==|\\n-----END RSA PRIVATE KEY-----"),
    ("private_key_openssh", "-----BEGIN OPENSSH PRIVATE KEY-----\n|b3BlbnNzaC1rZXktdjE<s51>\n<s70>\n<s40>|\n-----END OPENSSH PRIVATE KEY-----\n"),
    ("private_key_pgp", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n|lQWG<s60>\n<s64>\n=<s4>|\n-----END PGP PRIVATE KEY BLOCK-----\n"),
    ("private_key_putty", "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 2\n<s64>\n<s20>\nPrivate-Lines: 1\n|<s64>\n<s12>|\nPrivate-MAC: <h64>\n"),
];

/// How many texts are made of each format.
const EACH: usize = 10;

/// Texts with one secret each.
pub fn positives() -> Vec<Sample> {
    let mut draw = Draw::new(0x5EC2_E7);
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
            if let (Some(after), Some(found), Some(before)) = (parts.next(), parts.next(), parts.next()) {
                all.push(Sample::positive(Class::Secret, *family, &before.replace('\u{1}', "|"), found, after));
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
pub fn negatives() -> Vec<Sample> {
    let mut draw = Draw::new(0xC1EA_17);
    let mut all = Vec::new();
    let mut add = |family: &'static str, text: String| all.push(Sample::negative(Class::Secret, family, text));
    for _ in 0..8 {
        for (family, form) in LOOKS {
            add(family, draw.form(form));
        }
    }
    for (_, name, form) in FORMED {
        let begins: String = form.replace('|', "").chars().take_while(|letter| *letter != '<').collect();
        if begins.len() > 2 {
            add("placeholder", format!("{name}={begins}{}", "x".repeat(30)));
            add("placeholder", format!("{name}=<your-token-here>"));
            add("placeholder", format!("{name}={begins}your_token_goes_here"));
            add("variable", format!("{name}=${{{name}}}"));
            add("short", format!("the prefix `{begins}` says what kind of token it is"));
            add("ellipsis", format!("{name}={begins}..."));
        }
    }
    for (_, name, _) in NAMED {
        add("named_placeholder", format!("{name}_api_key = \"YOUR_{}_API_KEY\"", name.to_uppercase()));
        add("named_variable", format!("{name}_token: ${{{{ secrets.{}_TOKEN }}}}", name.to_uppercase()));
        add("named_call", format!("const {name}Token = config.get('{name}.credentials.token')"));
        add("named_digest", format!("{name}-sdk-4.2.1.tgz sha256: {}", draw.form("<h64>")));
        add("named_version", draw.form(&format!("\"{name}\": {{ \"version\": \"3.1.4\", \"integrity\": \"sha512-<s86>==\" }}")));
    }
    all
}

/// What is not secret though it looks like it, as forms.
const LOOKS: &[(&str, &str)] = &[
    ("uuid", "request_id=<U> took 31ms"),
    ("uuid", "\"id\": \"<U>\", \"token_count\": 812"),
    ("git_hash", "commit <h40>\nAuthor: A <a@example.org>"),
    ("git_hash", "index <h7>..<h7> 100644"),
    ("git_hash", "git checkout <h40> # last good"),
    ("lock_file", "      \"integrity\": \"sha512-<s86>==\","),
    ("lock_file", "checksum = \"<h64>\""),
    ("lock_file", "github.com/pkg/errors v0.9.1 h1:<s43>="),
    ("lock_file", "  resolved \"https://registry.example.org/ms/-/ms-2.1.3.tgz#<h40>\""),
    ("lock_file", "requests==2.32.3 --hash=sha256:<h64>"),
    ("image", "<img src=\"data:image/png;base64,iVBORw0KGgo<s400>==\">"),
    ("digest", "docker pull app@sha256:<h64>"),
    ("digest", "ETag: \"<h32>\""),
    ("digest", "md5sum: <h32>  file.bin"),
    ("hex_dump", "00000010: <h4> <h4> <h4> <h4> <h4> <h4> <h4> <h4>  ................"),
    ("fingerprint", "SHA256:<s43> deploy@host (ED25519)"),
    ("certificate", "-----BEGIN CERTIFICATE-----\nMII<s61>\n<s64>\n<s64>\n-----END CERTIFICATE-----"),
    ("public_key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<s43> me@host"),
    ("public_key", "-----BEGIN PUBLIC KEY-----\nMII<s61>\n<s64>\n-----END PUBLIC KEY-----"),
    ("minified", "function a(b,c){return b.d(c)?e[f]:g.h(c,{i:!0})}var j0=k1.<l8>(l2);"),
    ("class_name", "<div class=\"css-<l6> _<a5>__container--active\">"),
    ("asset", "/static/js/main.<h8>.chunk.js?v=<h20>"),
    ("trace", "traceparent: 00-<h32>-<h16>-01"),
    ("cursor", "nextCursor: \"<a12>\""),
    ("timestamp", "1700000<d6> 2026-01-05T08:12:44.<d6>Z"),
    ("aws_example", "aws_access_key_id = AKIA|IOSFODNN7EXAMPLE"),
    ("aws_example", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY|EXAMPLEKEY"),
    ("url_placeholder", "postgres://user:password@localhost:5432/db"),
    ("url_placeholder", "DATABASE_URL=mysql://root:root@127.0.0.1/test"),
    ("url_placeholder", "redis://:${REDIS_PASSWORD}@cache:6379"),
    ("url_placeholder", "https://<user>:<password>@example.org/x"),
    ("url_plain", "http://localhost:8080/a@b see https://example.org:8443/x"),
    ("code", "password = request.form['password']"),
    ("code", "let token = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok());"),
    ("code", "def verify_password(plain_password: str, hashed_password: str) -> bool:"),
    ("code", "private static final String SECRET_KEY_PROPERTY_NAME = \"app.security.secret-key\";"),
    ("bearer_placeholder", "Authorization: Bearer <token>"),
    ("bearer_placeholder", "curl -H \"Authorization: Bearer $TOKEN\" https://api.example.org"),
    ("key_name", "sort_key=created_at_descending_v2&primary_key=customer_identifier_01"),
    ("arn", "arn:aws:iam::<d12>:role/service-role/deployer-<l8>"),
    ("module", "org.springframework.boot.autoconfigure.security.SecurityAutoConfiguration2"),
    ("private_key_prose", "Paste the block from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY----- into the form."),
];
