//! Addresses that carry a secret: a password before `@`, or a path that is one.
//!
//! Guarantees: looks no farther than a bound behind `://`. Deliberately absent: parameters of a query, which are assignments
//! (`assign.rs`, `context.rs`).

use super::{
    bytes::is_token,
    plausible::{holds, kinds, placeholder, plausible},
    scan::Scan,
};
use crate::sanitize::{Class, work::looked};

/// How long what stands before the host may be, in bytes.
const AUTHORITY: usize = 400;

/// How far behind a quote in a password its end may stand, in bytes.
const QUOTED: usize = 32;

/// How much of an address that is a secret is judged, in bytes.
const JUDGED: usize = 400;

/// The longest key in an address, in bytes.
const NODE: usize = 64;

/// Passwords that documentation uses, and passwords that everybody knows.
const KNOWN: [&[u8]; 28] = [
    b"secret_access_key",
    b"secret_key",
    b"password",
    b"passwd",
    b"secret",
    b"pass",
    b"pwd",
    b"guest",
    b"admin",
    b"root",
    b"postgres",
    b"mysql",
    b"test",
    b"user",
    b"token",
    b"mypass",
    b"mypassword",
    b"password1",
    b"password123",
    b"pass123",
    b"secret123",
    b"admin123",
    b"test123",
    b"test1234",
    b"hunter2",
    b"p@ssw0rd",
    b"passw0rd",
    b"p4ssw0rd",
];

impl Scan<'_> {
    /// `://` stands at `at`, and an authority begins at `start`.
    pub(super) fn url(&mut self, at: usize, start: usize) {
        let text = self.text;
        let scheme = text[..at]
            .iter()
            .rev()
            .take(24)
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
            .count();
        let stop = |byte: &u8| {
            byte.is_ascii_whitespace()
                || matches!(
                    byte,
                    b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | b'/' | b'?' | b'#' | b'|'
                )
        };
        let rest = &text[start..(start + AUTHORITY).min(text.len())];
        let mut length = rest.iter().position(stop).unwrap_or(rest.len());
        looked(scheme + length);
        if scheme < 2 {
            return;
        }
        let mut authority = &rest[..length];
        if !authority.contains(&b'@')
            && rest
                .get(length)
                .is_some_and(|byte| matches!(byte, b'/' | b'?' | b'#'))
            && authority.contains(&b':')
        {
            // A password in which somebody forgot to escape these.
            let hard = |byte: &u8| {
                byte.is_ascii_whitespace()
                    || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
            };
            let end = rest
                .iter()
                .take(160)
                .position(hard)
                .unwrap_or(rest.len().min(160));
            let at_sign = rest[..end].iter().position(|byte| *byte == b'@');
            let port = authority
                .rsplit(|byte| *byte == b':')
                .next()
                .is_some_and(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit));
            if let (Some(at_sign), false) = (at_sign, port) {
                length = rest[at_sign..]
                    .iter()
                    .position(stop)
                    .map_or(rest.len(), |more| at_sign + more);
                authority = &rest[..length];
            }
        }
        if let Some(more) = quoted_within(authority, rest, text[..at - scheme].last()) {
            length = more
                + rest[more..]
                    .iter()
                    .position(stop)
                    .unwrap_or(rest.len() - more);
            authority = &rest[..length];
        }
        match authority.iter().rposition(|byte| *byte == b'@') {
            Some(end) => self.userinfo(start, &authority[..end], &authority[end + 1..]),
            None if authority.ends_with(b".infura.io") => self.node(start + length, b"/v3/"),
            None if authority.ends_with(b".g.alchemy.com") => self.node(start + length, b"/v2/"),
            None if authority.ends_with(b".alchemyapi.io") => self.node(start + length, b"/v2/"),
            None if authority.ends_with(b".quiknode.pro") => self.node(start + length, b"/"),
            None => self.webhook(start, authority, length),
        }
    }

    /// The address of a node of a chain, of which the first part of the path is a key.
    fn node(&mut self, path: usize, before: &[u8]) {
        let text = self.text;
        if !text[path..].starts_with(before) {
            return;
        }
        let start = path + before.len();
        let key = text[start..].iter().take(NODE + 1);
        let length = key.take_while(|byte| is_token(**byte)).count();
        looked(length);
        let key = &text[start..start + length];
        if (30..=NODE).contains(&length) && plausible(key) {
            let rule = &self.names.node;
            self.hit(start..start + length, Class::Secret, rule);
        }
    }

    fn userinfo(&mut self, start: usize, userinfo: &[u8], host: &[u8]) {
        let Some(colon) = userinfo.iter().position(|byte| *byte == b':') else {
            return;
        };
        let (user, password) = (&userinfo[..colon], &userinfo[colon + 1..]);
        let variable = |byte: &u8| matches!(byte, b'{' | b'}' | b'<' | b'>' | b'[' | b']');
        if password.len() < 3
            || host.is_empty()
            || password.iter().any(variable)
            || matches!(password[0], b'$' | b'%' if password.len() < 3 || !password[1].is_ascii_hexdigit())
        {
            return;
        }
        if password
            .iter()
            .all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X'))
        {
            return;
        }
        let value = start + colon + 1..start + userinfo.len();
        let own =
            user.eq_ignore_ascii_case(password) || (user.is_empty() && password.contains(&b':'));
        let sidekiq = host.ends_with(b".contribsys.com");
        let sure = sidekiq || (strong(password) && !own && !placeholder(password));
        let class = if sure {
            Class::Secret
        } else {
            Class::WeakSecret
        };
        let rule = &self.names.url;
        self.hit(value, class, rule);
    }

    /// Addresses that anybody may post to who knows them.
    fn webhook(&mut self, start: usize, host: &[u8], length: usize) {
        let text = self.text;
        let path = start + length;
        let mut letters = text[path..].iter().take(4);
        let (prefix, least): (&[u8], usize) = match host {
            b"hooks.slack.com" => match letters.find(|byte| byte.is_ascii_alphabetic()) {
                Some(b's') => (b"/services/", 38),
                Some(b'w') => (b"/workflows/", 38),
                _ => (b"/triggers/", 30),
            },
            b"discord.com" | b"discordapp.com" | b"canary.discord.com" | b"ptb.discord.com" => {
                (b"/api/webhooks/", 70)
            }
            b"hooks.zapier.com" => (b"/hooks/catch/", 12),
            b"api.telegram.org" => (b"/bot", 40),
            b"chat.googleapis.com" => (b"/v1/spaces/", 60),
            b"open.feishu.cn" | b"open.larksuite.com" => (b"/open-apis/bot/v2/hook/", 30),
            b"qyapi.weixin.qq.com" => (b"/cgi-bin/webhook/send?key=", 30),
            b"oapi.dingtalk.com" => (b"/robot/send?access_token=", 50),
            b"maker.ifttt.com" => (b"/trigger/", 30),
            b"hook.eu1.make.com"
            | b"hook.us1.make.com"
            | b"hook.eu2.make.com"
            | b"hook.us2.make.com"
            | b"hook.integromat.com" => (b"/", 28),
            b"outlook.office.com" | b"outlook.office365.com" => (b"/webhook/", 100),
            _ if host.ends_with(b".webhook.office.com") => (b"/webhookb2/", 100),
            _ if holds(host, b"mattermost") => (b"/hooks/", 26),
            _ if host.ends_with(b".tines.com") => (b"/webhook/", 60),
            _ if host.ends_with(b".logic.azure.com") || host.ends_with(b".logic.azure.com:443") => {
                (b"/workflows/", 60)
            }
            _ => return,
        };
        let end = self.ends.address.after(text, path, end_of_address);
        let rest = &text[path..end];
        let Some(secret) = behind_path(rest, prefix) else {
            return;
        };
        let from = path + rest.len() - secret.len();
        let secret = match prefix {
            // Behind lists of them and pages about them other things lie there, too.
            b"/hooks/" => {
                let id = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                let id = &secret[..secret.iter().take_while(id).count()];
                if id.len() > least { &id[..0] } else { id }
            }
            _ => secret,
        };
        // Many addresses may stand in one that goes on.
        if secret.len() >= least && plausible(&secret[..secret.len().min(JUDGED)]) {
            let rule = &self.names.webhook;
            self.hit(from..from + secret.len(), Class::Secret, rule);
        }
    }
}

/// Where an address ends, whose slashes may be escaped.
fn end_of_address(rest: &[u8]) -> Option<usize> {
    let ends = |at: &usize| match rest[*at] {
        b'\\' => rest.get(at + 1) != Some(&b'/'),
        byte => {
            !byte.is_ascii_graphic()
                || matches!(
                    byte,
                    b'"' | b'\'' | b'<' | b'>' | b'`' | b')' | b']' | b',' | b';' | b'}'
                )
        }
    };
    (0..rest.len()).find(ends)
}

/// What stands behind this path, whose slashes may be escaped.
fn behind_path<'t>(mut rest: &'t [u8], path: &[u8]) -> Option<&'t [u8]> {
    for part in path.split_inclusive(|byte| *byte == b'/') {
        let (slash, name) = part.split_last()?;
        rest = match slash {
            b'/' => {
                let rest = rest.strip_prefix(name)?;
                rest.strip_prefix(b"/").or(rest.strip_prefix(b"\\/"))?
            }
            _ => rest.strip_prefix(part)?,
        };
    }
    Some(rest)
}

/// Where the `@` stands behind a quote in a password: the address ends behind the authority that is known, since it has none, and a
/// quote follows that is not the one `before` the address.
fn quoted_within(authority: &[u8], rest: &[u8], before: Option<&u8>) -> Option<usize> {
    let (end, quote) = (authority.len(), rest.get(authority.len())?);
    let sign = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    if !sign(quote) || before == Some(quote) || authority.contains(&b'@') {
        return None;
    }
    let colon = authority.iter().rposition(|byte| *byte == b':')?;
    if authority[colon + 1..].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let within = rest[end + 1..].iter().take(QUOTED);
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.!$%^&*+".contains(*byte);
    let length = within.take_while(part).count();
    looked(length);
    let at = end + 1 + length;
    let host = || rest.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
    (length > 0 && rest.get(at) == Some(&b'@') && host()).then_some(at)
}

/// Whether somebody may use it as a password in earnest.
pub(super) fn strong(password: &[u8]) -> bool {
    let known = KNOWN
        .iter()
        .any(|known| password.eq_ignore_ascii_case(known));
    let start = password.first().copied().unwrap_or(b' ');
    // Of seven characters few are words with numbers behind them where a letter follows a digit.
    let mixed = || {
        let mut pairs = password.windows(2);
        pairs.any(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
    };
    (password.len() >= 8 || password.len() == 7 && mixed())
        && !known
        && kinds(password) >= 2
        && !plain(password)
        && !matches!(start, b'$' | b'<' | b'{' | b'%')
        && !password.starts_with(b"**")
}

/// Whether it is a short word or two in small letters with a sign between, as in tests of signs: `pass;word`, `bar%25bar`.
fn plain(password: &[u8]) -> bool {
    let mut rest = password;
    let mut letters = 0;
    while let Some((first, more)) = rest.split_first() {
        rest = match first {
            b'%' if more.len() > 1 && more[..2].iter().all(u8::is_ascii_hexdigit) => &more[2..],
            b'0'..=b'9' | b'A'..=b'Z' | 0x80.. => return false,
            _ => more,
        };
        letters += u32::from(first.is_ascii_lowercase());
    }
    letters < 12
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong};

    #[test]
    fn addresses_in_json_with_escaped_slashes_are_told() {
        let password = &body()[..14];
        let text = format!("{{\"url\":\"postgres:\\/\\/app:{password}@db.corp\\/x\"}}");
        assert_eq!(strong(&text), [password]);
        let secret = format!("8217364509182736455\\/{}", body().repeat(2));
        let text = format!("\"https:\\/\\/discord.com\\/api\\/webhooks\\/{secret}\"");
        assert_eq!(strong(&text), [secret]);
        let secret = "24k00gkpfcq9nedk7c6qdn2oy1";
        for host in ["mattermost.example.net", "chat.mattermost.corp"] {
            let text = format!("post to https://{host}/hooks/{secret}");
            assert_eq!(strong(&text), [secret], "{host}");
        }
        let link = format!("[a](https://mattermost.corp/hooks/{secret}).");
        assert_eq!(strong(&link), [secret]);
        for other in [
            format!("https://git.example.net/hooks/{secret}"),
            format!("https://mattermost.corp/hooks/{secret}0"),
            "https://mattermost.corp/hooks/list?page=2&per_page=60&team=abc12".to_owned(),
        ] {
            assert_eq!(strong(&other), [""; 0], "{other}");
        }
        assert_eq!(strong("{\"path\":\"C:\\/\\/a:b1C2d3E4f5@x\"}"), [""; 0]);
    }

    #[test]
    fn the_address_of_a_webhook_is_told_whole_and_ends_where_plain_letters_do() {
        for length in [60, 368, 369, 370, 371, 800] {
            let secret = format!("T0A1B2C3D/B0E4F5G6H/{}", body().repeat(30));
            let secret = &secret[..length];
            for behind in ["", "é", "🚀 and so on", "\u{201D}", " b"] {
                let text = format!("https://hooks.slack.com/services/{secret}{behind}");
                assert_eq!(strong(&text), [secret], "{text}");
            }
        }
    }

    #[test]
    fn a_quote_in_a_password_is_of_it_unless_the_address_stands_in_such() {
        let body = body();
        let (first, last) = (&body[..10], &body[10..14]);
        for quote in ["'", "\"", "`"] {
            let password = format!("{first}{quote}{last}");
            let url = format!("mysql://root:{password}@db.corp/a");
            assert_eq!(strong(&format!("url={url}")), [password.as_str()], "{url}");
            let other = if quote == "'" { "\"" } else { "'" };
            assert_eq!(strong(&format!("{other}{url}{other}")), [password]);
        }
        for list in [
            "server=redis://cache1:6379'oncall.Team7@corp.example",
            "['a://b:c1D2e3F4g5','d@e']",
            "'a://b:c1D2e3F4g5' d@e",
        ] {
            assert_eq!(strong(list), [""; 0], "{list}");
        }
    }

    #[test]
    fn the_key_in_the_address_of_a_node_is_told() {
        let key = "9f86d081884c7d65".repeat(2);
        for address in [
            "https://mainnet.infura.io/v3/",
            "wss://eth-mainnet.g.alchemy.com/v2/",
            "https://a-b-c.quiknode.pro/",
        ] {
            assert_eq!(strong(&format!("{address}{key}/x")), [key.as_str()]);
        }
        for text in [
            "https://mainnet.infura.io/v3/YOUR-PROJECT-ID".to_owned(),
            format!("https://mainnet.infura.io/v2/{key}"),
            format!("https://files.example.org/v3/{key}"),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }
}
