//! Assignments: passwords, connection strings and headers that authenticate.
//!
//! Guarantees: looks no farther than a bound around each assignment. Deliberately absent: values that look drawn at random
//! and are not called a password (`context.rs`), and manifests (`manifest.rs`).

use std::ops::Range;

use super::{
    bytes::{ends_with, is_token},
    grammar::earnest,
    plausible::{PASSWORD, holds, is_path, kinds, placeholder, plausible, random},
    public::{begins_encrypted, name_at_end},
    scan::Scan,
    settings::{AROUND, is_argument, is_in_file, is_of_packages, is_variable},
    urls::strong,
    value::{backslashes, end_of_quoted, end_of_word},
};
use crate::sanitize::{Class, survey::is_telling, work::looked};

/// Schemes that authenticate whoever has the token.
const BEARERS: [&[u8]; 9] = [
    b"bearer",
    b"token",
    b"apikey",
    b"key",
    b"bot",
    b"ssws",
    b"geniekey",
    b"accesskey",
    b"splunk",
];
/// The longest scheme, in bytes, and the most between it and the name of the header.
const SCHEME: usize = 12;
const BETWEEN: usize = 64;
/// How far before a password whose it is may begin, in bytes.
const USER: usize = 112;

/// What else stands in a connection string.
const CONNECTION: [&[u8]; 16] = [
    b"server=",
    b"host=",
    b"data source=",
    b"jdbc:",
    b"endpoint=",
    b"driver=",
    b"database=",
    b"initial catalog=",
    b"dbname=",
    b"user id=",
    b"uid=",
    b"abortconnect=",
    b"accountname=",
    b":6380",
    b":6379,",
    b":8123/?",
];

impl Scan<'_> {
    /// `=` or `:` stands at `at`.
    pub(super) fn assignment(&mut self, at: usize, flagged: bool) {
        let text = self.text;
        if at < 2 || self.is_taken(at) {
            return;
        }
        if text[at] == b':' {
            // Some write JSON with slashes escaped.
            let slashes = match &text[at + 1..] {
                [b'/', b'/', ..] => 2,
                [b'\\', b'/', b'\\', b'/', ..] => 4,
                _ => 0,
            };
            if slashes > 0 {
                self.url(at, at + 1 + slashes);
                return;
            }
        }
        // What most names end with says nothing. The survey has left most of these out.
        if text[at - 1].is_ascii_alphanumeric() && !is_telling(text[at - 2], text[at - 1]) {
            if flagged && text[at] == b':' {
                self.user_of_curl(at);
            }
            return;
        }
        let mut end = at;
        while end > 1 && at - end < 4 && matches!(text[end - 1], b' ' | b'"' | b'\'' | b'\\' | b']')
        {
            end -= 1;
        }
        if end < 2 {
            return;
        }
        let last = [text[end - 2] | 0x20, text[end - 1] | 0x20];
        match &last {
            b"rd" | b"wd" | b"ss" | b"se" => self.password(at, end),
            b"ue" => self.attribute(at, end),
            b"on" if text[at] == b':' => self.authorization(at, end),
            b"th" => self.registry(at, end),
            b"nd" if text[at] == b':' => self.manifest(at, end),
            _ => {}
        }
        // The name of a user may end so, too.
        if flagged && end == at && text[at] == b':' && !self.is_taken(at + 1) {
            self.user_of_curl(at);
        }
    }

    fn password(&mut self, at: usize, end: usize) {
        let names: [&[u8]; 5] = [b"password", b"passwd", b"passphrase", b"pwd", b"pass"];
        let Some(name) = names.iter().find(|name| ends_with(&self.text[..end], name)) else {
            return;
        };
        let start = end - name.len();
        let before = start.checked_sub(1).map_or(b' ', |at| self.text[at]);
        if name.len() < 6 && before.is_ascii_lowercase() && !self.text[start].is_ascii_uppercase() {
            return;
        }
        self.password_after(at, start);
    }

    /// `<add key="ClearTextPassword" value="..." />`
    fn attribute(&mut self, at: usize, end: usize) {
        let before = &self.text[end.saturating_sub(40)..end];
        if ends_with(before, b"value") && (holds(before, b"password\"") || holds(before, b"pwd\""))
        {
            self.password_after(at, end);
        }
    }

    /// What stands behind the assignment at `at` to a name that begins at `name`.
    fn password_after(&mut self, at: usize, name: usize) {
        let Some((mut value, quoted)) = self.value_after(at) else {
            return;
        };
        // What is judged ends where a value in source does; what is taken out ends where its reader takes it to end.
        let mut whole = value.end;
        let parted = matches!(self.text[..name].last(), Some(b';'));
        if parted && let Some(braced) = self.braced(value.start) {
            whole = braced.end;
            value = braced;
        } else if !quoted {
            whole = self.end_of_assigned(name, at, value.end);
            // Where semicolons part what is connected to, `&` is of a password.
            if parted && self.text.get(value.end) == Some(&b'&') {
                value.end = whole;
            }
        }
        let bytes = &self.text[value.clone()];
        if !(6..=PASSWORD).contains(&bytes.len())
            || is_code(bytes, quoted)
            || !varied(bytes)
            || placeholder(bytes)
            || begins_encrypted(bytes)
        {
            return;
        }
        let lettered = bytes
            .iter()
            .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b'-' | b':'));
        let line = name.saturating_sub(AROUND)..(value.end + AROUND / 2).min(self.text.len());
        let joined = matches!(
            self.text[..name].trim_ascii_end().last(),
            Some(b';' | b',' | b'&' | b'?')
        ) || self.text.get(value.end) == Some(&b';')
            || name.checked_sub(1).is_some_and(|at| self.text[at] == b' ');
        let around = &self.text[line];
        looked(around.len());
        let connects = joined
            && !quoted
            && self.text[at] == b'='
            && CONNECTION.iter().any(|part| holds(around, part));
        // A whole secret as a string, the settings of a registry, what Java logs in with, and a statement about a user: there
        // nothing else is called so.
        let said = |parts: &[&[u8]]| parts.iter().any(|part| holds(around, part));
        let stands = || {
            ends_with(&self.text[..name], b"/:_")
                || ends_with(&self.text[..name], b"datasource.")
                || self.is_told_a_program(name)
                || quoted && self.text[at] == b'=' && is_argument(self.text, name, value.end)
                || is_variable(&self.text[..at])
                || is_in_file(self.text, name)
                || is_of_packages(around)
                || said(&[
                    b"\"secretstring\"",
                    b"\"auths\"",
                    b"loginmodule required",
                    b"publishmethod=",
                ])
                || is_of_mail(bytes)
                    && said(&[b"email-smtp", b"amazonses", b"ses_smtp", b"sessmtp"])
                || self.text[value.start - 1] == b'\''
                    && said(&[b"create login ", b"alter login ", b"create user "])
        };
        let (class, rule) = if earnest(bytes) == Some(Class::Secret) && stands() {
            (Class::Secret, &self.names.password)
        } else if connects && strong(bytes) && (!lettered || plausible(bytes)) {
            (Class::Secret, &self.names.connection)
        } else if !lettered && kinds(bytes) >= 2 && (quoted || strong(bytes)) {
            (Class::WeakSecret, &self.names.password)
        } else {
            return;
        };
        self.hit(value.start..whole, class, rule);
    }

    /// What ODBC has in the braces that open at `start`, so that anything may stand in it.
    fn braced(&self, start: usize) -> Option<Range<usize>> {
        let rest = self.text[start..].strip_prefix(b"{")?;
        let length = memchr::memchr(b'}', &rest[..rest.len().min(PASSWORD)])?;
        Some(start + 1..start + 1 + length)
    }

    /// `Authorization: Basic ...`, `Authorization: Bearer ...`
    fn authorization(&mut self, at: usize, end: usize) {
        if !ends_with(&self.text[..end], b"authorization") {
            return;
        }
        let text = self.text;
        let skip = |from: usize| {
            from + text[from..]
                .iter()
                .take(4)
                .take_while(|byte| matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b'`'))
                .count()
        };
        let scheme = skip(at + 1);
        let length = text[scheme..]
            .iter()
            .take(12)
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        let value = skip(scheme + length);
        let (scheme, long) = (&text[scheme..scheme + length], |byte: &u8| {
            is_token(*byte) || matches!(byte, b'.' | b'+' | b'/' | b'=' | b'~')
        });
        let value = value..value + text[value..].iter().take_while(|byte| long(byte)).count();
        looked(value.len());
        self.presented(scheme, value);
    }

    /// Whether a value stands behind the name of the header and a scheme as programs have them: `"Authorization", "Bearer ..."`,
    /// `'Authorization' = 'Basic ...'`, `proxy_set_header Authorization "Basic ...";`, `"name": "authorization", "value": "Basic ..."`.
    pub(super) fn authorized(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let Some((before, b" ")) = text[..value.start].split_last_chunk::<1>() else {
            return false;
        };
        let letters = before.iter().rev().take(SCHEME);
        let length = letters
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        let (before, scheme) = before.split_at(before.len() - length);
        if length == 0 || !matches!(before.last(), Some(b'"' | b'\'')) {
            return false;
        }
        let before = &before[before.len().saturating_sub(BETWEEN)..];
        looked(length + before.len());
        if !ends_with(name_at_end(before), b"authorization") {
            return false;
        }
        let rest = text[value.end..].iter().take_while(|byte| **byte == b'=');
        let end = value.end + rest.take(2).count();
        self.presented(scheme, value.start..end)
    }

    /// Tells what is sent by this scheme for somebody to be let in; whether it was.
    fn presented(&mut self, scheme: &[u8], value: Range<usize>) -> bool {
        let bytes = &self.text[value.clone()];
        let hits = self.hits.len();
        if scheme.eq_ignore_ascii_case(b"basic") {
            self.user_and_password(value, Class::Secret);
        } else if BEARERS
            .iter()
            .any(|bearer| scheme.eq_ignore_ascii_case(bearer))
            && bytes.len() >= 20
            && random(bytes)
            && !self.rules.is_spoiled(bytes)
            && !self.is_json_web_token(value.start)
        {
            let rule = &self.names.bearer;
            self.hit(value, Class::Secret, rule);
        }
        self.hits.len() > hits
    }

    /// `"auth": "..."` of a registry's configuration.
    fn registry(&mut self, at: usize, end: usize) {
        let name = &self.text[end.saturating_sub(6)..end];
        let named = ends_with(name, b"\"auth") || ends_with(name, b"_auth");
        if named && let Some((value, _)) = self.value_after(at) {
            self.user_and_password(value, Class::Secret);
        }
    }

    fn user_and_password(&mut self, value: Range<usize>, class: Class) {
        let bytes = &self.text[value.clone()];
        let mut room = [0; 192];
        let Some(plain) = decoded(bytes, &mut room) else {
            return;
        };
        let printable = plain
            .iter()
            .all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        let parts = plain
            .iter()
            .position(|byte| *byte == b':')
            .map(|at| (&plain[..at], &plain[at + 1..]));
        if let Some((user, password)) =
            parts.filter(|(user, password)| printable && !user.is_empty() && password.len() >= 4)
        {
            let class = if strong(password) && user != password && !placeholder(password) {
                class
            } else {
                Class::WeakSecret
            };
            let rule = &self.names.basic;
            self.hit(value, class, rule);
        }
    }

    /// `curl -u user:password`
    fn user_of_curl(&mut self, at: usize) {
        let text = self.text;
        let stop = |byte: &u8| {
            byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'/' | b',' | b'(' | b'{')
        };
        let next = text.get(at + 1).copied().unwrap_or(b' ');
        if !text[at - 1].is_ascii_alphanumeric() || stop(&next) || next == b':' {
            return;
        }
        let from = at.saturating_sub(USER);
        let Some(start) = text[from..at]
            .iter()
            .rposition(stop)
            .map(|stop| from + stop)
        else {
            return;
        };
        let quote = text[start];
        let quoted = matches!(quote, b'"' | b'\'');
        let escapes = match quoted {
            true => backslashes(text[..start].iter().rev()),
            false => 0,
        };
        let flag = text[..start - escapes].trim_ascii_end();
        // `curl -uuser:password`
        let joined = text[start + 1..].starts_with(b"-u")
            && quote == b' '
            && holds(&text[from..start], b"curl");
        let apart = [&b" -u"[..], b" --user", b" --proxy-user"];
        let flagged = joined || apart.iter().any(|known| flag.ends_with(known));
        if !flagged || start - escapes - flag.len() > 2 {
            return;
        }
        // It holds no other flag, so that many of them are read in linear time however long they are.
        let rest = &text[at + 1..];
        let length = if quoted {
            end_of_quoted(rest, quote, escapes)
        } else {
            end_of_word(rest)
        };
        let length = length.unwrap_or(rest.len());
        looked(length);
        let value = at + 1..at + 1 + length;
        let bytes = &text[value.clone()];
        // `-u <user:password>` of a manual, and `python -u C:\a.py`.
        if text[start + 1] == b'<' || at == start + 2 && bytes.first() == Some(&b'\\') {
            return;
        }
        // What stands far behind the beginning says nothing of it, and may not be of it.
        let judged = &bytes[..bytes.len().min(PASSWORD)];
        if judged.len() >= 4 && !placeholder(judged) && !matches!(judged[0], b'$' | b'<' | b'{') {
            let class = if strong(judged) {
                Class::Secret
            } else {
                Class::WeakSecret
            };
            let rule = &self.names.basic;
            self.hit(value, class, rule);
        }
    }
}

/// A variable, a call or a type, and nothing that anybody would type in.
fn is_code(value: &[u8], quoted: bool) -> bool {
    let opens = matches!(
        value[0],
        b'$' | b'<' | b'{' | b'[' | b'(' | b'%' | b'*' | b'@' | b'&'
    ) && value.len() > 1
        || is_path(value);
    let looks = value.contains(&b'(')
        || value.contains(&b'[')
        || holds(value, b"${")
        || holds(value, b"{{")
        || holds(value, b"env.");
    let space = value.contains(&b' ');
    (opens
        && !(quoted
            && kinds(value) >= 3
            && value[0] != b'$'
            && value[0] != b'<'
            && value[0] != b'{'))
        || space
        || (!quoted && looks)
        || (quoted && (holds(value, b"${") || holds(value, b"{{")))
}

/// Whether it is of the form of a password that Amazon gives to those who send mail.
fn is_of_mail(value: &[u8]) -> bool {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    value.len() == 44 && value[0] == b'B' && value.iter().all(part)
}

/// Whether it is more than one byte again and again.
fn varied(value: &[u8]) -> bool {
    value.windows(2).any(|pair| pair[0] != pair[1])
}

/// What Base64 of up to 256 characters stands for.
pub(super) fn decoded<'a>(bytes: &[u8], room: &'a mut [u8; 192]) -> Option<&'a [u8]> {
    let bytes = bytes.trim_ascii_end();
    let body = bytes
        .iter()
        .rposition(|byte| *byte != b'=')
        .map(|last| &bytes[..=last])?;
    if body.len() < 8 || body.len() * 3 / 4 > room.len() {
        return None;
    }
    let (mut bits, mut held, mut length) = (0_u32, 0, 0);
    for byte in body {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            room[length] = (bits >> held & 0xFF) as u8;
            length += 1;
        }
    }
    Some(&room[..length])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong, told};

    #[test]
    fn a_header_is_set_in_programs_as_it_stands_in_requests() {
        let body = body();
        let basic = "ZGVwbG95Oms1Vnl0THcxWGM3UmIyTmg=";
        for (scheme, value) in [
            ("Basic", basic),
            ("Bearer", body.as_str()),
            ("AccessKey", &body[..25]),
            ("Splunk", "be8bb23f-588b-46a7-be5d-dd351a8eaf59"),
        ] {
            for text in [
                format!("req.Header.Set(\"Authorization\", \"{scheme} {value}\")"),
                format!("$headers = @{{ 'Authorization' = '{scheme} {value}' }}"),
                format!("req['Authorization'] = '{scheme} {value}'"),
                format!("proxy_set_header Authorization \"{scheme} {value}\";"),
                format!("{{ \"name\": \"authorization\",\n   \"value\": \"{scheme} {value}\" }}"),
                format!("{{\\\"Authorization\\\": \\\"{scheme} {value}\\\"}}"),
            ] {
                assert_eq!(strong(&text), [value], "{text}");
            }
            for text in [
                format!("the authorization says \"{scheme} {value}"),
                format!("Authorization, \"{scheme}s {value}\""),
            ] {
                assert_eq!(strong(&text), [""; 0], "{text}");
            }
        }
    }

    #[test]
    fn a_token_that_is_presented_is_told_whole_however_long() {
        for times in [1, 56, 57, 200] {
            let token = body().repeat(times);
            let text = format!("Authorization: Bearer {token}\nAccept: */*");
            assert_eq!(strong(&text), [token.as_str()], "{times}");
        }
    }

    #[test]
    fn a_password_is_told_to_the_end_that_its_reader_sees() {
        let password = "Wq7!mZ2pLk,4Rt99xQ";
        for sign in [",", ")", "}", "<", "&", "é,", ",(x)"] {
            let password = password.replace(',', sign);
            for text in [
                format!("Server=db;Database=x;Password={password};Encrypt=True"),
                format!("f(\"Server=db;Password={password}\")"),
                format!("PGPASSWORD={password}"),
                format!("export PGPASSWORD={password} PGUSER=app"),
                format!("  PGPASSWORD: {password}\n"),
                format!("docker run -e PGPASSWORD={password} db"),
                format!("sh -c \"export PGPASSWORD={password}\""),
                format!("f(\"Server=db; Password={password}; Encrypt=True\")"),
                format!("+PGPASSWORD={password}\n"),
                format!("{{\"Env\": [\"PGPASSWORD={password}\", \"A=b\"]}}"),
            ] {
                assert_eq!(strong(&text), [password.as_str()], "{text}");
            }
            let lines = format!("\"A=b\\nDB_PASSWORD={password}\\nC=d\"");
            let found = told(&lines);
            assert!(
                matches!(&found[..], [(.., found)] if *found == password),
                "{found:?}"
            );
        }
        let escaped = "Wq7!mZ2pLk\\$4Rt99xQ";
        assert_eq!(
            strong(&format!("export PGPASSWORD=\"{escaped}\"")),
            [escaped]
        );
        let quoted = "Wq7!mZ2pLk\\\"4Rt99xQ";
        assert_eq!(strong(&format!("PGPASSWORD=\"{quoted}\"")), [quoted]);
        // A string within a string, and one within that.
        for escapes in ["\\", "\\\\\\"] {
            let text = format!(
                "{{{escapes}\"PGPASSWORD{escapes}\": {escapes}\"Wq7!mZ2pLk4Rt99xQ{escapes}\", {escapes}\"a{escapes}\": 1}}"
            );
            assert_eq!(strong(&text), ["Wq7!mZ2pLk4Rt99xQ"], "{text}");
        }
        let odbc = "Driver=x;Server=db;UID=sa;PWD={Wq7!;mZ2,pLk4}};x=y";
        assert_eq!(strong(odbc), ["Wq7!;mZ2,pLk4"]);
        // What is called with it goes on behind it.
        for text in [
            "f(user=\"a\", host=\"b\", password=\"Wq7!mZ2pLk4\", x)",
            "{\"PGPASSWORD\": \"Wq7!mZ2pLk4\", \"a\": \"b\"}",
        ] {
            assert_eq!(strong(text), ["Wq7!mZ2pLk4"], "{text}");
        }
    }

    #[test]
    fn what_else_is_assigned_behind_a_password_is_none_of_it() {
        let password = "Wq7!mZ2pLk4";
        let only = |text: &str| {
            let found = told(text);
            assert!(
                matches!(&found[..], [(.., found)] if found == password),
                "{text} {found:?}"
            );
        };
        for name in ["PGPASSWORD", "password"] {
            for behind in [
                ";PGUSER=app;HOST=db",
                "&username=joe&scope=all",
                "\",\"a\":1",
                "\\\",\\\"a\\\":1",
                "',b:1",
                "`,b",
            ] {
                only(&format!("{name}={password}{behind}"));
                only(&format!("A=b\n  {name}={password}{behind}\nB=c"));
                only(&format!("{{\"a\":\"{name}={password}{behind}\"}}"));
            }
        }
        // No name follows.
        for password in ["Wq7!mZ2pLk&4Rt99", "Wq7!mZ2pLk&&4Rt=", "Wq7!mZ2pLk&="] {
            let text = format!("PGPASSWORD={password}\n");
            assert_eq!(strong(&text), [password], "{text}");
        }
    }

    #[test]
    fn an_attribute_of_a_module_is_the_name_of_a_secret() {
        let body = body();
        assert_eq!(
            strong(&format!("@acmecrm_api_key \"{body}\"")),
            [body.as_str()]
        );
        assert_eq!(strong(&format!("acmecrm_api_key \"{body}\"")), [""; 0]);
    }

    #[test]
    fn a_password_may_begin_with_a_star_and_is_none_behind_two() {
        let text = |password: &str| format!("mysql://readonly:{password}@db:3306/x");
        assert_eq!(strong(&text("*5AzpkDc3o!PC")), ["*5AzpkDc3o!PC"]);
        assert_eq!(strong(&text("**5AzpkDc3o!PC")), [""; 0]);
        let settings = |of: &str| format!("{of}.password=WgliX~+Zdm+5M");
        assert_eq!(strong(&settings("spring.datasource")), ["WgliX~+Zdm+5M"]);
        assert_eq!(strong(&settings("wizard")), [""; 0]);
        // Base64 may begin as a path does.
        let key = "/p+GytvrODToDX16e26H6fOUngU2Yb+JkbJaRBASyno=";
        let cache = format!("a.redis.cache.windows.net:6380,password={key},ssl=True");
        assert_eq!(strong(&cache), [key]);
        assert_eq!(strong(&text("********")), [""; 0]);
    }

    #[test]
    fn a_password_in_braces_and_one_that_java_logs_in_with_are_told() {
        let password = &body()[..14];
        let odbc = |name: &str| {
            format!("Driver={{ODBC Driver 17}};Server=db1;UID=sa;{name}={{{password}}};")
        };
        assert_eq!(strong(&odbc("PWD")), [password]);
        assert_eq!(strong(&odbc("App")), [""; 0]);
        let jaas =
            |module: &str| format!("x.{module} required username=\"a\" password=\"{password}\";");
        assert_eq!(strong(&jaas("PlainLoginModule")), [password]);
        assert_eq!(strong(&jaas("PlainText")), [""; 0]);
        let profile =
            |of: &str| format!("<p {of}=\"MSDeploy\" userName=\"$a\" userPWD=\"{password}\" />");
        assert_eq!(strong(&profile("publishMethod")), [password]);
        assert_eq!(strong(&profile("method")), [""; 0]);
    }

    #[test]
    fn a_password_for_sending_mail_is_told_beside_the_host() {
        let password = format!("B{}/{}", body(), &body()[..6]);
        assert_eq!(password.len(), 44);
        let text = |host: &str| {
            [
                format!("SMTP_HOST={host}\nSMTP_USER=app\nSMTP_PASSWORD={password}\n"),
                format!("{{\"host\": \"{host}\", \"auth\": {{\"pass\": \"{password}\"}}}}"),
            ]
        };
        for text in text("email-smtp.eu-west-1.amazonaws.com") {
            assert_eq!(strong(&text), [password.as_str()], "{text}");
        }
        for text in text("smtp.corp.example") {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_name_of_a_variable_between_signs_is_no_password() {
        for variable in ["%DB_PASSWD1%", "@@DB_PASSWD1@@", "__DB_PASSWD1__"] {
            assert_eq!(
                strong(&format!("amqps://svc:{variable}@mq.corp:5671")),
                [""; 0]
            );
            assert_eq!(
                strong(&format!("jdbc:a://h/d?user=a&password={variable}")),
                [""; 0]
            );
        }
        let password = format!("%{}%", &body()[..12]);
        let told = strong(&format!("amqps://svc:x{password}@mq.corp:5671"));
        assert_eq!(told, [format!("x{password}")]);
    }
}
