//! Values that are given away by what stands right beside them.
//! Such are the signature of an address, the second half of a pair of keys, a password in front of a host.
//!
//! Guarantees: looks no farther than a bound around the value. Deliberately absent: values with a name (`context.rs`).

use std::ops::Range;

use super::{
    plausible::{holds, placeholder, plausible},
    scan::{Scan, is_token},
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
/// How far before a password the scheme of a connection may stand, in bytes.
const SCHEME: usize = 64;

impl Scan<'_> {
    /// Whether the run of token characters from `start` to `end` is told by what stands beside it.
    pub(super) fn beside(&mut self, start: usize, end: usize) -> bool {
        match start.checked_sub(1).map(|at| self.text[at]) {
            Some(b'=' | b'%') if self.signature(start, end) => true,
            Some(b':' | b'/') if self.text.get(end) == Some(&b'@') => self.before_host(start, end),
            _ => end - start <= 40 && self.second(start, end),
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

    /// `user:password@tcp(host)`, and `user/password@host` behind `jdbc:oracle:thin:` or `jdbc:oracle:oci:`.
    fn before_host(&mut self, start: usize, end: usize) -> bool {
        let text = self.text;
        let host = &text[end + 1..];
        let scheme = &text[start.saturating_sub(SCHEME)..start];
        looked(scheme.len());
        let known = if text[start - 1] == b':' {
            host.starts_with(b"tcp(") || host.starts_with(b"unix(")
        } else {
            holds(scheme, b"jdbc:oracle:thin:") || holds(scheme, b"jdbc:oracle:oci:")
        };
        known && self.password_in_front(start..end)
    }

    /// Whether a password in front of a host is one in earnest.
    pub(super) fn password_in_front(&mut self, span: Range<usize>) -> bool {
        let value = &self.text[span.clone()];
        if !strong(value) || placeholder(value) {
            return false;
        }
        let rule = &self.names.connection;
        self.hit(span, Class::Secret, rule);
        true
    }

    /// A secret key of AWS right behind the name of it.
    fn second(&mut self, start: usize, end: usize) -> bool {
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
            format!("jdbc:oracle:thin:svc/{password}@//db1:1521/ORCL"),
            format!("jdbc:oracle:oci:svc/{password}@ORCL"),
        ] {
            assert_eq!(strong(&text), [password], "{text}");
        }
        assert_eq!(strong(&format!("see docs/{password}@v2")), [""; 0]);
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
