//! Values that are given away by what stands right beside them.
//! Such are the signature of an address, the second half of a pair of keys, a password in front of a host.
//!
//! Guarantees: looks no farther than a bound around the value. Deliberately absent: values with a name (`context.rs`).

use std::ops::Range;

use super::{
    bytes::is_token,
    commands::is_run,
    plausible::{holds, placeholder, plausible},
    scan::Scan,
    urls::strong,
};
use crate::sanitize::{Class, work::looked};

/// How far before a signature what it signs may begin, in bytes.
const SIGNED: usize = 400;
/// How long a signature is, with escapes, in bytes.
const SIGNATURE: std::ops::RangeInclusive<usize> = 43..=80;
/// The same for a file in Google's storage, by a key of RSA.
const SIGNATURE_OF_RSA: std::ops::RangeInclusive<usize> = 100..=900;
/// How far behind the name of a key the key may stand, in bytes.
const PAIR: usize = 12;
/// How far before who logs in the program may stand, in bytes.
const SCHEME: usize = 64;
/// The most blanks between the number of an account and its token.
const BLANKS: usize = 8;
/// The longest of a user and a password before a host, and the longest host, in bytes.
const LOGIN: usize = 160;
const HOST: usize = 96;

/// Programs of Oracle that are told who logs in.
const ORACLE: [&[u8]; 7] = [
    b"sqlplus", b"sqlldr", b"expdp", b"impdp", b"exp", b"imp", b"rman",
];

impl Scan<'_> {
    /// Whether the run of token characters from `start` to `end` is told by what stands beside it.
    pub(super) fn beside(&mut self, start: usize, end: usize) -> bool {
        match start.checked_sub(1).map(|at| self.text[at]) {
            Some(b'=' | b'%') if self.signature(start, end) => true,
            Some(b'"' | b'\'') if end - start == 32 && self.behind_account(start, end) => true,
            _ => end - start <= 40 && self.aws_secret_behind_key_id(start, end),
        }
    }

    /// `sv=...&se=...&sig=...` and `SharedAccessSignature sr=...&sig=...`, which may be used by whoever has it.
    fn signature(&mut self, start: usize, end: usize) -> bool {
        let text = self.text;
        // Most stand behind other names.
        if let Some([last, b'=']) = text[..start].last_chunk()
            && !matches!(last, b'g' | b'e')
        {
            return false;
        }
        let part = |byte: &&u8| is_token(**byte) || **byte == b'%';
        let back = text[..start].iter().rev().take(64).take_while(part).count();
        let from = start - back;
        let azure = text[..from].ends_with(b"sig=");
        if !azure && !text[..from].ends_with(b"&Signature=") {
            return false;
        }
        let (lengths, rule) = if azure {
            (SIGNATURE, &self.names.signature)
        } else {
            (SIGNATURE_OF_RSA, &self.names.signed)
        };
        let most = *lengths.end();
        let more = text[end..].iter().take(most).take_while(part).count();
        let value = from..end + more;
        let before = &text[from.saturating_sub(SIGNED)..from];
        looked(back + more + before.len());
        let signed = if azure {
            // Where nothing else is known, those of queues say so before their address.
            holds(before, b"sv=20") && holds(before, b"se=")
                || holds(before, b"sharedaccesssignature sr=")
        } else {
            holds(before, b"googleaccessid=") && holds(before, b"expires=")
        };
        if !signed || !lengths.contains(&value.len()) || !plausible(&text[value.clone()]) {
            return false;
        }
        self.hit(value, Class::Secret, rule);
        true
    }

    /// `@` stands at `at`, perhaps before a host: `user:password@tcp(host)` of Go, `user/password@host` of Oracle, which is known by
    /// its scheme, its port or its programs.
    pub(super) fn before_host(&mut self, at: usize) {
        let text = self.text;
        if let Some(start) = self.behind_driver(at) {
            if !self.is_taken(start) {
                self.password_in_front(start..at);
            }
            return;
        }
        let part = |byte: &&u8| byte.is_ascii_graphic() && !b"\"'`<>(){}@".contains(*byte);
        let back = text[..at].iter().rev().take(LOGIN);
        let word = &text[at - back.take_while(part).count()..at];
        looked(word.len());
        let host = &text[at + 1..];
        let go = host.starts_with(b"tcp(") || host.starts_with(b"unix(");
        let user = if go {
            user_of_go(word)
        } else {
            memchr::memchr(b'/', word)
        };
        let Some(user) = user else { return };
        // A path goes on.
        if !go && word[user + 1..].contains(&b'/') {
            return;
        }
        let start = at - word.len() + user + 1;
        if !self.is_taken(start)
            && strong(&text[start..at])
            && (go || self.is_of_oracle(&word[..user], at))
        {
            self.password_in_front(start..at);
        }
    }

    /// Where the password before `at` begins, if Oracle's driver is told it: it may hold what else would end a word.
    fn behind_driver(&mut self, at: usize) -> Option<usize> {
        let text = self.text;
        let user = self.driver.before(text, at)?;
        if at - user > LOGIN || !text[user..at].iter().all(u8::is_ascii_graphic) {
            return None;
        }
        looked(at - user);
        // An address without a user begins with `@`.
        let sign = memchr::memchr2(b'/', b'@', &text[user..at])?;
        let start = user + sign + 1;
        (text[start - 1] == b'/' && !text[start..at].contains(&b'@')).then_some(start)
    }

    /// Whether what stands before `at` and begins with this is sent to a database of Oracle.
    fn is_of_oracle(&self, user: &[u8], at: usize) -> bool {
        let text = self.text;
        let host = &text[at + 1..(at + 1 + HOST).min(text.len())];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,".contains(byte);
        let end = host.iter().position(ends);
        let host = &host[..end.unwrap_or(host.len())];
        looked(user.len() + host.len());
        let own = |byte: &u8| is_token(*byte) || *byte == b'=';
        user.iter().all(own)
            && (holds(host, b":1521/") || holds(host, b":1521:") || {
                let line = &text[at.saturating_sub(SCHEME + LOGIN)..at];
                looked(line.len());
                let line = &line[memchr::memrchr(b'\n', line).map_or(0, |at| at + 1)..];
                // `const exp = `: names of programs are names of other things, too.
                let assigned = holds(line, b" = ") || holds(line, b" := ");
                !assigned && ORACLE.iter().any(|program| is_run(line, program))
            })
    }

    /// Whether a password in front of a host is one in earnest.
    pub(super) fn password_in_front(&mut self, span: Range<usize>) -> bool {
        let value = &self.text[span.clone()];
        if !strong(value) || placeholder(value) || is_named(value) {
            return false;
        }
        let rule = &self.names.connection;
        self.hit(span, Class::Secret, rule);
        true
    }

    /// `("AC...", "...")`: the token of an account of Twilio, given with its number.
    fn behind_account(&mut self, start: usize, end: usize) -> bool {
        let text = self.text;
        let hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
        let quote = text[start - 1];
        let blanks = text[..start - 1].iter().rev().take(BLANKS);
        let blanks = blanks.take_while(|byte| **byte == b' ').count();
        let before = text[..start - 1 - blanks]
            .strip_suffix(b",")
            .and_then(|it| it.strip_suffix(&[quote]));
        let Some((_, number)) = before.and_then(<[u8]>::split_last_chunk::<34>) else {
            return false;
        };
        let token = &text[start..end];
        let whole = hex(token) && text.get(end) == Some(&quote);
        if !number.starts_with(b"AC") || !hex(&number[2..]) || !whole || !plausible(token) {
            return false;
        }
        let rule = &self.names.account;
        self.hit(start..end, Class::Secret, rule);
        true
    }

    /// A secret key of AWS right behind the name of it.
    fn aws_secret_behind_key_id(&mut self, start: usize, end: usize) -> bool {
        let Some(before) = self.hits.last().map(|hit| hit.span.end) else {
            return false;
        };
        if start < before || start - before > PAIR + 40 {
            return false;
        }
        let text = self.text;
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'/' | b'+');
        let back = text[before..start].iter().rev().take_while(part).count();
        let more = text[end..].iter().take(41).take_while(part).count();
        let value = start - back..end + more;
        looked(back + more);
        let named = self.hits.last().is_some_and(|hit| {
            hit.rule.as_ref() == "aws_access_key_id" && value.start - hit.span.end <= PAIR
        });
        if !named || value.len() != 40 || !plausible(&text[value.clone()]) {
            return false;
        }
        let rule = &self.names.pair;
        self.hit(value, Class::Secret, rule);
        true
    }
}

/// The last name of Oracle's driver before a place. Callers ask in rising order.
#[derive(Default)]
pub(super) struct Driver {
    /// Up to where it was searched.
    searched: usize,
    /// Where it ends.
    last: Option<usize>,
}

impl Driver {
    const NAME: &[u8] = b"jdbc:oracle:";

    /// Where the last one before `at` ends.
    fn before(&mut self, text: &[u8], at: usize) -> Option<usize> {
        // The name may lie across where the last search ended.
        let from = self.searched.saturating_sub(Self::NAME.len() - 1);
        looked(at.saturating_sub(from));
        if let Some(found) = memchr::memmem::rfind(text.get(from..at)?, Self::NAME) {
            self.last = Some(from + found + Self::NAME.len());
        }
        self.searched = at;
        self.last
    }
}

/// Where the user ends in `user:password`, as drivers of Go have it, behind whatever goes before.
fn user_of_go(word: &[u8]) -> Option<usize> {
    let from = memchr::memmem::rfind(word, b"://").map_or(0, |at| at + 3);
    memchr::memchr_iter(b':', word).find(|end| {
        let user = word[from.min(*end)..*end].iter().rev();
        let length = user.take_while(|byte| is_token(**byte)).count();
        // Not the hour of a time.
        length > 0 && word[end - length].is_ascii_alphabetic()
    })
}

/// Whether this stands for a password by its name: `DB_PASSWORD`, `&&sysPassword`, `!ORACLE_PWD!`.
fn is_named(value: &[u8]) -> bool {
    let digits = value.iter().any(u8::is_ascii_digit);
    let given = value.starts_with(b"&") || value.starts_with(b"!") && value.ends_with(b"!");
    !digits && (given || holds(value, b"password") || holds(value, b"passwd"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong};

    #[test]
    fn a_signature_is_told_where_what_it_signs_stands_before_it() {
        let signature = format!("{}%2Fx9{}%3D", &body()[..9], &body()[2..30]);
        let signed = format!("sv=2022-11-02&se=2025-03-10T14:58:25Z&sp=r&sig={signature}");
        assert_eq!(
            strong(&format!(
                "https://acct.blob.core.windows.net/c?{signed}&x=1"
            )),
            [signature.as_str()]
        );
        assert_eq!(strong(&format!("sp=r&sig={signature}")), [""; 0]);
        let of = |kind: &str| format!("{kind} sr=https%3A%2F%2Fq.example&sig={signature}&skn=a");
        assert_eq!(strong(&of("SharedAccessSignature")), [signature.as_str()]);
        assert_eq!(strong(&of("Signature")), [""; 0]);
    }

    #[test]
    fn the_token_of_an_account_is_told_behind_its_number() {
        let (hex, token) = (
            "9f86d081884c7d659a1fb2e93c07d4a6",
            "63e1cf2b9d048a75e0b29f4417dc5a38",
        );
        for text in [
            format!("require('twilio')('AC{hex}', '{token}')"),
            format!("Client(\"AC{hex}\",\"{token}\")"),
        ] {
            assert_eq!(strong(&text), [token], "{text}");
        }
        for text in [
            format!("f('AB{hex}', '{token}')"),
            format!("f('AC{hex}' or '{token}')"),
            format!("f('AC{}', '{token}')", &hex[1..]),
            format!("f('AC{hex}', '{token}-1')"),
            format!("f('AC{hex}', '{}')", "0123456789abcdef".repeat(2)),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_signature_of_rsa_is_told_where_it_says_who_signed() {
        let signature = format!("{}%2B{}%3D", body().repeat(4), body().repeat(4));
        let url = |who: &str| {
            format!(
                "https://storage.googleapis.com/b/r.zip?{who}=a@p.iam&Expires=1799999999&Signature={signature}"
            )
        };
        assert_eq!(strong(&url("GoogleAccessId")), [signature.as_str()]);
        assert_eq!(strong(&url("Author")), [""; 0]);
    }

    #[test]
    fn a_password_in_front_of_a_host_is_told() {
        let password = &body()[..14];
        for text in [
            format!("svc:{password}@tcp(db1:3306)/erp"),
            format!("12:30:45,dsn=mysql://svc:{password}@tcp(db1:3306)/erp"),
            format!("jdbc:oracle:thin:svc/{password}@//db1:1521/ORCL"),
            format!("jdbc:oracle:oci:svc/{password}@ORCL"),
            format!("sqlplus svc/{password}@ORCL"),
            format!("$ sqlldr userid=svc/{password}@ORCL control=load.ctl"),
            format!("connect(\"svc/{password}@db1:1521/ORCL\")"),
        ] {
            assert_eq!(strong(&text), [password], "{text}");
            let short = text.replace(password, "k3Vq%21Zt9");
            assert_eq!(strong(&short), ["k3Vq%21Zt9"], "{short}");
        }
        let odd = format!("{password}/(q]'");
        let text = format!("url=jdbc:oracle:thin:svc/{odd}@//db1:1521/ORCL");
        assert_eq!(strong(&text), [odd.as_str()], "{text}");
        for text in [
            format!("see docs/{password}@v2"),
            format!("see sqlplus\ndocs/{password}@v2"),
            format!("see docs/a/{password}@db1:1521/v2"),
            format!("see docs/{password}@db1:1522/v2"),
            format!("svc:{password}@tcp.example"),
            "mysql://root:password@tcp(127.0.0.1:3306)/db".to_owned(),
            "12:30:45,dsn=root:password@tcp(db:3306)/x".to_owned(),
            "DB_USER:DB_PASSWORD@tcp(DB_HOST:3306)/DB_NAME".to_owned(),
            "sqlplus system/&&sysPassword@XE".to_owned(),
            "jdbc:oracle:thin:scott/tiger@//localhost:1521/orcl,ops1@example.com".to_owned(),
            "const exp = \"docker/build-push-action@v5\";".to_owned(),
            "[\"docker/build-push-action@v5\",\"jdbc:oracle:thin:@db1:1521/ORCL\"]".to_owned(),
            format!("jdbc:oracle:thin:@//db1:1521/{password}?to=ops@example.com"),
            "sqlplus scott/tiger@localhost:1521/orcl".to_owned(),
            "root:password@tcp(127.0.0.1:3306)/test".to_owned(),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_second_of_a_pair_is_told_right_behind_the_first() {
        let name = ["AK", "IA5Z47PQWVOK5OETO5"].concat();
        let key = format!("{}/{}", &body()[..20], &body()[17..]);
        assert_eq!(key.len(), 40);
        for between in [" ", ":", ", ", "\n"] {
            let text = format!("{name}{between}{key}");
            assert_eq!(strong(&text), [name.as_str(), &key], "{text}");
        }
        assert_eq!(strong(&format!("{name} is not {key}x")), [name.as_str()]);
        assert_eq!(strong(&format!("object {key}")), [""; 0]);
    }
}
