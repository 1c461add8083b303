//! Places in which nothing but a credential can stand, by a grammar and not by a name.
//! Such are what follows `IDENTIFIED BY`, a line of `.pgpass`, the private parts of a key in XML.
//!
//! Only what looks like a password in earnest is of high confidence there: manuals have words and placeholders in these places.
//!
//! Guarantees: looks no farther than a bound around a value, and at values only that have a run of token characters in them.
//! Deliberately absent: passwords without such a run and without an assignment, which no closer look is taken at; what
//! programs are given (`commands.rs`) and tell a server (`exchange.rs`).

use std::ops::Range;

use memchr::memmem;

use super::{
    bytes::{ends_with, is_token},
    plausible::{PASSWORD, Shape, holds, is_wordy, kinds, placeholder, plausible},
    scan::Scan,
    settings::{AROUND, is_of_packages},
    urls::strong,
    value::{backslashes, end_of_quoted},
};
use crate::sanitize::{Class, work::looked};

/// How far before a value the line is looked at that it stands in, in bytes.
pub(super) const LINE: usize = 120;
/// How far before the body of a key its label may stand, in bytes.
const LABEL: usize = 320;
const SSH2: &[u8] = b"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----";

/// How far before a run of token characters the password may begin that it is of, in bytes.
const INSIDE: usize = 32;

/// Private parts of a key in XML, and what they stand behind: in keys of DSA parts of the same names are public.
const PARTS: [(&[u8], &[&[u8]]); 6] = [
    (b"<P>", &[b"</Exponent>"]),
    (b"<Q>", &[b"</P>"]),
    (b"<DP>", &[b"</Q>"]),
    (b"<DQ>", &[b"</DP>"]),
    (b"<InverseQ>", &[b"</DQ>"]),
    (b"<D>", &[b"</InverseQ>", b"</Exponent>"]),
];
/// The least of them, in characters of Base64: the public ones of DSA are shorter.
const PART: usize = 64;

/// Of what class a value is in the place of a password, if it may be one.
pub(super) fn earnest(value: &[u8]) -> Option<Class> {
    if !strong(value) || placeholder(value) {
        return None;
    }
    let shape = Shape::of(value);
    let mixed = shape.digits > 0 && (kinds(value) >= 3 || shape.turns >= 4);
    let made = || kinds(value) == 4 && is_put_together(value);
    Some(
        if mixed && (!is_wordy(value) || made()) && plausible(value) {
            Class::Secret
        } else {
            Class::WeakSecret
        },
    )
}

/// Whether it is words with a number and signs between, as some choose a password, and not those of an example.
fn is_put_together(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let parts = value.split(|byte| !byte.is_ascii_alphanumeric());
    let usual = [&b"pass"[..], b"secret", b"admin", b"test", b"login"];
    digits > 3
        && parts.filter(|part| !part.is_empty()).count() > 2
        && !usual.iter().any(|word| holds(value, word))
}

impl Scan<'_> {
    /// Whether a value is told by where it stands.
    pub(super) fn placed(&mut self, value: &Range<usize>) -> bool {
        let Some(before) = value.start.checked_sub(1).map(|at| self.text[at]) else {
            return false;
        };
        match before {
            b'>' => self.part_of_key(value) || self.in_element(value),
            b'\n' => self.answer(value) || self.lines_of_ssh2(value),
            b' ' => self.behind_a_blank(value),
            b'%' => self.user_of_share(value),
            b':' => self.set_for_user(value) || self.line_of_pgpass(value),
            b'"' => self.json_web_key(value) || self.flagged_in_quotes(value),
            b'\'' => {
                self.json_web_key(value)
                    || self.flagged_in_quotes(value)
                    || self.in_statement(value)
            }
            // The escape of a line.
            b'\\' if self.text[value.start] == b'n' => {
                self.lines_of_ssh2(&(value.start + 1..value.end))
            }
            b'=' | b'/' | b'.' | b'`' | b'(' | b'[' | b'{' | b',' | b'\\' => false,
            _ => self.in_statement(value) || self.in_element(value),
        }
    }

    /// Behind a blank most values stand in a table or a sentence: what goes before it is looked at first.
    fn behind_a_blank(&mut self, value: &Range<usize>) -> bool {
        if self.text[value.start..].starts_with(b"-p") {
            return self.flagged(value);
        }
        match value.start.checked_sub(2).map(|at| self.text[at]) {
            // `AUTH PLAIN`, `login`
            Some(b'n' | b'N') => self.plain(value) || self.logged_in(value),
            // `auth`, `masterauth`
            Some(b'h') => self.logged_in(value) || self.set_for_server(value),
            // The last letters of flags, and of `requirepass`.
            Some(b'p' | b'a' | b'P' | b's') => self.flagged(value) || self.set_for_server(value),
            // `AUTH`, and who it is; `init`.
            Some(b'H' | b't') => self.sent(value) || self.logged_in(value),
            // The first of a line, perhaps behind what says whose it is.
            Some(b'\n' | b' ' | b':' | b'>') => self.answer(value),
            _ => false,
        }
    }

    /// `<RSAKeyValue>...</Exponent><P>...</P>`
    fn part_of_key(&mut self, value: &Range<usize>) -> bool {
        let text = &self.text[..value.start];
        let Some((open, behind)) = PARTS.iter().find(|(open, _)| text.ends_with(open)) else {
            return false;
        };
        let last = text[..text.len() - open.len()].trim_ascii_end();
        if value.len() < PART
            || !behind.iter().any(|end| last.ends_with(end))
            || !plausible(&self.text[value.clone()])
        {
            return false;
        }
        let rule = &self.names.private_key;
        self.hit(value.clone(), Class::Secret, rule);
        true
    }

    /// `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----`, with four dashes.
    fn lines_of_ssh2(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let before = &text[..value.start - 1];
        let before = before.strip_suffix(b"\\").unwrap_or(before);
        let last = before.trim_ascii_end().last();
        if value.len() < 48 || !matches!(last, Some(b'-' | b'"')) {
            return false;
        }
        let from = value.start.saturating_sub(LABEL);
        looked(value.start - from);
        if memmem::rfind(&text[from..value.start], SSH2).is_none() {
            return false;
        }
        let end = self.marks.of_ssh2(text, value.start);
        let body = text[value.start..end].trim_ascii_end();
        let body = body.strip_suffix(b"\\n").unwrap_or(body);
        if body.is_empty() {
            return false;
        }
        let rule = &self.names.private_key;
        self.hit(value.start..value.start + body.len(), Class::Secret, rule);
        true
    }

    /// `IDENTIFIED BY '...'`, `ALTER ROLE a PASSWORD '...'` of SQL, `credentials { password '...' }` of Gradle.
    fn in_statement(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let inside = |byte: &&u8| !matches!(**byte, b'\'' | b'\n');
        let back = text[..value.start].iter().rev().take(INSIDE);
        let start = value.start - back.take_while(inside).count();
        let Some(before) = text[..start].strip_suffix(b"'") else {
            return false;
        };
        let from = before.len().saturating_sub(LINE);
        let statement = before[from..].trim_ascii_end();
        looked(before.len() - from + value.start - start);
        let by = ends_with(statement, b" by") && holds(statement, b" identified ");
        let said = ends_with(statement, b" password")
            && [&b"create "[..], b"alter "]
                .iter()
                .any(|verb| holds(statement, verb))
            && [&b" role "[..], b" user ", b" login "]
                .iter()
                .any(|whose| holds(statement, whose));
        let of_packages = ends_with(statement, b" password") && holds(statement, b"credentials {");
        (by || said || of_packages) && self.word(start)
    }

    /// `<password>...</password>` among the settings of what fetches packages.
    fn in_element(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let inside = |byte: &&u8| byte.is_ascii_graphic() && !matches!(**byte, b'<' | b'>');
        let back = text[..value.start].iter().rev().take(INSIDE);
        let start = value.start - back.take_while(inside).count();
        looked(value.start - start);
        if !text[..start].ends_with(b"<password>") {
            return false;
        }
        let rest = text[start..].iter().take(PASSWORD);
        let end = start + rest.take_while(inside).count();
        let around = &text[start.saturating_sub(AROUND)..start];
        looked(end - start + around.len());
        if text.get(end) != Some(&b'<')
            || !is_of_packages(around)
            || earnest(&text[start..end]) != Some(Class::Secret)
        {
            return false;
        }
        let rule = &self.names.password;
        self.hit(start..end, Class::Secret, rule);
        true
    }

    /// `requirepass ...` of Redis, also as a flag.
    fn set_for_server(&mut self, value: &Range<usize>) -> bool {
        let before = &self.text[..value.start - 1];
        let names = [&b"requirepass"[..], b"masterauth"];
        let before = names.iter().find_map(|name| before.strip_suffix(*name));
        let set = before.is_some_and(|before| {
            before
                .last()
                .is_none_or(|last| !last.is_ascii_alphanumeric())
        });
        set && self.word(value.start)
    }

    /// `smbclient -U user%password`
    fn user_of_share(&mut self, value: &Range<usize>) -> bool {
        let before = &self.text[value.start.saturating_sub(48)..value.start - 1];
        let user = before.iter().rev();
        let user = user.take_while(|byte| is_token(**byte) || matches!(**byte, b'\\' | b'.'));
        let flag = &before[..before.len() - user.count()];
        (flag.ends_with(b" -U ") || flag.ends_with(b" --user=")) && self.word(value.start)
    }

    /// `echo 'user:password' | chpasswd`
    fn set_for_user(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let to = (value.end + 32).min(text.len());
        let behind = &text[value.end..to];
        let line = memchr::memchr(b'\n', behind).unwrap_or(behind.len());
        let piped = memchr::memchr(b'|', &behind[..line]);
        looked(line);
        piped.is_some_and(|pipe| holds(&behind[pipe..line], b"chpasswd")) && self.word(value.start)
    }

    /// `host:5432:database:user:password` on a line of its own, as in `.pgpass`.
    fn line_of_pgpass(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let escaped = text[value.end..].starts_with(b"\\n");
        let next = text.get(value.end);
        // `echo '...' >> ~/.pgpass`
        let quote = next.filter(|byte| matches!(byte, b'\'' | b'"'));
        if !escaped && quote.is_none() && !matches!(next, None | Some(b'\n' | b'\r')) {
            return false;
        }
        let from = value.start.saturating_sub(LINE);
        let line = &text[from..value.start - 1];
        looked(line.len());
        let start = match line.iter().rposition(|byte| b"\n\"'`\\ ".contains(byte)) {
            Some(at) if line[at] == b' ' || quote.is_some_and(|quote| *quote != line[at]) => {
                return false;
            }
            // Behind the escape of a line its letter is no part of it.
            Some(at) => at + 1 + usize::from(line[at] == b'\\'),
            None if from == 0 && quote.is_none() => 0,
            None => return false,
        };
        line.get(start..).is_some_and(is_of_pgpass) && self.word(value.start)
    }

    /// `ConvertTo-SecureString "..." -AsPlainText`
    pub(super) fn secure_string(&mut self, end: usize) {
        let text = self.text;
        let mut at = end;
        for skipped in [&b" "[..], b"-String", b" "] {
            at += text[at..]
                .strip_prefix(skipped)
                .map_or(0, |_| skipped.len());
        }
        at += backslashes(text[at..].iter());
        if matches!(text.get(at), Some(b'"' | b'\'')) {
            self.word(at + 1);
        }
    }

    /// Takes the word that begins at `start`, or what stands in the quotes that it begins behind.
    pub(super) fn word(&mut self, start: usize) -> bool {
        let text = self.text;
        let rest = &text[start..(start + PASSWORD).min(text.len())];
        let ended = match text[..start].split_last() {
            Some((quote @ (b'"' | b'\''), before)) => {
                end_of_quoted(rest, *quote, backslashes(before.iter().rev()))
            }
            _ => {
                let sign = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`' | b'|' | b'\\');
                let other = |byte: &u8| byte.is_ascii() && !byte.is_ascii_graphic();
                rest.iter().position(|byte| sign(byte) || other(byte))
            }
        };
        let length = ended.unwrap_or(rest.len());
        looked(length);
        // What is longer than a password is somebody else's: nothing of it is to be left over.
        if ended.is_none() && start + length < text.len() {
            return false;
        }
        let value = &rest[..length];
        // Words with blanks between are a sentence, unless they look like a password in earnest.
        let told = |class: &Class| *class == Class::Secret || !value.contains(&b' ');
        let Some(class) = earnest(value).filter(told) else {
            return false;
        };
        let rule = &self.names.password;
        self.hit(start..start + length, class, rule);
        true
    }

    /// Marks a value that is called a password, though people made it up.
    pub(super) fn called_password(&mut self, value: &Range<usize>, end: usize) -> bool {
        let name = &self.text[end.saturating_sub(24)..end];
        let last = name.iter().rposition(u8::is_ascii_alphanumeric);
        let name = &name[..last.map_or(0, |last| last + 1)];
        let called = [&b"password"[..], b"passwd", b"passphrase", b"pwd", b"_pass"]
            .iter()
            .any(|word| ends_with(name, word));
        if !called || earnest(&self.text[value.clone()]) != Some(Class::Secret) {
            return false;
        }
        let rule = &self.names.password;
        self.hit(value.clone(), Class::WeakSecret, rule);
        true
    }

    /// Whether a value is a key of a storage account, as `az storage account keys list` has them: what it is called stands before it.
    pub(super) fn listed_key(&mut self, value: &Range<usize>) -> bool {
        let (text, long) = (self.text, value.len() == 88);
        if !long || !text[value.clone()].ends_with(b"==") {
            return false;
        }
        let before = &text[value.start.saturating_sub(LINE)..value.start];
        looked(before.len());
        if !holds(before, b"\"keyname\"") || !holds(before, b"\"permissions\"") {
            return false;
        }
        let rule = &self.names.listed;
        self.hit(value.clone(), Class::Secret, rule);
        true
    }
}

/// Whether these are a host, a port, a database and a user, any of which may be `*`.
fn is_of_pgpass(line: &[u8]) -> bool {
    let mut fields = line.split(|byte| *byte == b':');
    let (Some(host), Some(port), Some(database), Some(user), None) = (
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
    ) else {
        return false;
    };
    let name = |field: &[u8]| {
        let part = |byte: &u8| is_token(*byte) || matches!(byte, b'.' | b'*');
        !field.is_empty() && field.iter().all(part)
    };
    let number = (4..=5).contains(&port.len()) && port.iter().all(u8::is_ascii_digit);
    // Keys of caches and digests are parted so, too.
    let usual = [&b"54"[..], b"64"].iter().any(|own| port.starts_with(own));
    let machine = host == b"localhost" || host.contains(&b'.');
    let digest = [&b"sha"[..], b"md5"]
        .iter()
        .any(|name| user.starts_with(name));
    (port == b"*" || number && (usual || machine))
        && !digest
        && [host, database, user].into_iter().all(name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong};

    /// A password as people are given one.
    fn password() -> String {
        ["q7Rb", "2NhY", "s8Md", "4Jp6", "Gf"].concat()
    }

    #[test]
    fn a_password_is_told_among_the_settings_of_packages_and_not_of_whoever() {
        for password in [password(), password().replace('2', "~2")] {
            let user = |of: &str| {
                format!("<{of}><username>ci</username>\n<password>{password}</password></{of}>")
            };
            assert_eq!(strong(&user("server")), [password.as_str()]);
            assert_eq!(strong(&user("person")), [""; 0]);
        }
        let gradle = |block: &str| {
            format!(
                "{block} {{\n  username 'ci'\n  password '{}'\n}}",
                password()
            )
        };
        assert_eq!(strong(&gradle("credentials")), [password().as_str()]);
        assert_eq!(strong(&gradle("person")), [""; 0]);
        for shown in [
            "${env.CI_PASSWORD_2}",
            "your-Password1234",
            "CI_PASSWORD_VALUE_2",
        ] {
            let text = format!("<server><username>ci</username><password>{shown}</password>");
            assert_eq!(strong(&text), [""; 0], "{shown}");
        }
        // Of what is longer nothing is left over.
        let long = password().repeat(8);
        let text = format!("<server><username>ci</username><password>{long}</password>");
        assert!(strong(&text).iter().all(|told| *told == long), "{text}");
        let text = format!("credentials {{ password '{long}' }}");
        assert!(strong(&text).iter().all(|told| *told == long), "{text}");
    }

    #[test]
    fn a_password_is_told_where_nothing_else_can_stand() {
        let password = password();
        for text in [
            format!("sshpass -p {password} ssh a@b"),
            format!("$ mysql -h db -u app -p{password} shop"),
            format!("mysqldump -uapp -p{password} shop"),
            format!("mysql -h db --password={password} shop"),
            format!("mongodump --password={password} -d shop"),
            format!("mysql -uapp -p'{password}' shop"),
            format!("wget --user=app --password={password} https://a.example/dump"),
            format!("docker login -u bot -p {password} registry.example"),
            format!("requirepass {password}\nmaxmemory 2gb"),
            format!("redis-server --requirepass {password}"),
            format!("masterauth {password}"),
            format!("\"node3.example:6379,password={password},allowAdmin=true\""),
            format!("http://db.example:8123/?user=app&password={password}&query=SELECT"),
            format!("echo 'db.corp.example:5432:shop:app:{password}' >> ~/.pgpass"),
            format!("redis-cli -h db -a {password} INFO"),
            format!("keytool -list -keystore k.jks -storepass {password}"),
            format!("smbclient //files/data -U deploy%{password}"),
            format!("echo 'root:{password}' | sudo chpasswd"),
            format!("db.corp.example:5432:shop:app:{password}\n"),
            format!("$ cat .pgpass\nlocalhost:*:*:app:{password}"),
            format!("{{\"out\":\"10.0.0.7:6432:shop:app:{password}\\n\"}}"),
            format!("ConvertTo-SecureString \"{password}\" -AsPlainText -Force"),
            format!("(ConvertTo-SecureString -String '{password}' -AsPlainText)"),
            format!("CREATE USER 'app'@'%' IDENTIFIED BY '{password}';"),
            format!("alter user a identified with sha2 by '{password}'"),
            format!("ALTER ROLE app WITH LOGIN PASSWORD '{password}' VALID"),
            format!("CREATE LOGIN app WITH PASSWORD = N'{password}', CHECK_POLICY = ON;"),
            format!("AUTH default {password}\n+OK"),
            format!("127.0.0.1:6379> AUTH {password}\nOK"),
            format!(
                "{{\"auths\":{{\"r.io\":{{\"username\":\"a\",\"password\":\"{password}\"}}}}}}"
            ),
            format!("//npm.internal/:_password={password}\n"),
            format!(
                "{{\"SecretString\":\"{{\\\"user\\\":\\\"a\\\",\\\"password\\\":\\\"{password}\\\"}}\"}}"
            ),
        ] {
            assert_eq!(strong(&text), [password.as_str()], "{text}");
        }
        for text in [
            format!("order:10234:item:sku:{password}\n"),
            format!(
                "registry.example:5000:app:sha256:{}\n",
                "9f86d081884c7d65".repeat(4)
            ),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
        let mail = "BUHCgIeUe+iIY9a9/uLmWY3M7ojsN/6qAHWk0wzuDQE7";
        for text in [
            format!("SES_SMTP_PASSWORD={mail}"),
            format!("sesSmtpPassword: '{mail}'"),
        ] {
            assert_eq!(strong(&text), [mail], "{text}");
        }
        for made in ["Saffron-Pepper1882-QbbL", "Walrus.Quartz4376-k8lQ"] {
            let text = format!("sshpass -p {made} ssh a@b");
            assert_eq!(strong(&text), [made], "{text}");
        }
        let signed = ["x!", &password, "*z"].concat();
        let text = format!("GRANT ALL ON a.* TO b IDENTIFIED BY '{signed}' WITH GRANT OPTION");
        assert_eq!(strong(&text), [signed]);
    }

    #[test]
    fn in_quotes_a_password_ends_at_its_quote_alone() {
        let password = "Wq7!mZ2pLk4RtW5xNq horse-Battery99";
        for text in [
            format!("ConvertTo-SecureString \"{password}\" -AsPlainText"),
            format!("ConvertTo-SecureString '{password}' -AsPlainText"),
            format!("{{\"run\": \"ConvertTo-SecureString \\\"{password}\\\" -Force\"}}"),
            format!("CREATE USER a IDENTIFIED BY '{password}';"),
        ] {
            assert_eq!(strong(&text), [password], "{text}");
        }
        let escaped = "Wq7!mZ2pLk4RtW5xNq\\'horse-Battery99";
        let text = format!("CREATE USER a IDENTIFIED BY '{escaped}';");
        assert_eq!(strong(&text), [escaped]);
        let letters = "q7Rb2NhYs8Md4Jp6öGf77Xk9";
        let text = format!("sshpass -p {letters} ssh a@b");
        assert_eq!(strong(&text), [letters]);
        // A sentence is none.
        let text = "it is identified by 'the name-of-Some_thing_or_other here'";
        assert_eq!(super::super::tests::told(text), []);
    }

    #[test]
    fn words_and_placeholders_and_other_programs_are_let_go() {
        let password = password();
        for text in [
            "sshpass -p MyPasswordForThisHost1 ssh a@b".to_owned(),
            "sshpass -p your_password_goes_here1 ssh a@b".to_owned(),
            "mysql -u app -p$MYSQL_ROOT_PASSWORD1 shop".to_owned(),
            "CREATE USER a IDENTIFIED BY 'PasswordOfThisUser1'".to_owned(),
            "ConvertTo-SecureString \"<the password of it 1>\" -AsPlainText".to_owned(),
            "ConvertTo-SecureString $env:ADMIN_PASSWORD".to_owned(),
            "ConvertTo-SecureString".to_owned(),
            format!("mkdir -p {password}"),
            format!("cp -a {password} /srv"),
            format!("unmysql -p{password}"),
            format!("unmysql -p'{password}'"),
            format!("docker run -p {password} image"),
            format!("xrequirepass {password}"),
            "sshpass -p Welcome-Secret1234-Home ssh a@b".to_owned(),
            "sshpass -p Welcome_Home1234 ssh a@b".to_owned(),
            format!("echo 'db.corp.example:5432:shop:{password}' >> ~/.pgpass"),
            format!("some tool --password={password}"),
            format!("mysql -h db\ntool --password={password}"),
            format!("discount -X deploy%{password}"),
            format!("root:{password} | wc"),
            format!("src/db.c:5432:shop:app:{password}\n"),
            format!("see db.corp.example:5432:shop:app:{password}\n"),
            format!("db.corp.example:54:shop:app:{password}\n"),
            format!("db.corp.example:5432:shop:{password}\n"),
            format!("db.corp.example:5432:shop:app:{password} (4)\n"),
            format!("SELECT a ORDER BY '{password}'"),
            format!("the AUTH default {password}"),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn private_parts_of_a_key_in_xml_are_told_and_public_ones_are_not() {
        let part = format!("{}/{}==", body().repeat(2), &body()[..13]);
        let xml = |before: &str, name: &str| format!("<X>{before}<{name}>{part}</{name}></X>");
        for (before, name) in [
            ("<Exponent>AQAB</Exponent>", "D"),
            ("<Exponent>AQAB</Exponent>\n  ", "P"),
            ("<P>a</P>", "Q"),
            ("<DQ>a</DQ>", "InverseQ"),
        ] {
            assert_eq!(strong(&xml(before, name)), [part.as_str()], "{name}");
        }
        for (before, name) in [("", "Modulus"), ("<DSAKeyValue>", "P"), ("", "D")] {
            assert_eq!(strong(&xml(before, name)), [""; 0], "{name}");
        }
        let public = format!("<DSAKeyValue><P>a</P><Q>{}=</Q>", &body()[..27]);
        assert_eq!(strong(&public), [""; 0]);
    }

    #[test]
    fn a_key_behind_four_dashes_is_told_by_its_label() {
        let lines = [body().repeat(2), body().repeat(2), body()].join("\n");
        let block = |label: &str| {
            format!(
                "---- BEGIN SSH2 {label} KEY ----\nComment: \"a\"\n{lines}\n---- END SSH2 {label} KEY ----\n"
            )
        };
        assert_eq!(strong(&block("ENCRYPTED PRIVATE")), [lines.as_str()]);
        assert_eq!(strong(&block("PUBLIC")), [""; 0]);
        let block = block("ENCRYPTED PRIVATE");
        let none = format!(
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n_{}",
            body().repeat(2)
        );
        let told = super::super::tests::told(&none);
        assert!(told.iter().all(|(.., found)| !found.is_empty()), "{told:?}");
        let escaped = serde_json::to_string(&block).expect("a string");
        assert_eq!(strong(&escaped), [lines.replace('\n', "\\n")]);
        let cut = &block[..block.find("\n---- END").expect("it has an end")];
        assert_eq!(strong(&format!("{cut}\n\n# and so on")), [lines.as_str()]);
    }

    #[test]
    fn a_key_in_a_list_of_those_of_an_account_is_told() {
        let key = format!("{}{}==", body().repeat(2), &body()[..14]);
        let text = |name: &str| {
            format!(
                "[{{\n  \"{name}\": \"key1\",\n  \"permissions\": \"FULL\",\n  \"value\": \"{key}\"\n}}]"
            )
        };
        assert_eq!(strong(&text("keyName")), [key.as_str()]);
        assert_eq!(strong(&text("keyKind")), [""; 0]);
    }
}
