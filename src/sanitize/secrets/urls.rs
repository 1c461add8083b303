//! Addresses that carry a secret: a password before `@`, or a path that is one.
//!
//! Guarantees: looks no farther than a bound behind `://`. Deliberately absent: parameters of a query, which are assignments
//! (`assign.rs`, `context.rs`).

use super::{
    assign::kinds,
    plausible::{placeholder, plausible},
    scan::{Scan, is_token},
};
use crate::sanitize::{Class, work::looked};

/// How long what stands before the host may be, in bytes.
const AUTHORITY: usize = 400;

/// The longest key in an address, in bytes.
const NODE: usize = 64;

/// Passwords that documentation uses, and passwords that everybody knows.
const KNOWN: [&[u8]; 26] = [
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
    /// `://` stands at `at`.
    pub(super) fn url(&mut self, at: usize) {
        let text = self.text;
        let scheme = text[..at]
            .iter()
            .rev()
            .take(24)
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
            .count();
        let start = at + 3;
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
        let stop = |byte: &u8| {
            byte.is_ascii_whitespace()
                || matches!(
                    byte,
                    b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | b')' | b']' | b',' | b';' | b'}'
                )
        };
        let rest = &text[path..(path + 400).min(text.len())];
        let rest = &rest[..rest.iter().position(stop).unwrap_or(rest.len())];
        let (prefix, least): (&[u8], usize) = match host {
            b"hooks.slack.com" => match rest {
                [b'/', b's', ..] => (b"/services/", 38),
                [b'/', b'w', ..] => (b"/workflows/", 38),
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
            _ if host.ends_with(b".tines.com") => (b"/webhook/", 60),
            _ if host.ends_with(b".logic.azure.com") || host.ends_with(b".logic.azure.com:443") => {
                (b"/workflows/", 60)
            }
            _ => return,
        };
        let Some(secret) = rest.strip_prefix(prefix) else {
            return;
        };
        if secret.len() >= least && plausible(secret) {
            let from = path + prefix.len();
            let rule = &self.names.webhook;
            self.hit(from..from + secret.len(), Class::Secret, rule);
        }
    }
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
        && !matches!(start, b'$' | b'<' | b'{' | b'%' | b'*')
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
    use super::super::tests::strong;

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
