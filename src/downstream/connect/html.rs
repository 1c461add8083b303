//! The pages themselves: plain HTML with one style sheet in it, nothing from anywhere else, readable without either.
//!
//! Guarantees: whatever is put in is escaped.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::connect::{Done, Prompt};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto 4rem;padding:0 1.25rem}\
h1{font-size:1.4rem;line-height:1.25;margin:0 0 1rem}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1rem;margin:1.25rem 0;padding:1rem;border:1px solid #8886;border-radius:.5rem}\
dt{opacity:.7}dd{margin:0;font-weight:600;overflow-wrap:anywhere}\
p.care{font-size:.925rem;opacity:.85}\
button,a.go{display:inline-block;font:inherit;font-weight:600;padding:.6rem 1.4rem;border:0;border-radius:.5rem;background:#1a56c4;color:#fff;text-decoration:none;cursor:pointer}\
button:focus-visible,a.go:focus-visible{outline:3px solid #1a56c488;outline-offset:2px}";

/// What pages may do: show this style, and send their own form back here.
pub(super) fn policy() -> String {
    let style = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

/// Whose login it is, and the way on. In a browser that is not `known` to be theirs they have to say that it is their own.
pub(super) fn prompt(prompt: &Prompt, link: &str, token: &str, known: bool) -> String {
    let confirm = if known {
        String::new()
    } else {
        format!(
            "<p><label><input type=\"checkbox\" name=\"mine\" value=\"yes\" required> I am <strong>{}</strong>, and I asked for this just now.</label></p>",
            escaped(&prompt.who),
        )
    };
    let upstream = escaped(prompt.upstream.as_str());
    let mut facts = format!(
        "<dt>For</dt><dd>{}</dd><dt>Connects</dt><dd>{upstream}</dd><dt>You log in at</dt><dd>{}</dd>",
        escaped(&prompt.who),
        escaped(&prompt.server),
    );
    if !prompt.scopes.is_empty() {
        let scopes = escaped(&prompt.scopes.join(" "));
        facts.push_str("<dt>Asks for</dt><dd>");
        facts.push_str(&scopes);
        facts.push_str("</dd>");
    }
    page(
        &format!("Connect {upstream}"),
        "",
        &format!(
            "<p>A program that uses this gateway called a tool of <strong>{upstream}</strong>, which needs an account there.</p>\
             <dl>{facts}</dl>\
             <p class=\"care\">Go on only if you are the one named above and have just asked for this yourself. Whoever is named above will be able to use the account that you log in with.</p>\
             <form method=\"post\" action=\"/connect\"><input type=\"hidden\" name=\"login\" value=\"{}\"><input type=\"hidden\" name=\"token\" value=\"{}\">{confirm}<button>Continue</button></form>",
            escaped(link),
            escaped(token),
        ),
    )
}

/// On the way. Not a redirect: browsers hold the policy on forms against those, wherever a login leads in the end.
pub(super) fn leaving(url: &str) -> String {
    let url = escaped(url);
    page(
        "On to the login",
        &format!("<meta http-equiv=\"refresh\" content=\"0;url={url}\">"),
        &format!("<p><a class=\"go\" rel=\"noreferrer\" href=\"{url}\">Go on</a></p>"),
    )
}

/// All is well.
pub(super) fn done(done: &Done) -> String {
    page(
        "Connected",
        "",
        &format!(
            "<p><strong>{}</strong> is connected for <strong>{}</strong>.</p><p>You can close this window and go back to where you came from.</p>",
            escaped(done.upstream.as_str()),
            escaped(&done.who),
        ),
    )
}

/// Something else to say.
pub(super) fn notice(title: &str, text: &str) -> String {
    page(&escaped(title), "", &format!("<p>{}</p>", escaped(text)))
}

/// `title`, `head` and `body` are HTML.
fn page(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"robots\" content=\"noindex\">{head}<title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>{body}</main></body></html>\n"
    )
}

/// Text, for between tags and inside quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Nothing may turn the direction of the text around, or hide in it.
            c if c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}') =>
            {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::UpstreamId;

    #[test]
    fn whatever_is_shown_is_text_and_nothing_else() {
        let hostile = "<script>\"'&\u{202e}\n";
        let shown = prompt(
            &Prompt {
                who: hostile.into(),
                upstream: UpstreamId::parse("github").unwrap(),
                server: hostile.into(),
                scopes: vec![hostile.into()],
            },
            hostile,
            hostile,
            false,
        );
        assert!(!shown.contains("<script"), "{shown}");
        assert!(!shown.contains('\u{202e}') && !shown.contains("\"'&"));
        assert_eq!(
            shown
                .matches("&lt;script&gt;&quot;&#39;&amp;\\u{202e}\\u{a}")
                .count(),
            6
        );
        let leaving = leaving("https://a/?x=1&y=\"><script>");
        assert!(!leaving.contains("<script") && leaving.contains("x=1&amp;y=&quot;&gt;"));
    }

    #[test]
    fn the_policy_names_the_style_and_lets_nothing_else_in() {
        let policy = policy();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"));
        for part in [
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"));
    }
}
