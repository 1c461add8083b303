//! Passwords and keys that a program is given on its command line: `sshpass -p`, `mysql --password=`, `wandb login`.
//!
//! Which flag takes a password is the program's own; behind the verbs by which a key is kept, the program says whose it is.
//!
//! Guarantees: looks no farther back than one line and a bound. Deliberately absent: flags of programs that are not listed, for
//! most `-p` is a port or a path.

use std::ops::Range;

use memchr::memmem;

use super::{
    bytes::is_token,
    grammar::LINE,
    plausible::{is_wordy, random},
    rules::Word,
    scan::Scan,
};
use crate::sanitize::{Class, work::looked};

/// Programs, and the flag behind which they take a password; joined to it where the last says so.
const PROGRAMS: [(&[u8], &[u8], bool); 10] = [
    (b"sshpass", b"-p", false),
    (b"redis-cli", b"-a", false),
    (b"sqlcmd", b"-P", false),
    (b"keytool", b"-storepass", false),
    (b"keytool", b"-keypass", false),
    (b"mysql", b"-p", true),
    (b"mariadb", b"-p", true),
    (b"7z", b"-p", true),
    (b"docker login", b"-p", false),
    (b"podman login", b"-p", false),
];

/// Programs that a password is given to by its name.
const SERVED: [&[u8]; 9] = [
    b"wget",
    b"mysql",
    b"mariadb",
    b"mongosh",
    b"mongo",
    b"mongodump",
    b"mongorestore",
    b"docker login",
    b"podman login",
];

/// Behind which a program is told whose key it has.
const LOGINS: [&[u8]; 5] = [
    b" login",
    b" auth",
    b" authtoken",
    b" add-authtoken",
    b" init",
];
/// How far before these the program may stand, in bytes.
const PROGRAM: usize = 24;

impl Scan<'_> {
    /// `sshpass -p ...`, `mysql -p...`
    pub(super) fn flagged(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let joined = text[value.start..].starts_with(b"-p");
        let flag = if joined {
            &text[value.start..value.start + 2]
        } else {
            let before = &text[value.start.saturating_sub(16)..value.start - 1];
            let start = memchr::memrchr(b' ', before).map_or(0, |at| at + 1);
            &before[start..]
        };
        if flag.first() != Some(&b'-') {
            return false;
        }
        let known = |program: &&(&[u8], &[u8], bool)| program.1 == flag && program.2 == joined;
        if !PROGRAMS.iter().any(|program| known(&program)) {
            return false;
        }
        let from = value.start.saturating_sub(LINE);
        let line = &text[from..value.start];
        looked(line.len());
        let line = &line[memchr::memrchr(b'\n', line).map_or(0, |at| at + 1)..];
        let mut programs = PROGRAMS.iter().filter(known);
        if !programs.any(|(program, ..)| is_run(line, program)) {
            return false;
        }
        self.word(value.start + usize::from(joined) * 2)
    }

    /// `mysql -p'...'`
    pub(super) fn flagged_in_quotes(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let before = &text[..value.start - 1];
        if !before.ends_with(b" -p") {
            return false;
        }
        let line = &before[before.len().saturating_sub(LINE)..];
        looked(line.len());
        let line = &line[memchr::memrchr(b'\n', line).map_or(0, |at| at + 1)..];
        let mut programs = PROGRAMS
            .iter()
            .filter(|(_, flag, joined)| *flag == b"-p" && *joined);
        programs.any(|(program, ..)| is_run(line, program)) && self.word(value.start)
    }

    /// `mysql --password=...`: whether the name that begins at `name` is the flag of such a program.
    pub(super) fn is_told_a_program(&self, name: usize) -> bool {
        let before = self.text[..name].strip_suffix(b"--");
        let Some(before) = before.filter(|before| before.ends_with(b" ")) else {
            return false;
        };
        let line = &before[before.len().saturating_sub(LINE)..];
        looked(line.len());
        let line = &line[memchr::memrchr(b'\n', line).map_or(0, |at| at + 1)..];
        SERVED.iter().any(|program| is_run(line, program))
    }

    /// `wandb login ...`, `snyk auth ...`, `ngrok config add-authtoken ...`: a key that a program of a service is told to keep.
    pub(super) fn logged_in(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let before = &text[..value.start - 1];
        let Some(verb) = LOGINS.iter().find(|verb| before.ends_with(verb)) else {
            return false;
        };
        let bytes = &text[value.clone()];
        if bytes.len() < 20 || !random(bytes) || is_wordy(bytes) || self.rules.is_spoiled(bytes) {
            return false;
        }
        let end = before.len() - verb.len();
        let from = end.saturating_sub(PROGRAM);
        let line = text[from..end]
            .iter()
            .rposition(|byte| matches!(byte, b'\n' | b';' | b'&' | b'|'))
            .map_or(from, |at| from + at + 1);
        let Some(program) = program_of(text, line..end) else {
            return false;
        };
        let said = self.rules.said(text, program..end);
        let vendor = said.vendors[0].map(|at| &self.rules.meanings[usize::from(at)]);
        let Some(Word::Vendor(_, rule)) = vendor else {
            return false;
        };
        self.hit(value.clone(), Class::Secret, rule);
        true
    }
}

/// Where the program begins that a command which ends there calls, if that is one: `ngrok`, `ngrok config`.
fn program_of(text: &[u8], line: Range<usize>) -> Option<usize> {
    let part = |byte: &&u8| is_token(**byte) || matches!(**byte, b'/' | b'.' | b'@' | b' ');
    let command = text[line.clone()].iter().rev().take_while(part).count();
    let start = line.end - command;
    let words = text[start..line.end].trim_ascii_start();
    // What goes before is a prompt, a quote or a name, and not a sentence.
    let said = line.start < start && !b"$#%>(:`\"'".contains(&text[start - 1]);
    let many = words.split(|byte| *byte == b' ').count() > 3;
    (!said && !many).then_some(line.end - words.len())
}

/// Whether a program is called in a line.
pub(super) fn is_run(line: &[u8], program: &[u8]) -> bool {
    memmem::find_iter(line, program).any(|at| {
        let before = at.checked_sub(1).map_or(b' ', |at| line[at]);
        let after = &line[at + program.len()..];
        let rest = after.iter().take_while(|byte| is_token(**byte)).count();
        // `mysqldump`, `mysqladmin`
        let whole = rest == 0 || program == b"mysql" && after[..rest].is_ascii();
        !is_token(before) && whole && after.get(rest) == Some(&b' ')
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::strong;

    #[test]
    fn a_key_that_the_program_of_a_service_is_told_is_told() {
        let hex = "9f86d081884c7d65a0b3".repeat(2);
        let uuid = "8c7d659f-86d0-4188-94c7-d659f86d0818";
        for (text, key) in [
            (format!("wandb login {hex}"), hex.as_str()),
            (format!("$ cd a && wandb login {hex}\n"), &hex),
            (format!("snyk auth {uuid}"), uuid),
            (format!("text: snyk auth {uuid}"), uuid),
            (format!("ngrok config add-authtoken {hex}"), &hex),
        ] {
            assert_eq!(strong(&text), [key], "{text}");
        }
        for text in [
            format!("wandb sync {hex}"),
            format!("tool login {hex}"),
            format!("wandb init\ntool login {hex}"),
            format!("wandb: user login {uuid}"),
            format!("we use wandb for runs, so login {uuid}"),
            "wandb login NameOfAccountHere2026".to_owned(),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }
}
