//! What a program tells a server that asks who it is: the words of SMTP's and of Redis' logging in.
//!
//! Guarantees: looks at a value, its line, and the last that has something in it before that. Deliberately absent: headers of HTTP (`assign.rs`).

use std::ops::Range;

use super::{assign::decoded, bytes::ends_with, plausible::placeholder, scan::Scan, urls::strong};
use crate::sanitize::Class;

/// Asks for a password, in Base64.
const ASKS: &[u8] = b"UGFzc3dvcmQ6";

impl Scan<'_> {
    /// `AUTH PLAIN AGFubgBz...`: who acts for whom, and the password, each behind a zero.
    pub(super) fn plain(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        if !ends_with(&text[..value.start], b" plain ") {
            return false;
        }
        let mut room = [0; 192];
        let Some(plain) = decoded(&text[value.clone()], &mut room) else {
            return false;
        };
        let mut parts = plain.split(|byte| *byte == 0);
        let (Some(_), Some(user), Some(password), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        if user.is_empty() {
            return false;
        }
        self.credential(value, password)
    }

    /// What is sent when a server asks for a password: `334 UGFzc3dvcmQ6`, and on the next line what is sent.
    pub(super) fn answer(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let from = value.start.saturating_sub(4);
        let Some(line) = memchr::memrchr(b'\n', &text[from..value.start]) else {
            return false;
        };
        if !text[..from + line].trim_ascii_end().ends_with(ASKS) {
            return false;
        }
        let mut room = [0; 192];
        match decoded(&text[value.clone()], &mut room) {
            Some(password) => self.credential(value, password),
            None => false,
        }
    }

    /// Takes a value that stands for this password.
    fn credential(&mut self, value: &Range<usize>, password: &[u8]) -> bool {
        if password.len() < 4 || !password.iter().all(u8::is_ascii_graphic) {
            return false;
        }
        let class = match strong(password) && !placeholder(password) {
            true => Class::Secret,
            false => Class::WeakSecret,
        };
        let rule = &self.names.exchange;
        self.hit(value.clone(), class, rule);
        true
    }

    /// `AUTH default ...` of Redis, on a line of its own.
    pub(super) fn sent(&mut self, value: &Range<usize>) -> bool {
        let before = &self.text[..value.start];
        let commands = [&b"AUTH default "[..], b"AUTH "];
        let command = commands.iter().find_map(|word| before.strip_suffix(*word));
        // Behind a prompt, too, or the name of the string that it is.
        let begins = |before: &[u8]| {
            before.is_empty()
                || [&b"\n"[..], b"> ", b": "]
                    .iter()
                    .any(|end| before.ends_with(end))
        };
        command.is_some_and(begins) && self.word(value.start)
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};

    use super::super::tests::strong;

    #[test]
    fn what_a_server_is_told_is_decoded_and_judged() {
        let password = ["q7Rb", "2NhY", "s8Md", "4Jp6", "Gf"].concat();
        let plain = BASE64_STANDARD.encode(format!("\0app\0{password}"));
        let text = format!("C: AUTH PLAIN {plain}\nS: 235 ok");
        assert_eq!(strong(&text), [plain]);
        let sent = BASE64_STANDARD.encode(&password);
        let text = format!("S: 334 UGFzc3dvcmQ6\nC: {sent}\nS: 235 ok");
        assert_eq!(strong(&text), [sent.as_str()]);
        let user = format!("S: 334 VXNlcm5hbWU6\nC: {sent}\n");
        assert_eq!(strong(&user), [""; 0]);
        let known = BASE64_STANDARD.encode("\0app\0password123");
        assert_eq!(strong(&format!("AUTH PLAIN {known}")), [""; 0]);
        let prose = BASE64_STANDARD.encode("it is said in plain words 1");
        assert_eq!(strong(&format!("say it PLAIN {prose}")), [""; 0]);
    }
}
